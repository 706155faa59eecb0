// The container `core` of a TAK Server release: waits for database and directory, starts the programs of the release and watches
// them, carries out the rights that management asks for. Ends with 1 when a program dies, so that the engine starts it anew.

import { jsonLog } from '@holdfast/kit/log';
import { withDatabase } from '@holdfast/kit/postgres';
import { BUNDLE_PASSWORD, certificateFiles } from '@holdfast/pki/certificate-files';
import { type Coordinates, type DirectoryAccount, readCoordinates } from '@holdfast/setup/release-core/coordinates';
import { releaseCore } from '@holdfast/setup/release-core/core';
import { takeReleaseCore } from '@holdfast/setup/release-core/handover';
import { heapsFor, memoryOfContainer } from '@holdfast/setup/release-core/memory';
import { keepGivingRights } from '@holdfast/setup/release-core/rights';
import type { Awaited } from '@holdfast/setup/release-core/waits';
import { testBind } from '../shared/sign-in/ldap/service-account.ts';

const WITHIN_MS = 5_000;
const JAVA_OPTIONS = [
  // A program that has run out of heap would stay half alive.
  '-XX:+ExitOnOutOfMemoryError',
  // The API process gets the key of the CA from messaging, by reflection. Of an EC key that is only allowed so, and without it no
  // certificate is signed; an RSA key needs nothing.
  '--add-opens=jdk.crypto.ec/sun.security.ec=ALL-UNNAMED',
];
/** For a release that calls its ready line otherwise. */
const MESSAGING_AFTER_MS = 300_000;
const log = jsonLog({ role: 'release-core' });

async function main(): Promise<number> {
  const { home, certificates } = takeReleaseCore(process.env);
  const coordinates = readCoordinates(home);
  const environment = environmentOf(certificates);
  const over = new AbortController();
  const messaging = Promise.withResolvers<void>();
  const core = releaseCore({
    home,
    environment,
    awaited: awaitedOf(home, coordinates),
    log,
    reached: (phase) => {
      if (phase === 'streaming') messaging.resolve();
      if (phase === 'messaging') setTimeout(messaging.resolve, MESSAGING_AFTER_MS).unref();
    },
  });
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, () => core.stop());
  const byHash = (hash: string) =>
    withDatabase(coordinates.databaseUrl, 'holdfast rights', WITHIN_MS, async (sql) => {
      const [row] = await sql<{ revocationDate: Date | null }[]>`
        SELECT revocation_date AS "revocationDate" FROM certificate WHERE hash = ${hash} ORDER BY id LIMIT 1`;
      return row;
    });
  void messaging.promise.then(() => keepGivingRights({ home, environment, byHash, log, signal: over.signal }));
  try {
    return await core.run();
  } finally {
    over.abort();
  }
}

/** Nothing of ours is in it: container.js has taken that out. */
function environmentOf(certificates: Record<string, string>): NodeJS.ProcessEnv {
  const memory = memoryOfContainer();
  const heaps = heapsFor(memory, process.env);
  log.info('core.memory', { bytes: memory, ...heaps });
  return {
    // By it the core renews its revocation list, with the password that a release gives to the key of its CA.
    CAPASS: BUNDLE_PASSWORD,
    PASS: BUNDLE_PASSWORD,
    ...process.env,
    JAVA_TOOL_OPTIONS: [...JAVA_OPTIONS, process.env['JAVA_TOOL_OPTIONS'] ?? ''].join(' ').trim(),
    ...certificates,
    ...heaps,
  };
}

function awaitedOf(home: string, { databaseUrl, directory }: Coordinates): Awaited[] {
  const database: Awaited = {
    name: 'database',
    check: () =>
      withDatabase(databaseUrl, 'holdfast start', WITHIN_MS, async (sql) => {
        await sql`SELECT 1`;
      }),
  };
  return directory === undefined ? [database] : [database, { name: 'directory', check: () => bound(home, directory) }];
}

function bound(home: string, { url, dn, password }: DirectoryAccount): Promise<void> {
  return testBind({ url, caFile: certificateFiles(home).ca, dn, password, withinMs: WITHIN_MS });
}

const code = await main();
log.flush();
process.exit(code);

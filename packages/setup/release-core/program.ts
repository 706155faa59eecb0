// The container `core` of a TAK Server release: waits for database and directory, starts the programs of the release and watches
// them, carries out the rights that management asks for. Ends with 1 when a program dies, so that the engine starts it anew.

import { type JsonLog, jsonLog } from '@holdfast/kit/log';
import { withDatabase } from '@holdfast/kit/postgres';
import { leave } from '@holdfast/kit/service';
import { BUNDLE_PASSWORD, certificateFiles } from '@holdfast/pki/certificate-files';
import { testBind } from '../../../shared/sign-in/ldap/service-account.ts';
import { type Coordinates, type DirectoryAccount, readCoordinates } from './coordinates.ts';
import { ReleaseCore } from './core.ts';
import { takeReleaseCore } from './handover.ts';
import { heapsFor, memoryOfContainer } from './memory.ts';
import { carryOutGrants } from './rights.ts';
import type { Awaited } from './start.ts';

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

/** The program of the role `release-core`; it ends the process. */
export async function runReleaseCore(environment: NodeJS.ProcessEnv): Promise<never> {
  const log = jsonLog({ role: 'release-core' });
  leave(log, await watchRelease(environment, log));
}

async function watchRelease(given: NodeJS.ProcessEnv, log: JsonLog): Promise<number> {
  const { home, certificates } = takeReleaseCore(given);
  const coordinates = readCoordinates(home);
  const environment = environmentOf(given, certificates, log);
  const over = new AbortController();
  const messaging = Promise.withResolvers<void>();
  const core = new ReleaseCore({
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
  void messaging.promise.then(() => carryOutGrants({ home, environment, byHash, log, signal: over.signal }));
  try {
    return await core.run();
  } finally {
    over.abort();
  }
}

/** Nothing of ours is in it: container.js has taken that out. */
function environmentOf(
  given: NodeJS.ProcessEnv,
  certificates: Record<string, string>,
  log: JsonLog,
): NodeJS.ProcessEnv {
  const memory = memoryOfContainer();
  const heaps = heapsFor(memory, given);
  log.info('core.memory', { bytes: memory, ...heaps });
  return {
    // By it the core renews its revocation list, with the password that a release gives to the key of its CA.
    CAPASS: BUNDLE_PASSWORD,
    PASS: BUNDLE_PASSWORD,
    ...given,
    JAVA_TOOL_OPTIONS: [...JAVA_OPTIONS, given['JAVA_TOOL_OPTIONS'] ?? ''].join(' ').trim(),
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

// Runs the container `core` of a TAK Server release: waits for database and directory, runs and
// watches the programs, grants the rights that management requests. Exits with 1 if a program dies,
// to be restarted.

import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { DOMParser, type Element } from '@xmldom/xmldom';
import { messageOf, StackError } from '@holdfast/kit/app-error';
import { type JsonLog, jsonLog } from '@holdfast/kit/log';
import { withDatabase } from '@holdfast/kit/postgres';
import { Secret } from '@holdfast/kit/secret';
import { leave } from '@holdfast/kit/service';
import { BUNDLE_PASSWORD, certificateFiles } from '@holdfast/pki/certificate-files';
import { testBind } from '../../../shared/sign-in/ldap/service-account.ts';
import { ReleaseCore } from './core.ts';
import { takeReleaseCore } from './handover.ts';
import { heapsFor, memoryOfContainer } from './memory.ts';
import { carryOutGrants } from './rights.ts';
import type { Awaited } from './start.ts';

/**
 * Address and account of the directory from CoreConfig.xml, which the programs will use. Tried
 * before they start.
 */
export interface DirectoryAccount {
  url: string;
  /** Also the entry that the test looks up. */
  dn: string;
  password: Secret;
}

export interface Coordinates {
  databaseUrl: Secret;
  /** Undefined if this core uses no directory. */
  directory: DirectoryAccount | undefined;
}

/** Paths of the configuration, in the order in which a release tries them. */
const PLACES = ['conf/CoreConfig.xml', 'CoreConfig.xml'];
const REMEDY = 'run docker compose up configuration, which writes it, or restore it from a backup';

/** Reads them from CoreConfig.xml. Throws a StackError that names the file. */
export function readCoordinates(home: string): Coordinates {
  const path = PLACES.map((place) => join(home, place)).find((place) => existsSync(place));
  if (path === undefined) throw new StackError(`${join(home, 'CoreConfig.xml')} is missing.`, REMEDY);
  const root = rootOf(path);
  const connection = first(root, 'connection');
  const jdbc = /^jdbc:postgresql:\/\/([^/?#\s]+)\/([^/?#\s]+)/.exec(connection?.getAttribute('url') ?? '');
  if (connection === undefined || jdbc === null)
    throw new StackError(`${path} has no PostgreSQL database (repository/connection).`, REMEDY);
  const [user, password] = ['username', 'password'].map((name) =>
    encodeURIComponent(connection.getAttribute(name) ?? ''),
  );
  return {
    databaseUrl: new Secret(`postgres://${user}:${password}@${jdbc[1]}/${jdbc[2]}`),
    directory: directoryIn(root),
  };
}

function directoryIn(root: Element): DirectoryAccount | undefined {
  const ldap = first(root, 'ldap');
  const [url, dn, password] = ['url', 'serviceAccountDN', 'serviceAccountCredential'].map(
    (name) => ldap?.getAttribute(name) ?? '',
  );
  if (!url || !dn || !password) return undefined;
  return { url, dn, password: new Secret(password) };
}

function first(root: Element, name: string): Element | undefined {
  return root.getElementsByTagNameNS('*', name)[0];
}

function rootOf(path: string): Element {
  const onError = (_level: string, message: string): never => {
    throw new Error(message.split('\n')[0]);
  };
  try {
    const root = new DOMParser({ onError }).parseFromString(readFileSync(path, 'utf8'), 'text/xml').documentElement;
    if (root !== null) return root;
  } catch (error) {
    throw new StackError(`Couldn't read ${path}: ${messageOf(error)}.`, REMEDY, error);
  }
  throw new StackError(`${path} is empty.`, REMEDY);
}

const WITHIN_MS = 5_000;
const JAVA_OPTIONS = [
  // Otherwise a program that ran out of heap would keep running half-broken.
  '-XX:+ExitOnOutOfMemoryError',
  // The API process gets the CA key from messaging by reflection, which an EC key needs this flag
  // for. Without it no certificate can be signed. An RSA key needs no flag.
  '--add-opens=jdk.crypto.ec/sun.security.ec=ALL-UNNAMED',
];
/** For a release with another ready line. */
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

/** Contains nothing of ours: container.js has removed it. */
function environmentOf(
  given: NodeJS.ProcessEnv,
  certificates: Record<string, string>,
  log: JsonLog,
): NodeJS.ProcessEnv {
  const memory = memoryOfContainer();
  const heaps = heapsFor(memory, given);
  log.info('core.memory', { bytes: memory, ...heaps });
  return {
    // The core needs the password of the CA key to renew its revocation list.
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

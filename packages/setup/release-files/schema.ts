// Creates and migrates the tables of a release with its own SchemaManager.jar, before others can
// connect. That tool purges a database without its history, so it never runs on tables without that
// history. Extensions belong to the superuser, so that the tool, which runs as the owner of the
// tables, can't drop them.

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { accessSync, constants, existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as delay } from 'node:timers/promises';
import { codeOf, messageOf, StackError } from '@holdfast/kit/app-error';
import { writeFileAtomically } from '@holdfast/kit/files';
import { schemaNumber } from '../archive/needs.ts';
import { type Cluster, programEnvironment, runAsSuperuser } from '@holdfast/stack/database/cluster';
import { isReady, serverArguments, type ServerOptions } from '@holdfast/stack/database/postmaster';
import { CORE_DATABASE, CORE_OWNER, FLOWS_GRANTS, singleUser } from '@holdfast/stack/database/roles';

export interface ReleaseSchema {
  /**
   * The files of the release (/opt/tak), with db-utils/SchemaManager.jar and the patched
   * CoreConfig.xml.
   */
  directory: string;
  /** Port on 127.0.0.1 during the migration. */
  port: number;
  /** PATH for finding java. */
  searchPath: string;
  javaHome: string | undefined;
  /** Removed from the tool's output. */
  password: string;
}

/** Needed by the migrations V7 and V9; only a superuser can create them. */
const EXTENSIONS = ['postgis', 'pgcrypto'];
const JAR = 'SchemaManager.jar';
/** Enough: the tool only sends statements. */
const JAVA_HEAP = '-Xmx256m';
const FOREIGN = 'holdfast: foreign tables';
const NO_HISTORY = 'holdfast: no history';
const SCHEMA_NUMBER = /holdfast: schema (newer|older): (\d+)/;
const READY_WITHIN_MS = 600_000;
const LOOK_EVERY_MS = 50;

/**
 * Migrates the database `cot` of a stopped cluster to the schema of the release. Runs every time:
 * the tool notices within seconds that nothing is to do, and a remembered success would be wrong
 * after restoring a backup.
 */
export async function bringSchemaUpToDate(
  cluster: Cluster,
  schema: ReleaseSchema,
  server: Omit<ServerOptions, 'listen' | 'port' | 'more'>,
): Promise<void> {
  proveReadable(join(schema.directory, 'CoreConfig.xml'));
  const jar = join(schema.directory, 'db-utils', JAR);
  proveReadable(jar);
  const brought = await schemaNumber(readFileSync(jar));
  const check = (state: 'newer' | 'older'): string[] => (brought === undefined ? [] : [raiseIfSchema(state, brought)]);
  await inCore(cluster, brought, [
    ...EXTENSIONS.map((name) => `CREATE EXTENSION IF NOT EXISTS ${name}`),
    raiseUnless(FOREIGN, `${HAS_HISTORY} OR NOT (${HAS_TABLES})`),
    ...check('newer'),
  ]);
  writeFileAtomically(server.hbaFile, `host ${CORE_DATABASE} ${CORE_OWNER} 127.0.0.1/32 scram-sha-256\n`, 0o644);
  const args = serverArguments(cluster.pgdata, { ...server, listen: '127.0.0.1', port: schema.port });
  const running = await temporaryServer(cluster, args, 'migrate its schema');
  try {
    await upgrade(schema);
  } finally {
    await ended(running);
  }
  await inCore(cluster, brought, [raiseUnless(NO_HISTORY, HAS_HISTORY), ...check('older'), FLOWS_GRANTS]);
}

const HAS_HISTORY = `to_regclass('public.schema_version') IS NOT NULL`;
/** Ignores tables of extensions. */
const HAS_TABLES = `EXISTS (SELECT FROM pg_class c WHERE c.relnamespace = to_regnamespace('public') AND c.relkind IN ('r', 'p', 'v', 'm', 'f') AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.deptype = 'e'))`;

function raiseUnless(words: string, condition: string): string {
  return `DO $check$ BEGIN
  IF NOT (${condition}) THEN RAISE EXCEPTION '${words}'; END IF;
END $check$`;
}

/** Compares the last migration that succeeded with the one that the release brings. */
function raiseIfSchema(state: 'newer' | 'older', brought: number): string {
  return `DO $check$ DECLARE found int; BEGIN
  IF NOT (${HAS_HISTORY}) THEN RETURN; END IF;
  EXECUTE 'SELECT coalesce(max(version::int), 0) FROM public.schema_version WHERE success AND version ~ ''^[0-9]{1,6}$''' INTO found;
  IF found ${state === 'newer' ? '>' : '<'} ${brought} THEN RAISE EXCEPTION 'holdfast: schema ${state}: %', found; END IF;
END $check$`;
}

async function inCore(cluster: Cluster, brought: number | undefined, statements: string[]): Promise<void> {
  try {
    await runAsSuperuser(cluster, CORE_DATABASE, singleUser(statements));
  } catch (error) {
    const message = messageOf(error);
    if (message.includes(FOREIGN))
      throw new StackError(
        `The database ${CORE_DATABASE} has tables but no release history (schema_version), so the release's schema tool would delete them. Nothing was changed.`,
        'restore a backup of a release into this volume, or use an empty volume. To keep the tables, dump them with pg_dump first',
        error,
      );
    const [, state, found] = SCHEMA_NUMBER.exec(message) ?? [];
    if (state === 'newer')
      throw new StackError(
        `The database ${CORE_DATABASE} has schema ${found}, newer than the release's ${brought}: a newer release has used it. Nothing was changed.`,
        'start that release again (CORE_RELEASE in .env), or restore a backup of this release',
        error,
      );
    if (state === 'older')
      throw new StackError(
        `The release's schema tool reported success, but the database ${CORE_DATABASE} has schema ${found}, not ${brought}: the release would lose what it receives.`,
        'read its output above, fix what it reports, then start again',
        error,
      );
    if (message.includes(NO_HISTORY))
      throw new StackError(
        `The release's schema tool reported success but created no schema in the database ${CORE_DATABASE}.`,
        'read its output above. In CoreConfig.xml, repository/connection must name the user martiuser (docker compose up configuration writes it)',
        error,
      );
    if (/could not open extension control file|extension "[a-z]+" is not available/.test(message))
      throw new StackError(
        `This image lacks an extension that the schema of the release needs: ${message}`,
        'rebuild the images from the release archive: ./scripts/setup.sh ARCHIVE',
        error,
      );
    throw error;
  }
}

/** Starts a server that only this container needs, and waits until it is ready. */
export async function temporaryServer(cluster: Cluster, args: string[], purpose: string): Promise<ChildProcess> {
  const child = spawn(join(cluster.binaries, 'postgres'), args, {
    cwd: '/',
    env: programEnvironment(),
    stdio: ['ignore', 'inherit', 'inherit'],
  });
  const until = performance.now() + READY_WITHIN_MS;
  let failure: unknown;
  child.on('error', (error) => (failure = error));
  while (!answers(cluster, child)) {
    const over = failure !== undefined || child.exitCode !== null || child.signalCode !== null;
    if (over || performance.now() > until) {
      child.kill('SIGKILL');
      throw new StackError(
        `Couldn't start PostgreSQL on ${cluster.pgdata} to ${purpose}: ${failure === undefined ? (child.exitCode ?? child.signalCode ?? 'it does not become ready') : messageOf(failure)}.`,
        'fix what PostgreSQL reports above',
      );
    }
    await delay(LOOK_EVERY_MS);
  }
  return child;
}

function answers(cluster: Cluster, child: ChildProcess): boolean {
  try {
    return isReady(cluster, child);
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return false;
    throw error;
  }
}

export async function ended(server: ChildProcess): Promise<void> {
  if (server.exitCode !== null || server.signalCode !== null) return;
  server.kill('SIGINT');
  await once(server, 'exit');
}

/** The tool reads user and password from CoreConfig.xml. Only the address is an argument. */
async function upgrade({ directory, port, searchPath, javaHome, password }: ReleaseSchema): Promise<void> {
  say('database.schema_upgrading', { tool: JAR });
  const url = `jdbc:postgresql://127.0.0.1:${port}/${CORE_DATABASE}`;
  const child = spawn('java', [JAVA_HEAP, '-jar', JAR, '-url', url, 'upgrade'], {
    cwd: join(directory, 'db-utils'),
    env: {
      ...programEnvironment(),
      PATH: searchPath,
      HOME: '/tmp',
      ...(javaHome === undefined ? {} : { JAVA_HOME: javaHome }),
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let last = '';
  let complaint: string | undefined;
  const lines = [child.stdout, child.stderr].map(async (stream) => {
    for await (const text of createInterface({ input: stream })) {
      if (text.trim() === '') continue;
      last = password === '' ? text : text.replaceAll(password, '***');
      if (/\b(?:ERROR|FATAL|Exception)\b/.test(last)) complaint = last;
      say('database.schema', { line: last });
    }
  });
  let outcome: number | string;
  try {
    const [code, signal] = (await once(child, 'close')) as [number | null, NodeJS.Signals | null];
    outcome = code ?? signal ?? '';
  } catch (error) {
    outcome = codeOf(error) === 'ENOENT' ? 'java is missing in this image' : messageOf(error);
  }
  await Promise.all(lines);
  if (outcome === 0) return say('database.schema_up_to_date', { tool: JAR });
  throw new StackError(
    `The release's schema tool (${JAR} upgrade) failed (${outcome}): ${complaint ?? last}`,
    'read its output above. In CoreConfig.xml, repository/connection must have the password CORE_DB_PASSWORD (docker compose up configuration writes it)',
  );
}

function proveReadable(file: string): void {
  try {
    accessSync(file, constants.R_OK);
  } catch (error) {
    throw new StackError(
      `Couldn't read ${file} (${codeOf(error) ?? messageOf(error)}), which the release's schema tool needs.`,
      'run docker compose up -d --wait. The volume core-data must be mounted there, with the files of the services release and configuration, readable for group 10001',
      error,
    );
  }
}

function say(event: string, more: Record<string, string>): void {
  const line = { time: new Date().toISOString(), level: 'info', role: 'database', event, ...more };
  process.stdout.write(`${JSON.stringify(line)}\n`);
}

/** The PostgreSQL of a release's database image. */
export interface ReleasePrograms {
  /** Directory of the PostgreSQL programs. */
  binaries: string;
  major: string;
}

/**
 * The only PostgreSQL below `root`, the root directory of an image, in the layout of Debian or of
 * PGDG for RHEL.
 */
export function releasePrograms(root: string): ReleasePrograms {
  const found = [...majorsIn(join(root, 'usr/lib/postgresql'), ''), ...majorsIn(join(root, 'usr'), 'pgsql-')];
  const [programs, ...others] = found;
  if (programs === undefined)
    throw new StackError(
      `This image has no PostgreSQL server, neither in ${join(root, 'usr/lib/postgresql/N/bin')} nor in ${join(root, 'usr/pgsql-N/bin')}.`,
      'rebuild the images from the release archive: ./scripts/setup.sh ARCHIVE',
    );
  if (others.length > 0)
    throw new StackError(
      `This image has ${found.length} PostgreSQL servers, but must have one: ${found.map(({ binaries }) => binaries).join(', ')}.`,
      'rebuild the images from the release archive: ./scripts/setup.sh ARCHIVE',
    );
  return programs;
}

function majorsIn(directory: string, prefix: string): ReleasePrograms[] {
  if (!existsSync(directory)) return [];
  return readdirSync(directory)
    .filter((name) => name.startsWith(prefix) && /^\d+$/.test(name.slice(prefix.length)))
    .map((name) => ({ binaries: join(directory, name, 'bin'), major: name.slice(prefix.length) }))
    .filter(({ binaries }) => existsSync(join(binaries, 'postgres')))
    .toSorted((one, other) => Number(one.major) - Number(other.major));
}

/** Remedy for a cluster of another major version than the release's image. */
export function anotherMajor(major: string): (found: string) => string {
  return (found) =>
    `upgrade the database from version ${found} to ${major}: ./scripts/upgrade-database.sh --from RELEASE, where RELEASE is the release that created it (a directory of release/). Or go back to that release: ./scripts/upgrade-database.sh --back RELEASE`;
}

/** One connection per 4 MiB, the size of an idle one. */
const CONNECTIONS = { least: 200, most: 2100, mibEach: 4 } as const;
const BUFFERS_SHARE = 4;
/** The release's own value. */
const MAX_BUFFERS_MIB = 2560;

/** For management, flows, the tools of an operator, and what PostgreSQL keeps for a superuser. */
const OTHER_CONNECTIONS = 40;
/**
 * Messaging and API have one pool each. Retention and plugins take two of the other connections.
 */
const POOLS = 2;
const MAX_POOL = 200;

/** Connections for each pool of a release, for a server with this memory. */
export function poolSize(memory: string): number {
  return Math.min(MAX_POOL, Math.floor((Number(sharesOf(memory).max_connections) - OTHER_CONNECTIONS) / POOLS));
}

/**
 * Settings for a server that may use `memory` (4g, 6144m). The release's own values (2100
 * connections, 2560MB of buffers) are for a dedicated host.
 */
export function sharesOf(memory: string): Record<'max_connections' | 'shared_buffers', string> {
  const mib = Number.parseInt(memory, 10) * (memory.endsWith('g') ? 1024 : 1);
  const { least, most, mibEach } = CONNECTIONS;
  return {
    max_connections: String(Math.min(most, Math.max(least, Math.floor(mib / mibEach)))),
    shared_buffers: `${Math.min(MAX_BUFFERS_MIB, Math.floor(mib / BUFFERS_SHARE))}MB`,
  };
}

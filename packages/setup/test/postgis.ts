// Debian's PostgreSQL with PostGIS, as the database of a TAK Server release for tests: a cluster of
// its own, of this process.

import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chownSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import postgres from 'postgres';
import { freePort } from '../../../test/support/free-port.ts';

const PROGRAMS = '/usr/lib/postgresql';
const EXTENSIONS = '/usr/share/postgresql';
/** PostgreSQL refuses to run as root. */
const NOBODY = 65534;
const OWNER_PASSWORD = 'the password of the owner';
const READER_PASSWORD = 'the password of the reader';

/** The newest one that is there with PostGIS. */
const version = (existsSync(PROGRAMS) ? readdirSync(PROGRAMS) : [])
  .filter((each) => existsSync(join(PROGRAMS, each, 'bin/initdb')))
  .filter((each) => existsSync(join(EXTENSIONS, each, 'extension/postgis.control')))
  .toSorted((a, b) => Number(b) - Number(a))[0];

/** Why it cannot run here; undefined when it can. */
export const postgisMissing =
  version === undefined
    ? `${PROGRAMS} has no PostgreSQL with PostGIS (Debian package postgresql-15-postgis-3)`
    : undefined;

export interface Postgis {
  /**
   * The database `cot` as martiuser, who is a superuser there as in a release, and as who may only
   * read.
   */
  owner: string;
  reader: string;
  /** `15`. */
  version: string;
  end(): Promise<void>;
}

export async function startPostgis(): Promise<Postgis> {
  if (version === undefined) throw new Error(postgisMissing);
  const directory = mkdtempSync(join(tmpdir(), 'holdfast-postgis-'));
  const asRoot = process.getuid?.() === 0;
  const identity = asRoot ? { uid: NOBODY, gid: NOBODY } : {};
  if (asRoot) chownSync(directory, NOBODY, NOBODY);
  const program = (name: string): string => join(PROGRAMS, version, 'bin', name);
  const data = join(directory, 'data');
  const options = { ...identity, cwd: '/', env: { PATH: '/usr/bin:/bin', LC_ALL: 'C' } };
  const made = spawnSync(
    program('initdb'),
    ['-D', data, '-U', 'postgres', '-A', 'trust', '-E', 'UTF8', '--locale=C', '-N'],
    { ...options, encoding: 'utf8' },
  );
  if (made.status !== 0) throw new Error(`initdb ended with ${made.status}: ${made.stderr}`);
  const port = await freePort();
  const flags = { listen_addresses: '127.0.0.1', port, unix_socket_directories: '', fsync: 'off' };
  const args = Object.entries(flags).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
  const server = spawn(program('postgres'), ['-D', data, ...args], { ...options, stdio: 'ignore' });
  await ready(server, join(data, 'postmaster.pid'));

  const url = (user: string, password: string, database: string): string =>
    Object.assign(new URL(`postgres://127.0.0.1:${port}/${database}`), { username: user, password }).href;
  const superuser = postgres(url('postgres', '', 'postgres'), { max: 1, fetch_types: false });
  for (const statement of [
    `CREATE ROLE martiuser LOGIN SUPERUSER INHERIT CREATEDB PASSWORD '${OWNER_PASSWORD}'`,
    `CREATE ROLE holdfast_ro LOGIN PASSWORD '${READER_PASSWORD}'`,
    'GRANT pg_monitor, pg_read_all_data TO holdfast_ro',
    'CREATE DATABASE cot OWNER martiuser',
  ])
    await superuser.unsafe(statement);
  await superuser.end({ timeout: 1 });

  return {
    owner: url('martiuser', OWNER_PASSWORD, 'cot'),
    reader: url('holdfast_ro', READER_PASSWORD, 'cot'),
    version,
    async end() {
      const ended = once(server, 'exit');
      if (server.exitCode === null && server.kill('SIGQUIT')) await ended;
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

/** The file says `ready` in its eighth line as soon as connections are accepted. */
async function ready(server: ChildProcess, file: string): Promise<void> {
  for (let time = 0; time < 1200; time++) {
    if (server.exitCode !== null) throw new Error(`postgres ended with ${server.exitCode}`);
    if (existsSync(file) && readFileSync(file, 'utf8').split('\n')[7]?.trim() === 'ready') return;
    await new Promise((resolve) => setTimeout(resolve, 25));
  }
  throw new Error('postgres did not start in 30 s');
}

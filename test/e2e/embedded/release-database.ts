// The core's database as a release's container runs it, as a plain process on loopback: Debian's
// PostgreSQL 15 with PostGIS, files of a release, and a `java` that does to the database what the
// schema tool of a release does.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chownSync, existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { RELEASE_TABLES } from '../../../packages/setup/test/release-tables.ts';
import { AS_NOBODY, type Environment, NOBODY, NODE } from './container-programs.ts';
import { asRoot, cleanEnvironment, eventually, freeOffset, home, newDataDirectory } from './embedded.ts';

const PROGRAMS = '/usr/lib/postgresql';
const majors = (existsSync(PROGRAMS) ? readdirSync(PROGRAMS) : [])
  .filter((each) => existsSync(join('/usr/share/postgresql', each, 'extension/postgis.control')))
  .toSorted((one, other) => Number(other) - Number(one));

/** Why it cannot run here; undefined when it can. */
export const releaseDatabaseMissing = !asRoot
  ? 'a mount of its own cannot be had'
  : majors.length === 0
    ? 'there is no PostgreSQL with PostGIS (Debian package postgresql-15-postgis-3)'
    : undefined;

export const PASSWORDS = {
  CORE_DB_PASSWORD: 'core-pass/word#%@1',
  CORE_READER_PASSWORD: 'reader pass#word%2',
  FLOWS_DB_PASSWORD: 'flows pass:word?3',
};

/**
 * `upgrade` of the schema tool: coordinates of CoreConfig.xml unless they are given; without its
 * history it drops the extensions, and where that succeeds cleans the schema; then it makes the
 * tables, once.
 */
const JAVA = `#!/bin/bash
set -u
echo "called: java $*"
env | sed 's/^/environment: /'
url= command=
while [ $# -gt 0 ]; do
  case $1 in -jar) [ -e "$2" ] || exit 9; shift ;; -url) url=$2; shift ;; -*) ;; *) command=$1 ;; esac
  shift
done
[ "$command" = upgrade ] || exit 1
connection=$(grep -m 1 '<connection' ../CoreConfig.xml)
of() { sed 's/.* '"$1"'="\\([^"]*\\)".*/\\1/' <<<"$connection"; }
[ -n "$url" ] || url=$(of url)
export PGUSER=$(of username) PGPASSWORD="$(of password)" PGCONNECT_TIMEOUT=10
echo "the password is $PGPASSWORD"
sql() { psql -X -q -v ON_ERROR_STOP=1 -d "\${url#jdbc:}" "$@"; }
sql -c 'SELECT 1' >/dev/null || { echo "ERROR SchemaManager - no connection" >&2; exit 2; }
if ! sql -c 'SELECT count(*) FROM schema_version' >/dev/null 2>&1; then
  if sql -c 'DROP EXTENSION IF EXISTS postgis CASCADE'; then
    sql -c 'DROP SCHEMA public CASCADE; CREATE SCHEMA public'
    echo 'purged'
  fi
  sql -c 'CREATE TABLE schema_version (installed_rank int PRIMARY KEY)'
fi
[ "$(sql -A -t -c 'SELECT count(*) FROM schema_version')" = 1 ] || sql -1 -f ../db-utils/tables.sql || exit 2
echo 'TAK server database schema is up to date.'
`;

/** What a release has besides, and flows have no business in. */
const MORE_TABLES = `
CREATE TABLE IF NOT EXISTS certificate (id int PRIMARY KEY, certificate text, token text);
CREATE TABLE IF NOT EXISTS client_endpoint (id int PRIMARY KEY, callsign varchar, uid varchar);
CREATE TABLE IF NOT EXISTS client_endpoint_event (id int PRIMARY KEY, client_endpoint_id int);
CREATE TABLE IF NOT EXISTS tak_user (id int PRIMARY KEY, token varchar);
CREATE TABLE IF NOT EXISTS properties_value (id int PRIMARY KEY, value text);
CREATE VIEW latestcot AS SELECT id, uid FROM cot_router;
INSERT INTO schema_version VALUES (1);
`;

export interface ReleaseDatabase {
  root: string;
  volume: string;
  port: number;
  environment: Environment;
  url(user: string, password: string, database?: string): string;
}

/** Not started yet. */
export async function newReleaseDatabase(): Promise<ReleaseDatabase> {
  const root = newDataDirectory();
  const port = 5432 + (await freeOffset());
  const [volume, release, bin] = [join(root, 'volume'), join(root, 'image/opt/tak'), join(root, 'bin')];
  for (const path of [volume, join(release, 'db-utils'), bin, join(root, 'image/usr/lib/postgresql')])
    mkdirSync(path, { recursive: true, mode: 0o755 });
  const [major = ''] = majors;
  symlinkSync(join(PROGRAMS, major), join(root, 'image/usr/lib/postgresql', major));
  chownSync(volume, Number(NOBODY), Number(NOBODY));
  writeCoreConfig(root, PASSWORDS.CORE_DB_PASSWORD);
  writeFileSync(join(release, 'db-utils/SchemaManager.jar'), 'a jar');
  const tables = RELEASE_TABLES.replace('CREATE EXTENSION postgis;', 'CREATE EXTENSION IF NOT EXISTS postgis;');
  writeFileSync(join(release, 'db-utils/tables.sql'), `${tables}\n${MORE_TABLES}`);
  writeFileSync(join(bin, 'java'), JAVA, { mode: 0o755 });
  return {
    root,
    volume,
    port,
    environment: {
      PATH: `${bin}:/usr/bin:/bin`,
      HOLDFAST_LISTEN: '127.0.0.1',
      HOLDFAST_DATABASE_KIND: 'release',
      HOLDFAST_DATABASES: 'cot',
      HOLDFAST_DATABASE_DIR: volume,
      HOLDFAST_DATABASE_PORT: String(port),
      HOLDFAST_IMAGE_ROOT: join(root, 'image'),
      HOLDFAST_FLOWS_NETWORK: '127.0.0.2/32',
      CORE_DATABASE_MEMORY: '1g',
      DB_AUTOVACUUM_COST_LIMIT: '432',
      ...PASSWORDS,
    },
    url: (user, password, database = 'cot') =>
      `postgres://${user}:${encodeURIComponent(password)}@127.0.0.1:${port}/${database}`,
  };
}

export function writeCoreConfig(root: string, password: string): void {
  const connection = `<connection url="jdbc:postgresql://tak-database:5432/cot" username="martiuser" password="${password}"/>`;
  writeFileSync(join(root, 'image/opt/tak/CoreConfig.xml'), `<Configuration>\n  ${connection}\n</Configuration>\n`);
}

/** Puts another tool in the place of the schema tool. */
export function writeJava({ root }: ReleaseDatabase, text = JAVA): void {
  writeFileSync(join(root, 'bin/java'), text, { mode: 0o755 });
}

/**
 * The role as the first process of a namespace: its end is the end of all that came of it, as with
 * a container.
 */
export async function runInNamespace(
  { volume, environment }: Pick<ReleaseDatabase, 'volume' | 'environment'>,
  step: string[] = [],
): Promise<{ messagesOf: () => string; kill: () => Promise<void>; ended: Promise<unknown> }> {
  const own = ['--mount', '--propagation', 'private', '--pid', '--fork', '--kill-child'];
  const onMount = ['sh', '-c', 'mount --bind "$1" "$1" && shift && exec "$@"', 'sh', volume];
  const [program, ...args] = [
    'unshare',
    ...own,
    ...onMount,
    ...AS_NOBODY,
    NODE,
    join(home, 'dist/container.js'),
    'database',
    ...step,
  ];
  const child = spawn(program, args, { env: cleanEnvironment(environment), stdio: ['ignore', 'pipe', 'pipe'] });
  let output = '';
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => (output += text));
  const ended = once(child, 'close');
  const children = `/proc/${child.pid}/task/${child.pid}/children`;
  let first = 0;
  const isThere = (): boolean => (first = Number(readFileSync(children, 'utf8').trim())) > 1;
  await eventually('the first process of the namespace is there', isThere, 30_000).catch((error: unknown) => {
    child.kill('SIGKILL');
    throw error;
  });
  return {
    messagesOf: () => output,
    ended,
    async kill() {
      process.kill(first, 'SIGKILL');
      await ended;
    },
  };
}

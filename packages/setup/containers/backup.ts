// Says what a backup of the stack in containers holds: the volumes of others, mounted read-only,
// the databases of the network, and the settings as Docker Compose gave them to this container.

import { randomUUID } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { FilePart } from '@holdfast/backup/file-parts';
import type { DatabasePlace } from '@holdfast/backup/tables';
import type { BackupSource } from '@holdfast/backup/take';
import { StackError } from '@holdfast/kit/app-error';
import { RELEASE } from '@holdfast/kit/release';
import { Secret } from '@holdfast/kit/secret';
import { certificateFiles } from '@holdfast/pki/certificate-files';
import { MIGRATION_TABLES } from '@holdfast/stack/backup/build-data';
import { EXCLUDES } from '@holdfast/stack/operator/backup-source';
import {
  CORE_DATABASE,
  CORE_OWNER,
  IDENTITY_DATABASE,
  IDENTITY_OWNER,
  STATE_DATABASE,
  STATE_OWNER,
} from '@holdfast/stack/database/roles';
import { THRESHOLDS_FILE } from '../../../shared/settings/configuration.ts';
import { environmentLayer, formatEnvValue } from '../../../shared/settings/load.ts';
import { describeProblem } from '../../../shared/settings/setting.ts';
import type { Settings } from '../../../shared/settings/table.ts';
import { readManifest, type ReleaseManifest } from '../release-files/files.ts';
import { ownershipOf } from '../release-files/tree.ts';
import { MOUNTS, type Places, readPlaces } from './places.ts';
import { checked, databaseUrl, isOfStack, stackLayer } from './role-settings.ts';

interface Part {
  directory: string;
  /** The account that owns everything in it. */
  owner: number;
  mode: number;
}

/**
 * Where each part is mounted. The database of a release reads the files of its core as their group.
 */
export const PARTS: Readonly<Record<string, Part>> = {
  core: { directory: MOUNTS.core, owner: 10_001, mode: 0o750 },
  management: { directory: MOUNTS.management, owner: 10_001, mode: 0o700 },
  caddy: { directory: MOUNTS.caddy, owner: 10_001, mode: 0o700 },
  flows: { directory: MOUNTS.flowsData, owner: 1000, mode: 0o755 },
  identity: { directory: MOUNTS.identity, owner: 1000, mode: 0o755 },
};

/** The name of the settings in the part `settings`. */
export const SETTINGS_ENTRY = '.env';
export interface ContainerStack {
  places: Places;
  settings: Settings;
}

/**
 * The schemas of a TAK Server release and of authentik come from their own programs. A release goes
 * by its newest migration, as its start does. authentik keeps the names of migrations that later
 * versions have dropped.
 */
export const MARKS = {
  core: `SELECT 'schema ' || max(version::int) AS mark FROM public.schema_version
    WHERE success AND version ~ '^[0-9]{1,6}$' HAVING count(*) > 0`,
  identity: "SELECT 'migration ' || app || '.' || name AS mark FROM public.django_migrations",
} as const;

const NEEDS = ['CORE_DB_PASSWORD', 'APP_DB_PASSWORD', 'IDENTITY_DB_PASSWORD'] as const;

/** Throws a StackError that names the first setting that is missing or wrong. */
export function readStack(environment: NodeJS.ProcessEnv): ContainerStack {
  const { places, problems } = readPlaces(environment);
  const given = environmentLayer(environment);
  const layers = [given, stackLayer(places, given)];
  const settings = checked({ places, problems, given, layers }, NEEDS, NEEDS);
  const [first] = problems;
  if (first !== undefined) throw new StackError(describeProblem(first), 'correct it in .env');
  return { places, settings };
}

/** The databases of the network, each as the owner of its tables. */
export function databasesOf({ places, settings }: ContainerStack): BackupSource['databases'] {
  const place = (user: string, password: Secret | undefined, at: string, database: string): Secret =>
    new Secret(databaseUrl(user, password?.reveal() ?? '', at, database));
  const { coreDatabase, appDatabase } = places;
  const schemaOf = (key: keyof typeof MARKS): Pick<DatabasePlace, 'migrations' | 'marks'> =>
    places.stack === 'light' ? { migrations: MIGRATION_TABLES[key] } : { marks: MARKS[key] };
  return [
    {
      key: 'core',
      url: place(CORE_OWNER, settings.CORE_DB_PASSWORD, coreDatabase, CORE_DATABASE),
      ...schemaOf('core'),
    },
    {
      key: 'identity',
      url: place(IDENTITY_OWNER, settings.IDENTITY_DB_PASSWORD, appDatabase, IDENTITY_DATABASE),
      ...schemaOf('identity'),
    },
    {
      key: 'state',
      url: place(STATE_OWNER, settings.APP_DB_PASSWORD, appDatabase, STATE_DATABASE),
      migrations: MIGRATION_TABLES.state,
    },
  ];
}

/** `settingsFile`: where settingsText was written. */
export function containerSource(home: string, stack: ContainerStack, settingsFile: string): BackupSource {
  const isLight = stack.places.stack === 'light';
  const excludes: Partial<Record<string, (path: string) => boolean>> = {
    ...EXCLUDES,
    ...(isLight ? {} : { core: ofReleaseCore(readManifest(MOUNTS.core)) }),
  };
  const directories = Object.entries(PARTS).map(([part, { directory }]): FilePart => ({
    part,
    directory,
    exclude: excludes[part] ?? (() => false),
  }));
  return {
    stack: isLight ? 'light' : 'production',
    release: RELEASE,
    databases: databasesOf(stack),
    files: [
      {
        part: 'settings',
        files: [
          { name: SETTINGS_ENTRY, path: settingsFile },
          { name: 'thresholds.yml', path: join(home, THRESHOLDS_FILE) },
        ],
      },
      ...directories,
    ],
    caFile: certificateFiles(MOUNTS.core).ca,
  };
}

/**
 * Also leaves out the programs of a TAK Server release, which its archive brings, and what they
 * make at each start.
 */
export function ofReleaseCore(manifest: ReleaseManifest | undefined): (path: string) => boolean {
  return (path) =>
    EXCLUDES.core(path) ||
    /^(?:tomcat(?:-docbase)?\.|hsperfdata_)/.test(path) ||
    (manifest?.files[path] !== undefined && ownershipOf(path) === 'program');
}

/** Writes them for this program alone, on a tmpfs. Returns the path. */
export function writeSettings(environment: NodeJS.ProcessEnv, { places }: ContainerStack): string {
  const file = join(tmpdir(), `settings-${randomUUID()}`);
  const archive = places.stack === 'light' ? undefined : readManifest(MOUNTS.core)?.archive;
  writeFileSync(file, settingsText(environment, archive), { mode: 0o600, flag: 'wx' });
  return file;
}

/**
 * The settings as an .env file. Docker Compose sets TZ to UTC when .env does not. The file itself
 * can't be read here: it belongs to the operator alone. `archive`: that of the TAK Server release.
 */
export function settingsText(environment: NodeJS.ProcessEnv, archive?: ReleaseManifest['archive']): string {
  const lines = Object.keys(environment)
    .filter(isOfStack)
    .toSorted()
    .filter((name) => (environment[name] ?? '') !== '' && !(name === 'TZ' && environment[name] === 'UTC'))
    .map((name) => `${name}=${formatEnvValue(environment[name] ?? '')}`);
  const release = archive === undefined ? '' : `# Release archive: ${archive.archive} SHA-256 ${archive.sha256}\n`;
  return `# The settings of this stack, from its backup.\n${release}${lines.join('\n')}\n`;
}

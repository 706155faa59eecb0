// Says what a backup of the stack in containers holds: the volumes of others, mounted read-only,
// the databases of the network, and the settings as Docker Compose gave them to this container.

import { join } from 'node:path';
import type { FilePart } from '@holdfast/backup/file-parts';
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
import { environmentLayer } from '../../../shared/settings/load.ts';
import { describeProblem } from '../../../shared/settings/setting.ts';
import type { Settings } from '../../../shared/settings/table.ts';
import { MOUNTS, type Places, readPlaces } from './places.ts';
import { checked, databaseUrl, isOfStack, stackLayer } from './role-settings.ts';

/** Where each part is mounted, and the account that owns its files. */
export const PARTS: Readonly<Record<string, { directory: string; owner: number }>> = {
  core: { directory: MOUNTS.core, owner: 10_001 },
  management: { directory: MOUNTS.management, owner: 10_001 },
  caddy: { directory: MOUNTS.caddy, owner: 10_001 },
  flows: { directory: MOUNTS.flowsData, owner: 1000 },
  identity: { directory: MOUNTS.identity, owner: 1000 },
};

/** The name of the settings in the part `settings`. */
export const SETTINGS_ENTRY = '.env';
export interface ContainerStack {
  places: Places;
  settings: Settings;
}

const NEEDS = ['CORE_DB_PASSWORD', 'APP_DB_PASSWORD', 'IDENTITY_DB_PASSWORD'] as const;

/** Throws a StackError that names the first setting that is missing or wrong. */
export function readStack(environment: NodeJS.ProcessEnv): ContainerStack {
  const { places, problems } = readPlaces(environment);
  const given = environmentLayer(environment);
  const layers = [given, stackLayer(places, given)];
  const settings = checked({ places, problems, given, layers }, NEEDS, NEEDS);
  if (places.stack !== 'light')
    throw new StackError(
      'The stack has a TAK Server release, and this release of Holdfast backs that up only while it is stopped.',
      'see "Back up" in docs/containers.md',
    );
  const [first] = problems;
  if (first !== undefined) throw new StackError(describeProblem(first), 'correct it in .env');
  return { places, settings };
}

/** The databases of the network, each as the owner of its tables. */
export function databasesOf({ places, settings }: ContainerStack): BackupSource['databases'] {
  const place = (user: string, password: Secret | undefined, at: string, database: string): Secret =>
    new Secret(databaseUrl(user, password?.reveal() ?? '', at, database));
  const { coreDatabase, appDatabase } = places;
  return [
    {
      key: 'core',
      url: place(CORE_OWNER, settings.CORE_DB_PASSWORD, coreDatabase, CORE_DATABASE),
      migrations: MIGRATION_TABLES.core,
    },
    {
      key: 'identity',
      url: place(IDENTITY_OWNER, settings.IDENTITY_DB_PASSWORD, appDatabase, IDENTITY_DATABASE),
      migrations: MIGRATION_TABLES.identity,
    },
    {
      key: 'state',
      url: place(STATE_OWNER, settings.APP_DB_PASSWORD, appDatabase, STATE_DATABASE),
      migrations: MIGRATION_TABLES.state,
    },
  ];
}

/** `settingsFile`: where settingsText was written. */
export function lightSource(home: string, stack: ContainerStack, settingsFile: string): BackupSource {
  const directories = Object.entries(PARTS).map(([part, { directory }]): FilePart => ({
    part,
    directory,
    exclude: EXCLUDES[part as keyof typeof EXCLUDES] ?? (() => false),
  }));
  return {
    stack: 'light',
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
 * The settings as an .env file. Docker Compose sets TZ to UTC when .env does not. The file itself
 * can't be read here: it belongs to the operator alone.
 */
export function settingsText(environment: NodeJS.ProcessEnv): string {
  const lines = Object.keys(environment)
    .filter(isOfStack)
    .toSorted()
    .filter((name) => (environment[name] ?? '') !== '' && !(name === 'TZ' && environment[name] === 'UTC'))
    .map((name) => `${name}=${quoted(environment[name] ?? '')}`);
  return `# The settings of this stack, from its backup.\n${lines.join('\n')}\n`;
}

/** As Docker Compose and our own scripts read it. */
function quoted(value: string): string {
  if (/^[A-Za-z0-9_./:@,+-]*$/.test(value)) return value;
  if (!value.includes("'")) return `'${value}'`;
  return `"${value.replaceAll(/[\\"$]/g, (each) => `\\${each}`)}"`;
}

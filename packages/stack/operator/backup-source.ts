// Says what a backup of a running embedded stack holds, and checks that the stack runs.

import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import type { BackupSource } from '@holdfast/backup/take';
import { explainFileError, StackError } from '@holdfast/kit/app-error';
import { RELEASE } from '@holdfast/kit/release';
import { Secret } from '@holdfast/kit/secret';
import { certificateFiles } from '@holdfast/pki/certificate-files';
import { THRESHOLDS_FILE } from '../../../shared/settings/configuration.ts';
import { parseEnvFile } from '../../../shared/settings/load.ts';
import { MIGRATION_TABLES } from '../backup/build-data.ts';
import type { Layout } from '../process/layout.ts';
import { runningSupervisor } from '../process/ownership.ts';
import { GENERATED_NAMES, parseObject } from '../secrets.ts';

const stackFileSchema = z.object({
  database: z.string(),
  state_database: z.string(),
  identity_database: z.string(),
  settings_file: z.string().optional(),
});

/** What is made anew, was half written, or is over by the time of a restore. */
export const EXCLUDES: Readonly<Record<'core' | 'management' | 'flows', (path: string) => boolean>> = {
  core: (path) => /^(?:logs|uploads|nodes\/[^/]+\/uploads)$|(?:^|\/)\.new-|\.new$/.test(path),
  // alerts.json holds alerts while the database is unavailable: sent long before a restore.
  // process-id.txt is of one process. restored.json is of the restore that made this stack.
  management: (path) => /^(?:alerts|process-id)[^/]*$|^restored\.json|\.new$/.test(path),
  flows: (path) => /(?:^|\/)(?:node_modules|\.npm|\.cache)$/.test(path),
};

export interface EmbeddedSource extends BackupSource {
  /** What is not in the backup although the stack uses it. */
  warnings: string[];
  /** Undefined if the stack has none. */
  settingsFile: string | undefined;
}

/** Throws a StackError if the stack isn't running. */
export function embeddedSource(home: string, layout: Layout): EmbeddedSource {
  const { database, state_database, identity_database, settings_file } = stackFile(layout);
  const settings = settings_file !== undefined && existsSync(settings_file) ? settings_file : undefined;
  return {
    stack: 'embedded',
    release: RELEASE,
    databases: [
      { key: 'core', url: new Secret(database), migrations: MIGRATION_TABLES.core },
      { key: 'identity', url: new Secret(identity_database), migrations: MIGRATION_TABLES.identity },
      { key: 'state', url: new Secret(state_database), migrations: MIGRATION_TABLES.state },
    ],
    files: [
      {
        part: 'settings',
        files: [
          { name: 'secrets.json', path: layout.secrets },
          ...(settings === undefined ? [] : [{ name: '.env', path: settings }]),
          { name: 'thresholds.yml', path: join(home, THRESHOLDS_FILE) },
        ],
      },
      {
        part: 'core',
        directory: layout.core,
        exclude: EXCLUDES.core,
      },
      { part: 'management', directory: layout.management, exclude: EXCLUDES.management },
      {
        part: 'flows',
        directory: layout.flows,
        exclude: EXCLUDES.flows,
      },
    ],
    caFile: certificateFiles(layout.core).ca,
    warnings: secretsElsewhere(layout, settings),
    settingsFile: settings,
  };
}

function stackFile(layout: Layout): z.infer<typeof stackFileSchema> {
  if (runningSupervisor(layout) === undefined)
    throw new StackError(
      `No stack is running in ${layout.root}, and a backup is made of a running one.`,
      `start it with ./scripts/start.sh --embedded --data ${layout.root}, or give its data directory with --data DIR`,
    );
  const parsed = stackFileSchema.safeParse(parseObject(read(layout.stack)));
  if (parsed.success) return parsed.data;
  throw new StackError(
    `${layout.stack} doesn't name the databases of the stack: an older release wrote it.`,
    'stop the stack and start it again with this release',
  );
}

function secretsElsewhere(layout: Layout, settings: string | undefined): string[] {
  const kept = parseObject(read(layout.secrets)) ?? {};
  const set = settings === undefined ? {} : parseEnvFile(read(settings)).values;
  const missing = GENERATED_NAMES.filter((name) => (kept[name] ?? '') === '' && (set[name] ?? '') === '');
  if (missing.length === 0) return [];
  return [
    `Not in the backup, because the stack got them as environment variables: ${missing.join(', ')}. Keep them elsewhere`,
  ];
}

function read(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    throw explainFileError(error, path);
  }
}

// Reads and writes the four files of the retention service. Creates missing ones, reads them once
// at the start, and rewrites them on a change through the API. A manual edit takes effect at the
// next start.

import { mkdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { parse, stringify } from 'yaml';
import { z } from 'zod';
import { codeOf, explainFileError, messageOf, StackError } from '@holdfast/kit/app-error';
import { writeFileAtomically } from '@holdfast/kit/files';
import { KEEP_ALL, NEVER, type RetentionPolicy } from '@holdfast/kit/retention';
import { CoreFault } from '../http/answers.ts';
import type { ArchiveSettings, Retention } from '../model/parts.ts';
import {
  archiveCronSchema,
  archiveSchema,
  daysSchema,
  NO_ARCHIVE,
  scheduleFault,
  scheduleSchema,
} from './retention.ts';

const FILES = {
  policy: 'conf/retention/retention-policy.yml',
  schedule: 'conf/retention/retention-service.yml',
  archive: 'conf/retention/mission-archiving-config.yml',
  store: 'mission-archive/mission-store.yml',
};
const UNIT = 'The unit of dataRetentionMap is DAYS (embedded core); an empty value means keep forever.';
const SCHEDULE_FORM =
  'Quartz: second minute hour day-of-month month day-of-week, ? in one of the day fields, 1 = Sunday; "-" for never.';
const ARCHIVE_UNIT = 'The unit is days.';
const MAX_BYTES = 4_000_000;

/** A name that nothing reads is a mistake: its data would be kept forever. */
const policyFile = z.strictObject({
  dataRetentionMap: z
    .strictObject({
      cot: daysSchema.default(null),
      geochat: daysSchema.default(null),
      files: daysSchema.default(null),
      missionpackages: daysSchema.default(null),
      missions: daysSchema.default(null),
    })
    .nullish()
    .transform((map) => map ?? KEEP_ALL),
  retentionSettings: z
    .strictObject({ files: z.strictObject({ exemptKeywords: z.array(z.string()).nullish() }).nullish() })
    .nullish()
    .transform((settings) => settings?.files?.exemptKeywords ?? []),
});
const scheduleFile = z.strictObject({ cronExpression: scheduleSchema });
const archiveFile = archiveSchema
  .omit({ cronExpression: true })
  .extend({ missionCronExpression: archiveCronSchema })
  .transform(({ missionCronExpression, ...rest }): ArchiveSettings => ({
    cronExpression: missionCronExpression,
    ...rest,
  }));
const storeFile = z.strictObject({ missionArchiveStoreEntries: z.array(z.unknown()).nullish() });

export function retentionFilesIn(dataDir: string): string[] {
  return Object.values(FILES).map((file) => join(dataDir, file));
}

/** Throws a StackError that names the file and what is wrong in it. */
export function retentionFiles(dataDir: string): Retention {
  const pathOf = (file: keyof typeof FILES): string => join(dataDir, FILES[file]);
  const listeners: (() => void)[] = [];
  makeMissing();
  const { retentionSettings: exempt, ...read } = readFile(pathOf('policy'), policyFile);
  let policy: RetentionPolicy = read.dataRetentionMap;
  let schedule = readFile(pathOf('schedule'), scheduleFile).cronExpression;
  let archive = readFile(pathOf('archive'), archiveFile);
  const { missionArchiveStoreEntries: stored } = readFile(pathOf('store'), storeFile);

  function makeMissing(): void {
    for (const file of ['policy', 'schedule', 'archive', 'store'] as const) {
      if (textOf(pathOf(file)) !== undefined) continue;
      makeDirectoryOf(pathOf(file));
      writeFileAtomically(pathOf(file), EMPTY[file]);
    }
  }

  function changed(): void {
    for (const then of listeners) then();
  }

  /** The path of each, where it says something else than what is in force. */
  const edited = {
    policy(): string | undefined {
      const inForce = { dataRetentionMap: policy, retentionSettings: exempt };
      return isReported(pathOf('policy'), policyFile, inForce) ? undefined : pathOf('policy');
    },
    schedule: (): string | undefined =>
      isReported(pathOf('schedule'), scheduleFile, { cronExpression: schedule }) ? undefined : pathOf('schedule'),
  };

  return {
    policy: () => ({ ...policy }),
    changePolicy(given) {
      refuseEdited(edited.policy());
      const next = { ...policy, ...given };
      writeFileAtomically(pathOf('policy'), policyText(next, exempt));
      policy = next;
      changed();
      return { ...policy };
    },
    exemptKeywords: () => exempt,

    schedule: () => schedule,
    changeSchedule(text) {
      if (scheduleFault(text) !== undefined) return false;
      refuseEdited(edited.schedule());
      writeFileAtomically(pathOf('schedule'), scheduleText(text));
      schedule = text;
      changed();
      return true;
    },

    edited: () => edited.policy() ?? edited.schedule(),

    archive: () => ({ ...archive }),
    changeArchive(given) {
      const next = { ...archive, ...given };
      writeFileAtomically(pathOf('archive'), archiveText(next));
      archive = next;
      changed();
      return { ...archive };
    },
    archived: () => ({ missionArchiveStoreEntries: stored ?? [] }),

    reload(file) {
      if (file === 'policy') policy = readFile(pathOf('policy'), policyFile).dataRetentionMap;
      else if (file === 'schedule') schedule = readFile(pathOf('schedule'), scheduleFile).cronExpression;
      else archive = readFile(pathOf('archive'), archiveFile);
      changed();
    },

    onChange: (then) => void listeners.push(then),
  };
}

/**
 * A change through the API writes the file anew: what somebody has written there meanwhile would be
 * lost.
 */
function refuseEdited(path: string | undefined): void {
  if (path === undefined || textOf(path) === undefined) return;
  const text = `${path} was edited but not loaded. Restart the core, or undo the edit`;
  throw new CoreFault('conflict', text);
}

function policyText(policy: RetentionPolicy, exemptKeywords: readonly string[]): string {
  return yamlText(UNIT, { dataRetentionMap: policy, retentionSettings: { files: { exemptKeywords } } });
}

function scheduleText(cronExpression: string): string {
  return yamlText(SCHEDULE_FORM, { cronExpression });
}

function archiveText({ cronExpression, ...rest }: ArchiveSettings): string {
  return yamlText(ARCHIVE_UNIT, { missionCronExpression: cronExpression, ...rest });
}

function yamlText(comment: string, content: object): string {
  const lines = stringify(content, { nullStr: '', lineWidth: 0 }).replaceAll(/ +$/gm, '');
  return `---\n# ${comment}\n${lines}`;
}

const EMPTY: Record<keyof typeof FILES, string> = {
  policy: policyText(KEEP_ALL, []),
  schedule: scheduleText(NEVER),
  archive: archiveText(NO_ARCHIVE),
  store: yamlText('Archived missions.', { missionArchiveStoreEntries: [] }),
};

function makeDirectoryOf(path: string): void {
  try {
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  } catch (error) {
    throw explainFileError(error, path);
  }
}

function textOf(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return undefined;
    throw explainFileError(error, path);
  }
}

function readFile<T>(path: string, schema: z.ZodType<T>): T {
  const text = textOf(path) ?? '';
  const read = schema.safeParse(contentOf(text, path));
  if (read.success) return read.data;
  const { path: place = [], message = '' } = read.error.issues[0] ?? {};
  throw broken(path, [...(place.length === 0 ? [] : [place.join('.')]), message].join(': '));
}

/** What cannot be read says something else. */
function isReported<T>(path: string, schema: z.ZodType<T>, inForce: T): boolean {
  try {
    return isDeepStrictEqual(readFile(path, schema), inForce);
  } catch {
    return false;
  }
}

/**
 * A bare `-` after the name of a schedule is no YAML, and means the same as `"-"`; so does a file
 * of that single character.
 */
function contentOf(text: string, path: string): unknown {
  if (text.length > MAX_BYTES) throw broken(path, `it is larger than ${MAX_BYTES} bytes`);
  if (text.trim() === NEVER && path.endsWith(FILES.schedule)) return { cronExpression: NEVER };
  const quoted = text.replaceAll(/^([ \t]*(?:missionC|c)ronExpression:[ \t]*)-(?=[ \t]*(?:#.*)?\r?$)/gm, '$1"-"');
  try {
    return parse(quoted, { maxAliasCount: 0 });
  } catch (error) {
    throw broken(path, messageOf(error).split('\n')[0] ?? '');
  }
}

function broken(path: string, fault: string): StackError {
  return new StackError(
    `${path}: ${fault}.`,
    'fix that line, or delete the file: a new one is created that deletes nothing',
  );
}

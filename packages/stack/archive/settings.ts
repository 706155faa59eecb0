// Compares the settings of an archive with those of a running stack, and writes chosen ones into
// its settings file. Secrets that the data here depends on are never taken.

import { existsSync, readFileSync, statSync } from 'node:fs';
import type { PartChange } from '@holdfast/backup/parts/rows';
import { entriesOf, type ReadArchive } from '@holdfast/backup/archive';
import { StackError } from '@holdfast/kit/app-error';
import { writeFileAtomically } from '@holdfast/kit/files';
import { formatEnvValue, loadSettings, parseEnvFile } from '../../../shared/settings/load.ts';
import { describeProblem } from '../../../shared/settings/setting.ts';
import { isSettingName, SETTINGS } from '../../../shared/settings/table.ts';
import { GENERATED_NAMES, parseObject } from '../secrets.ts';

export interface ArchivedSettings {
  /** Of the settings file; empty if the stack had none. */
  values: Readonly<Record<string, string>>;
  /** Generated ones of an embedded stack, by name. */
  secrets: Readonly<Record<string, unknown>>;
}

/** From an archive that was verified. */
export async function readArchivedSettings(archive: ReadArchive): Promise<ArchivedSettings> {
  const texts = new Map<string, string>();
  for await (const { name, content } of entriesOf(archive)) {
    // Files come before databases.
    if (name.startsWith('databases/')) break;
    if (name !== 'files/settings/.env' && name !== 'files/settings/secrets.json') continue;
    const chunks: Uint8Array[] = [];
    for await (const chunk of content) chunks.push(chunk);
    texts.set(name, Buffer.concat(chunks).toString('utf8'));
  }
  const { values } = parseEnvFile(texts.get('files/settings/.env') ?? '');
  return { values, secrets: parseObject(texts.get('files/settings/secrets.json') ?? '') ?? {} };
}

/** Differences to the text of the settings file; `names` empty: all. Shows no secret. */
export function compareSettings(archived: ArchivedSettings, text: string, names: readonly string[]): PartChange[] {
  const now = parseEnvFile(text).values;
  const unknown = names.find((name) => archived.values[name] === undefined);
  if (unknown !== undefined)
    throw new StackError(
      `The archive has no setting ${unknown} in its settings file.`,
      'list its settings with ./scripts/backup.sh show ARCHIVE settings',
    );
  const chosen = Object.keys(archived.values).filter((name) => names.length === 0 || names.includes(name));
  return chosen.toSorted().map((target): PartChange => {
    const [before, after] = [now[target], archived.values[target] ?? ''];
    if (before === after) return { target, effect: 'kept', detail: 'is as in the archive' };
    if (GENERATED_NAMES.some((name) => name === target))
      return { target, effect: 'kept', detail: 'differs; never restored alone, because the data here depends on it' };
    if (before === undefined) return { target, effect: 'new', detail: shown(target, after) };
    return { target, effect: 'replaced', detail: `${shown(target, before)} becomes ${shown(target, after)}` };
  });
}

function shown(name: string, value: string): string {
  const isOpen = isSettingName(name) ? !SETTINGS[name].kind.secret : name.startsWith('MON_');
  return isOpen ? formatEnvValue(value) || '(empty)' : '***';
}

/**
 * Writes them at once, beside a copy of the old file. Throws a StackError, and nothing is changed,
 * if one of them is not valid in this release. Resolves with the path of the copy; undefined if
 * there was no file.
 */
export function writeSettings(
  file: string,
  { values }: ArchivedSettings,
  names: readonly string[],
  stamp: string,
): string | undefined {
  const before = existsSync(file) ? readFileSync(file, 'utf8') : undefined;
  const mode = before === undefined ? 0o600 : statSync(file).mode & 0o777;
  const after = names.reduce((text, name) => withSetting(text, name, values[name] ?? ''), before ?? '');
  const { problems } = loadSettings([{ source: 'env file', values: parseEnvFile(after).values }], 'embedded');
  const problem = problems.find(({ name }) => names.includes(name));
  if (problem !== undefined)
    throw new StackError(
      `A setting of the archive is not valid here: ${describeProblem(problem)}. Nothing was changed.`,
      'leave it out: name the settings to restore',
    );
  const copy = `${file}.before-restore-${stamp}`;
  if (before !== undefined) writeFileAtomically(copy, before, mode);
  writeFileAtomically(file, after, mode);
  return before === undefined ? undefined : copy;
}

/** Replaces the assignment that counts, the last one; without one it is added at the end. */
function withSetting(text: string, name: string, value: string): string {
  const lines = text.split('\n');
  const at = lines.findLastIndex((line) => new RegExp(`^\\s*(?:export\\s+)?${name}\\s*=`).test(line));
  const assignment = `${name}=${formatEnvValue(value)}`;
  if (at !== -1) return lines.with(at, assignment).join('\n');
  return `${text === '' || text.endsWith('\n') ? text : `${text}\n`}${assignment}\n`;
}

// What must not be a secret of a stack that others can reach: the text of an example, a password of a manual, one that is short.
// A start of the embedded stack says such things and goes on; one in containers is refused before anything is started.

import { isPublishedPassword, shortSecrets } from '../../../shared/settings/rules.ts';
import type { Problem } from '../../../shared/settings/setting.ts';
import { SETTING_NAMES, type SettingName, SETTINGS, type Settings } from '../../../shared/settings/table.ts';

/** What stands in examples until somebody writes something else. */
const PLACEHOLDER =
  /^(?:<.*>|\$\{?\w+\}?|\{\{.*\}\}|x{3,}|\*{3,}|\.{3,}|(?:change|replace)[-_. ]?(?:me|this|it)\b.*|changeme.*|(?:your|my|from|set|insert|enter|some|the)[-_. ].*|todo.*|fixme.*|tbd|none|null|undefined|unset|example.*|sample|dummy|placeholder.*|generated|secret|test|testing|default|hunter2|qwerty.*|letmein.*|welcome.*|1234.*|abcd?1?2?3?4?)$/i;
const LONGEST_PLACEHOLDER = 40;

/** Every secret that has to be another one before a start; none is quoted. */
export function secretProblems(settings: Settings): Problem[] {
  const published = SETTING_NAMES.filter((name) => isPublished(name, settings));
  const isNamed = new Set(published);
  return [
    ...published.map((name) => problem(name, 'is the text of an example, or a password that manuals publish', 16)),
    ...shortSecrets(settings)
      .filter(({ name }) => !isNamed.has(name))
      .map(({ name, length }) => problem(name, `is short: it must have at least ${length} characters`, length)),
  ];
}

function isPublished(name: SettingName, settings: Settings): boolean {
  const value: unknown = settings[name];
  if (!SETTINGS[name].kind.secret || typeof value !== 'object' || value === null || !('reveal' in value)) return false;
  const text = (value as { reveal(): string }).reveal();
  if (text === SETTINGS[name].example) return true;
  if (text.includes('://')) return false;
  return isPublishedPassword(text) || (text.length <= LONGEST_PLACEHOLDER && PLACEHOLDER.test(text));
}

function problem(name: SettingName, message: string, length: number): Problem {
  const remedy =
    SETTINGS[name].example === 'generated'
      ? `empty the line ${name}= in .env and run ./scripts/setup.sh, which writes a random one`
      : `set ${name} to a random one of at least ${length} characters, or remove it`;
  return { name, value: '***', message, remedy };
}

// Reads layers of variables (first one wins, empty means unset) into settings, or lists every problem at once.

import { nearestName } from '../domain/nearest-name.ts';
import type { Problem } from './problem.ts';
import { settingRules, type Mode } from './setting-rules.ts';
import { isSettingName, SETTING_NAMES, SETTINGS, type SettingName, type Settings } from './settings.ts';

/** Where a value came from, as people read it. */
export type Source = 'command line' | 'environment' | 'env file' | 'generated' | 'stack' | 'default' | 'unset';

/** Variables from one place, by name. */
export interface Layer {
  source: Source;
  values: Readonly<Record<string, string | undefined>>;
}

export interface LoadedSettings {
  settings: Settings;
  sources: Readonly<Record<SettingName, Source>>;
  problems: Problem[];
}

/** The value that the first layer gives to `name`; empty and blank values count as unset. */
export function pick(layers: readonly Layer[], name: string): { value: string; source: Source } | undefined {
  for (const layer of layers) {
    const value = layer.values[name];
    if (value !== undefined && value.trim() !== '') return { value, source: layer.source };
  }
  return undefined;
}

/**
 * Parses every variable of the table. With problems, `settings` holds what could be parsed and must not be used.
 * `mode` decides the rules that span variables: the container stack needs more than the embedded one.
 */
export function loadSettings(layers: readonly Layer[], mode: Mode): LoadedSettings {
  const problems: Problem[] = [];
  const values: Partial<Record<SettingName, unknown>> = {};
  const sources = {} as Record<SettingName, Source>;
  for (const name of SETTING_NAMES) {
    const setting = SETTINGS[name];
    const found = pick(layers, name);
    const given = setting.kind.secret ? found?.value : found?.value.trim();
    const textValue = given ?? setting.initial;
    sources[name] = found?.source ?? (setting.initial === undefined ? 'unset' : 'default');
    if (textValue === undefined) continue;
    const parsed = setting.kind.schema.safeParse(textValue);
    if (parsed.success) values[name] = parsed.data;
    else
      problems.push(
        badValue(
          name,
          textValue,
          parsed.error.issues.find((issue) => issue.code === 'custom' && issue.params?.['reason'] === true)?.message,
        ),
      );
  }
  const settings = Object.freeze(values) as Settings;
  problems.push(...settingRules(settings, mode, new Set(problems.map((problem) => problem.name))));
  return { settings, sources: Object.freeze(sources), problems };
}

function badValue(name: SettingName, value: string, reason: string | undefined): Problem {
  const { kind, example, initial } = SETTINGS[name];
  const otherwise = initial === undefined ? 'or remove it' : `or remove it for the default (${initial})`;
  return {
    name,
    value: kind.secret ? '***' : value,
    message: `must be ${kind.expects}${reason === undefined ? '' : `; ${reason}`}`,
    remedy:
      example === 'generated' ? 'remove it to have one generated' : `set for example ${name}=${example}, ${otherwise}`,
  };
}

/** Names in an env file that nothing reads, each with the known name that may be meant. */
export function unknownNames(names: readonly string[]): { name: string; meant: string | undefined }[] {
  return names
    .filter((name) => !isSettingName(name) && !name.startsWith('MON_'))
    .map((name) => ({ name, meant: nearestName(name, SETTING_NAMES) }));
}

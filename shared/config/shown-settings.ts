// The settings in force as a person may see them: where each came from, secrets only as set or unset.

import type { Source } from './load-settings.ts';
import { SECTIONS } from './setting.ts';
import { SETTING_NAMES, SETTINGS, type SettingName, type Settings } from './settings.ts';

export interface ShownSetting {
  name: SettingName;
  section: string;
  about: string;
  value: string | number | boolean | string[] | null;
  source: Source;
  secret: boolean;
}

/** Every setting in the order of the table. */
export function showSettings(settings: Settings, sources: Readonly<Record<SettingName, Source>>): ShownSetting[] {
  return SETTING_NAMES.map((name) => {
    const { kind, section, about } = SETTINGS[name];
    return {
      name,
      section: SECTIONS[section],
      about,
      value: shown(name, settings),
      source: sources[name],
      secret: kind.secret,
    };
  });
}

function shown(name: SettingName, settings: Settings): ShownSetting['value'] {
  const value = settings[name];
  if (SETTINGS[name].kind.secret) return value === undefined ? 'unset' : 'set';
  return (value as ShownSetting['value'] | undefined) ?? null;
}

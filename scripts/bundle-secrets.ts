// Which values are secret: of the settings by their table, of what the table does not know by its name or its form.

import { isSettingName, SETTINGS } from '../shared/config/settings.ts';
import type { KnownSecret } from './bundle-cleaning.ts';

const SECRET_NAME = /PASS|SECRET|TOKEN|KEY|CREDENTIAL|AUTH|PRIVATE/i;

/** The values of these settings that are secret, and the passwords in their URLs. */
export function secretsOf(values: Readonly<Record<string, string | undefined>>): KnownSecret[] {
  return Object.entries(values).flatMap(([name, value]) => {
    if (value === undefined || value.trim() === '') return [];
    const parts = passwordsIn(value).map((part) => ({ name, value: part }));
    return isSecret(name, value) ? [{ name, value }, ...parts] : parts;
  });
}

export function isSecret(name: string, value: string): boolean {
  if (isSettingName(name)) return SETTINGS[name].kind.secret || passwordsIn(value).length > 0;
  return SECRET_NAME.test(name) || passwordsIn(value).length > 0;
}

/** As it stands in the URL and as it is meant. */
function passwordsIn(value: string): string[] {
  const raw = /^[a-z][\w+.-]*:\/\/[^/@]*?:([^@]*)@/i.exec(value)?.[1];
  if (raw === undefined || raw === '') return [];
  return [...new Set([raw, decoded(raw)])];
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

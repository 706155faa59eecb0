// Secrets that are accepted although they are easier to guess than they should be: a start says so, and goes on.

import type { SettingName, Settings } from './settings.ts';

const WANTED_LENGTH: Partial<Record<SettingName, number>> = {
  CORE_WEBADMIN_PASSWORD: 12,
  CORE_DB_PASSWORD: 12,
  APP_DB_PASSWORD: 12,
  LDAP_BIND_PASSWORD: 12,
  FLOWS_DB_PASSWORD: 12,
  FLOWS_PASSWORD: 12,
  VIDEO_PUBLISH_PASSWORD: 12,
  VIDEO_READ_PASSWORD: 12,
  IDENTITY_ADMIN_PASSWORD: 12,
  IDENTITY_BOOTSTRAP_TOKEN: 20,
  IDENTITY_TOKEN: 20,
  METRICS_TOKEN: 16,
  AUDIT_KEY: 32,
  SESSION_KEY: 32,
};

/** Each secret that is shorter than it should be, with the length that is wanted; never the secret itself. */
export function shortSecrets(settings: Settings): { name: SettingName; length: number }[] {
  return Object.entries(WANTED_LENGTH).flatMap(([key, length]) => {
    const name = key as SettingName;
    const value = settings[name];
    const short = typeof value === 'object' && 'reveal' in value && value.reveal().length < length;
    return short ? [{ name, length }] : [];
  });
}

/** One sentence for each of them. */
export function weakSecrets(settings: Settings): string[] {
  return shortSecrets(settings).map(({ name, length }) => `${name} is short; use at least ${length} characters`);
}

// Reads and checks the settings of a role, with defaults for the services of the stack.

import { CORE_BASE } from '@holdfast/kit/directory';
import { CORE_DATABASE, CORE_OWNER, CORE_READER, STATE_DATABASE, STATE_OWNER } from '@holdfast/stack/database/roles';
import { readConfiguration } from '../../../shared/settings/configuration.ts';
import { type Layer, loadSettings, pick } from '../../../shared/settings/load.ts';
import { isPublishedPassword, shortSecrets } from '../../../shared/settings/rules.ts';
import type { Problem } from '../../../shared/settings/setting.ts';
import {
  isSettingName,
  SETTING_NAMES,
  type SettingName,
  type Settings,
  SETTINGS,
} from '../../../shared/settings/table.ts';
import { MOUNTS, type Places } from './places.ts';

/** `place`: host:port. */
export function databaseUrl(user: string, password: string, place: string, database: string): string {
  return `postgres://${user}:${encodeURIComponent(password)}@${place}/${database}`;
}

export interface RoleContext {
  home: string;
  places: Places;
  /** Planning adds to this list. */
  problems: Problem[];
  given: Layer;
  layers: Layer[];
}

/** All settings, as management reads them. Adds their problems. */
export function managementSettings({ home, places, problems, given, layers }: RoleContext): Settings {
  const { settings, problems: found } = readConfiguration(home, layers, places.stack);
  const unset = missing(given, managementNeeds(given));
  const isNamed = new Set(unset.map(({ name }) => name));
  // The URL contains the password: report only one of the two.
  if (isNamed.has('APP_DB_PASSWORD')) isNamed.add('DATABASE_URL');
  problems.push(...unset, ...found.filter(({ name }) => !isNamed.has(name)));
  return settings;
}

/** The settings that a role reads. Adds their problems, and the unset ones of `needs`. */
export function checked(
  { places, problems, given, layers }: Omit<RoleContext, 'home'>,
  names: readonly SettingName[],
  needs: readonly SettingName[],
): Settings {
  const own = layers.map(({ source, values }) => ({
    source,
    values: Object.fromEntries(names.map((name) => [name, values[name]])),
  }));
  const { settings, problems: found } = loadSettings(own, places.stack);
  const unset = missing(given, needs);
  const isNamed = new Set(unset.map(({ name }) => name));
  problems.push(...unset, ...found.filter(({ name }) => !isNamed.has(name) && names.some((each) => each === name)));
  return settings;
}

export function missing(given: Layer, needs: readonly SettingName[]): Problem[] {
  return needs
    .filter((name) => !isGiven(given, name))
    .map((name) => ({
      name,
      value: undefined,
      message: 'must be set in the container stack',
      remedy: `run ./scripts/setup.sh, which writes it to .env, or set ${name} in .env yourself`,
    }));
}

/** An external service needs no password of ours. */
export function managementNeeds(given: Layer): SettingName[] {
  const unless = (url: SettingName, ...names: SettingName[]): SettingName[] => (isGiven(given, url) ? [] : names);
  return [
    ...unless('DATABASE_URL', 'APP_DB_PASSWORD'),
    ...unless('CORE_DATABASE_URL', 'CORE_READER_PASSWORD', 'CORE_DB_PASSWORD'),
    'IDENTITY_TOKEN',
    'LDAP_BIND_PASSWORD',
    'CORE_WEBADMIN_PASSWORD',
  ];
}

/** Default addresses of the services. */
export function stackLayer({ stack, ports, coreDatabase, appDatabase }: Places, given: Layer): Layer {
  const light = stack === 'light';
  const [http, ldap] = light ? ['identity', 'identity'] : ['authentik-server', 'authentik-ldap'];
  const urlOf = (name: SettingName, user: string, place: string, database: string): string | undefined => {
    const password = given.values[name];
    return password === undefined || password === '' ? undefined : databaseUrl(user, password, place, database);
  };
  return {
    source: 'stack',
    values: defined([
      ['LISTEN_ADDRESS', '0.0.0.0'],
      ['CORE_API_URL', `https://core:${ports.core}`],
      ['CORE_ENROLLMENT_URL', `https://core:${ports.enrollment}`],
      ['CORE_STREAMING_URL', `tls://core:${ports.streaming}`],
      ['CORE_DATA_DIR', MOUNTS.core],
      ['DATA_DIR', MOUNTS.management],
      ['CORE_RETENTION_UNIT', light ? 'days' : undefined],
      ['IDENTITY_URL', `http://${http}:${ports.identity}`],
      ['LDAP_URL', `ldap://${ldap}:${ports.ldap}`],
      ['LDAP_BASE_DN', CORE_BASE],
      ['DATABASE_URL', urlOf('APP_DB_PASSWORD', STATE_OWNER, appDatabase, STATE_DATABASE)],
      // All three describe the same database: one from the settings needs the others from there
      // too.
      ...(isGiven(given, 'CORE_DATABASE_URL')
        ? []
        : ([
            ['CORE_DATABASE_URL', urlOf('CORE_READER_PASSWORD', CORE_READER, coreDatabase, CORE_DATABASE)],
            ['CORE_DATABASE_OWNER_URL', urlOf('CORE_DB_PASSWORD', CORE_OWNER, coreDatabase, CORE_DATABASE)],
            ['CORE_DATABASE_DIR', MOUNTS.coreDatabase],
          ] as const)),
    ]),
  };
}

export function isGiven(given: Layer, name: SettingName): boolean {
  return pick([given], name) !== undefined;
}

export function defined(entries: readonly (readonly [string, string | undefined])[]): Record<string, string> {
  return Object.fromEntries(entries.filter((entry): entry is [string, string] => entry[1] !== undefined));
}

/** Settings of Docker Compose that a restored stack needs too. */
const OF_COMPOSE = ['COMPOSE_FILE', 'COMPOSE_PROJECT_NAME', 'TZ'] as const;

/** What the role `backup` hands to its program: the variables of the stack, as JSON. */
export const BACKUP_STACK_VARIABLE = 'HOLDFAST_BACKUP_STACK';

/** The variables that say what and where the stack is. */
export function stackVariables(values: Readonly<Record<string, string | undefined>>): Record<string, string> {
  return defined(Object.entries(values).filter(([name]) => isOfStack(name) || name.startsWith('HOLDFAST_')));
}

/** A setting of ours, or of Docker Compose. */
export function isOfStack(name: string): boolean {
  return isSettingName(name) || name.startsWith('MON_') || OF_COMPOSE.some((each) => each === name);
}

/** Typical placeholder values. */
const PLACEHOLDER =
  /^(?:<.*>|\$\{?\w+\}?|\{\{.*\}\}|x{3,}|\*{3,}|\.{3,}|(?:change|replace)[-_. ]?(?:me|this|it)\b.*|changeme.*|(?:your|my|from|set|insert|enter|some|the)[-_. ].*|todo.*|fixme.*|tbd|none|null|undefined|unset|example.*|sample|dummy|placeholder.*|generated|secret|test|testing|default|hunter2|qwerty.*|letmein.*|welcome.*|1234.*|abcd?1?2?3?4?)$/i;
const MAX_PLACEHOLDER_LENGTH = 40;

/**
 * Secrets that must be changed before a start: placeholders, published passwords and short ones.
 * Never quotes them. The embedded stack only warns about them.
 */
export function secretProblems(settings: Settings): Problem[] {
  const published = SETTING_NAMES.filter((name) => isPublished(name, settings));
  const isNamed = new Set(published);
  return [
    ...published.map((name) => problem(name, 'is a placeholder or a published default password', 16)),
    ...shortSecrets(settings)
      .filter(({ name }) => !isNamed.has(name))
      .map(({ name, length }) => problem(name, `is too short: use at least ${length} characters`, length)),
  ];
}

function isPublished(name: SettingName, settings: Settings): boolean {
  const value: unknown = settings[name];
  if (!SETTINGS[name].kind.secret || typeof value !== 'object' || value === null || !('reveal' in value)) return false;
  const text = (value as { reveal(): string }).reveal();
  if (text === SETTINGS[name].example) return true;
  if (text.includes('://')) return false;
  return isPublishedPassword(text) || (text.length <= MAX_PLACEHOLDER_LENGTH && PLACEHOLDER.test(text));
}

function problem(name: SettingName, message: string, length: number): Problem {
  const remedy =
    SETTINGS[name].example === 'generated'
      ? `delete the value of ${name} in .env and run ./scripts/setup.sh, which generates a new one`
      : `set ${name} to a random value of at least ${length} characters, or remove it`;
  return { name, value: '***', message, remedy };
}

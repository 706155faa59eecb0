// Plans a container of ours from its environment before it starts anything. Reports every problem
// at once.

import { join } from 'node:path';
import { backupPlan } from '@holdfast/backup/handover';
import { CORE_VARIABLE, type CoreHandover } from '@holdfast/core/handover';
import { IDENTITY_VARIABLE, type IdentityHandover } from '@holdfast/identity/handover';
import { parseThinning } from '@holdfast/kit/core-wire';
import { basesOf } from '@holdfast/kit/directory';
import { certificateFiles } from '@holdfast/pki/certificate-files';
import {
  CORE_DATABASE,
  CORE_OWNER,
  type DatabaseName,
  IDENTITY_DATABASE,
  IDENTITY_OWNER,
  STATE_DATABASE,
} from '@holdfast/stack/database/roles';
import { environmentLayer, type Handover, HANDOVER_VARIABLE, type Layer, pick } from '../../../shared/settings/load.ts';
import type { Problem } from '../../../shared/settings/setting.ts';
import { isSettingName, SETTING_NAMES, type SettingName, type Settings } from '../../../shared/settings/table.ts';
import { IDENTITY_SETUP_VARIABLE, identitySetupHandover, webBaseProblems } from '../identity/handover.ts';
import { planReleaseCore, RELEASE_CORE_VARIABLE } from '../release-core/handover.ts';
import { planReleaseFiles, RELEASE_FILES_VARIABLE } from '../release-files/handover.ts';
import { databasePasswords, databasePlan, databasePrograms } from './database-plan.ts';
import type { DatabasePlan } from './database.ts';
import { MOUNTS, type Places, readPlaces } from './places.ts';
import type { ForProxy } from './proxy-certificate.ts';
import {
  BACKUP_STACK_VARIABLE,
  checked,
  databaseUrl,
  defined,
  isGiven,
  managementSettings,
  type RoleContext,
  secretProblems,
  stackLayer,
  stackVariables,
} from './role-settings.ts';

/** Names of the core for the other containers. */
const CORE_NAMES = ['core', 'takserver', 'localhost', '127.0.0.1'];
const MAX_NODES = 9;
/** Of a cluster: all nodes show the same certificate. */
const NODE_NAMES = Array.from({ length: MAX_NODES - 1 }, (_, index) => `core-${index + 2}`);
const NATS_USER = 'core';

export function coreHandover(places: Places, settings: Settings): CoreHandover {
  const cluster = clusterOf(places, settings);
  const { listen, ports, coreDatabase } = places;
  const { SERVER_ADDRESS: address = 'localhost', CORE_DB_PASSWORD: password } = settings;
  const built = databaseUrl(CORE_OWNER, password?.reveal() ?? '', coreDatabase, CORE_DATABASE);
  return {
    databaseUrl: settings.CORE_DATABASE_OWNER_URL?.reveal() ?? built,
    directory: settings.CORE_DATA_DIR ?? MOUNTS.core,
    addresses: [listen],
    apiPort: ports.core,
    enrollmentPort: ports.enrollment,
    streamingPort: ports.streaming,
    serverNames: [
      ...new Set([address, ...CORE_NAMES, ...(cluster ? NODE_NAMES : []), ...(settings.PUBLIC_ADDRESSES ?? [])]),
    ],
    serverAddress: address,
    ldap: {
      url: settings.LDAP_URL ?? '',
      bases: basesOf(settings.LDAP_BASE_DN, settings.LDAP_WEB_BASE_DN),
      bindPassword: settings.LDAP_BIND_PASSWORD?.reveal(),
    },
    roleGroups: [settings.ADMIN_GROUP, settings.VIEWER_GROUP],
    trustedProxies: settings.TRUSTED_PROXIES ?? [],
    thinning: parseThinning(settings.STREAM_THINNING) ?? [],
    ...(cluster && { cluster }),
  };
}

/** The volume of the core is the same for all nodes; each has a directory of its own there. */
function clusterOf({ natsDirectory }: Places, settings: Settings): CoreHandover['cluster'] {
  const { CORE_NODE: number, CORE_DATA_DIR: core = MOUNTS.core, NATS_CA_FILE: given } = settings;
  if (number === undefined) return undefined;
  const node = number === 1 ? 'core' : `core-${number}`;
  const isMaker = given === undefined && number === 1;
  return {
    node,
    index: number - 1,
    directory: join(core, 'nodes', node),
    nats: {
      url: settings.NATS_URL ?? '',
      username: NATS_USER,
      password: settings.NATS_PASSWORD?.reveal() ?? '',
      caFile: given ?? certificateFiles(core).ca,
      ...(isMaker && { certificateDirectory: natsDirectory }),
    },
  };
}

export function identityHandover({ listen, ports, appDatabase }: Places, settings: Settings): IdentityHandover {
  const password = settings.IDENTITY_DB_PASSWORD?.reveal() ?? '';
  return {
    databaseUrl: databaseUrl(IDENTITY_OWNER, password, appDatabase, IDENTITY_DATABASE),
    secretKey: settings.IDENTITY_SECRET_KEY?.reveal() ?? '',
    apiToken: settings.IDENTITY_TOKEN?.reveal() ?? '',
    address: listen,
    httpPort: ports.identity,
    ldapPort: ports.ldap,
    searchPassword: settings.LDAP_BIND_PASSWORD?.reveal(),
    bases: basesOf(settings.LDAP_BASE_DN, settings.LDAP_WEB_BASE_DN),
  };
}

/** The roles of our image, each with its program next to container.js. */
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
  backup: 'container-backup-service.js',
} as const;

export type Role = keyof typeof ROLES;

export type ContainerPlan =
  | { role: 'database'; database: DatabasePlan }
  | {
      role: Exclude<Role, 'database'>;
      program: string;
      /** All of our variables in the program's environment. */
      environment: Record<string, string>;
      /** Set if the process supplies the proxy with certificates. */
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

const OF_CLUSTER = ['CORE_NODE', 'NATS_URL', 'NATS_PASSWORD', 'NATS_CA_FILE'] as const;

const OF_CERTIFICATES = [
  'CERTIFICATE_COUNTRY',
  'CERTIFICATE_STATE',
  'CERTIFICATE_CITY',
  'CERTIFICATE_ORGANIZATION',
  'CERTIFICATE_UNIT',
] as const;
/** Other settings that a release needs. */
const OF_CORE = ['PUBLIC_ADDRESSES', 'CORE_DATABASE_MEMORY', 'LDAP_URL', 'LDAP_BASE_DN', 'LDAP_WEB_BASE_DN'] as const;
const OF_RELEASE = [...OF_CORE, ...OF_CERTIFICATES] as const;

export function isRole(name: string): name is Role {
  return Object.hasOwn(ROLES, name);
}

/** The plan, or every problem that prevents it. `home` is the root of the release. */
export function planContainer(home: string, role: Role, environment: NodeJS.ProcessEnv): ContainerPlan | Problem[] {
  const { places, problems } = readPlaces(environment);
  const given = environmentLayer(environment);
  const start: RoleContext = { home, places, problems, given, layers: [given, stackLayer(places, given)] };
  const plan = PLANS[role](start);
  return problems.length > 0 ? problems : plan;
}

/** The environment without our settings, secrets and HOLDFAST_ variables. */
export function withoutOurs(environment: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const kept = Object.entries(environment).filter(([name]) => !isOurs(name));
  return Object.fromEntries(kept);
}

/**
 * URL of the Holdfast database in the management container; undefined without its password in the
 * environment.
 */
export function stackDatabaseUrl(environment: NodeJS.ProcessEnv): string | undefined {
  const given = environmentLayer(environment);
  return stackLayer(readPlaces(environment).places, given).values['DATABASE_URL'];
}

const PLANS: Record<Role, (start: RoleContext) => ContainerPlan> = {
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
    // In subdomain mode the proxy has its own certificates, so it doesn't get our key.
    const withKey = settings.DEPLOY_MODE === 'direct';
    const proxy = { core: settings.CORE_DATA_DIR ?? MOUNTS.core, directory: places.proxyDirectory, withKey };
    const plan = planned('management', { [HANDOVER_VARIABLE]: JSON.stringify(handover) });
    // Of several processes the first one supplies the others' programs: two would write each file.
    return (settings.MANAGEMENT_REPLICA ?? 1) === 1 ? { ...plan, proxy } : plan;
  },

  core({ places, problems, given, layers }) {
    const ownerUrl = 'CORE_DATABASE_OWNER_URL';
    const password = isGiven(given, ownerUrl) ? [] : (['CORE_DB_PASSWORD'] as const);
    const needs = ['SERVER_ADDRESS', 'DEPLOY_MODE', 'LDAP_BIND_PASSWORD', ...password] as const;
    const others = [
      'PUBLIC_ADDRESSES',
      'LDAP_URL',
      'ADMIN_GROUP',
      'VIEWER_GROUP',
      'TRUSTED_PROXIES',
      'STREAM_THINNING',
    ] as const;
    const names: SettingName[] = [...needs, ...others, ...OF_DIRECTORY, 'CORE_DATA_DIR', ownerUrl];
    const settings = checked({ places, problems, given, layers }, [...names, ...OF_CLUSTER], needs);
    problems.push(...clusterProblems(settings));
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
    // Our own core creates everything else by itself.
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

  backup(start) {
    const stack = JSON.stringify(stackVariables(start.given.values));
    const needs = ['CORE_DB_PASSWORD', 'APP_DB_PASSWORD', 'IDENTITY_DB_PASSWORD', 'BACKUP_TOKEN'] as const;
    const names = SETTING_NAMES.filter((name) => name.startsWith('BACKUP_'));
    const settings = checked(start, [...needs, ...names], needs);
    const { listen: address, ports } = start.places;
    const token = settings.BACKUP_TOKEN?.reveal() ?? '';
    const plan = backupPlan(start.home, ports.backup, { settings, token, address, data: MOUNTS.backups });
    return planned('backup', { ...plan?.environment, [BACKUP_STACK_VARIABLE]: stack });
  },

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
        message: 'must list the databases of this container',
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

/** A node needs its number and its way to the others. */
function clusterProblems(settings: Settings): Problem[] {
  const { CORE_NODE: number, NATS_URL: url, NATS_PASSWORD: password, NATS_CA_FILE: caFile } = settings;
  const unset = (name: SettingName, because: string, remedy: string): Problem[] => [
    { name, value: undefined, message: `must be set, because ${because} is`, remedy },
  ];
  if (number === undefined) {
    const reason = url === undefined ? (caFile === undefined ? undefined : 'NATS_CA_FILE') : 'NATS_URL';
    if (reason === undefined) return [];
    return unset('CORE_NODE', reason, `set CORE_NODE=1 for the first node, or remove ${reason} for a core of its own`);
  }
  return [
    ...(url === undefined ? unset('NATS_URL', 'CORE_NODE', 'set NATS_URL=tls://nats:4222, or remove CORE_NODE') : []),
    ...(password === undefined
      ? unset('NATS_PASSWORD', 'CORE_NODE', 'run ./scripts/setup.sh --light --cluster, which makes one')
      : []),
  ];
}

function planned(role: Exclude<Role, 'database'>, environment: Record<string, string>): ContainerPlan {
  return { role, program: ROLES[role], environment };
}

function settingsOf(values: Layer['values']): Record<string, string> {
  return defined(Object.entries(values).filter(([name]) => isSettingName(name) || name.startsWith('MON_')));
}

function isOurs(name: string): boolean {
  return SETTING_NAMES.some((each) => each === name) || /^(?:HOLDFAST|MON)_/.test(name);
}

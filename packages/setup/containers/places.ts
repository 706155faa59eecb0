// Reads the addresses and directories of the stack's services from the HOLDFAST_ variables, with
// defaults for containers. Settings for people are in shared/settings/table.ts.

import { isIPv4 } from 'node:net';
import type { DatabaseName } from '@holdfast/stack/database/roles';
import { HIGHEST_BASE_PORT, type Ports, portsWithOffset } from '@holdfast/stack/process/layout';
import type { Problem } from '../../../shared/settings/setting.ts';

export type StackKind = 'container' | 'light';

export interface Places {
  /** `light`: our own core and identity provider. */
  stack: StackKind;
  /** Address that every role listens on, except management, which has its own setting. */
  listen: string;
  ports: Ports;
  /** host:port */
  coreDatabase: string;
  appDatabase: string;
  /** The databases of a database container. */
  databases: DatabaseName[];
  databasePort: number;
  /** The volume of a database; the cluster is in `pgdata` below it. */
  databaseDirectory: string;
  /** `release`: the core database of a release, on the PostgreSQL of its image. */
  databaseKind: 'own' | 'release';
  /** Root directory of the image of a release, with its PostgreSQL and /opt/tak. */
  imageRoot: string;
  /** Subnet that only the flow engine uses to connect to the core's database. */
  flowsNetwork: string | undefined;
  /** Directory where management puts the certificates for the proxy. */
  proxyDirectory: string;
  /** Directory where identity-setup puts the key of the LDAP outpost. */
  outpostDirectory: string;
  /** Directory where the first core node puts the certificate of the NATS server. */
  natsDirectory: string;
  /** Directory where management puts the certificate of the flow engine. */
  flowsDirectory: string;
}

/** Mount points of the volumes. */
export const MOUNTS = {
  core: '/var/lib/holdfast/core',
  management: '/var/lib/holdfast/management',
  database: '/var/lib/holdfast/database',
  /** The volume of the core's database, read-only, to measure its free space. */
  coreDatabase: '/var/lib/holdfast/core-database',
  proxy: '/var/lib/holdfast/proxy',
  /** The key of authentik's LDAP outpost. */
  outpost: '/var/lib/holdfast/outpost',
  flows: '/var/lib/holdfast/flows',
  nats: '/var/lib/holdfast/nats',
  /** Volumes of others, which only backups use. */
  caddy: '/var/lib/holdfast/caddy',
  flowsData: '/var/lib/holdfast/flows-data',
  identity: '/var/lib/holdfast/identity',
  backups: '/var/lib/holdfast/backups',
} as const;

const DATABASE_NAMES: readonly DatabaseName[] = ['cot', 'holdfast', 'identity'];

/** Reads an environment and finds its problems. Empty values count as unset. */
export function readPlaces(environment: NodeJS.ProcessEnv): { places: Places; problems: Problem[] } {
  const problems: Problem[] = [];
  const given = (name: string): string | undefined => environment[name]?.trim() || undefined;

  function checked(name: string, initial: string, isGood: (value: string) => boolean, remedy: string): string {
    const value = given(name) ?? initial;
    if (isGood(value)) return value;
    problems.push({ name, value, message: 'has an unknown value', remedy });
    return initial;
  }

  const isPath = (value: string): boolean => value.startsWith('/');
  const isPlace = (value: string): boolean => /^[^\s/@]+:\d{1,5}$/.test(value);
  const offset = checked(
    'HOLDFAST_PORT_OFFSET',
    '0',
    (value) => /^\d{1,5}$/.test(value) && Number(value) + HIGHEST_BASE_PORT < 65_536,
    'remove it, or set a number that keeps every port below 65536',
  );
  const ports = portsWithOffset(Number(offset));
  const stack = checked(
    'HOLDFAST_STACK',
    'container',
    (value) => value === 'container' || value === 'light',
    'set HOLDFAST_STACK=light for our own core and identity provider, or remove it',
  );
  const databaseKind = checked(
    'HOLDFAST_DATABASE_KIND',
    'own',
    (value) => value === 'own' || value === 'release',
    "set HOLDFAST_DATABASE_KIND=release in the image of a release's database, or remove it",
  );
  const flowsNetwork = checked(
    'HOLDFAST_FLOWS_NETWORK',
    '',
    (value) => value === '' || isSubnet(value),
    'set the subnet of the network flows-data, such as 172.16.66.0/24, or remove it',
  );
  const databases = (given('HOLDFAST_DATABASES') ?? '').split(',').filter((name) => name !== '');
  const places: Places = {
    stack: stack === 'light' ? 'light' : 'container',
    listen: given('HOLDFAST_LISTEN') ?? '0.0.0.0',
    ports,
    coreDatabase: checked('HOLDFAST_CORE_DATABASE', 'core-database:5432', isPlace, 'set it to HOST:PORT, or remove it'),
    appDatabase: checked('HOLDFAST_APP_DATABASE', 'app-database:5432', isPlace, 'set it to HOST:PORT, or remove it'),
    databases: databases.filter(isDatabaseName),
    databasePort: Number(
      checked(
        'HOLDFAST_DATABASE_PORT',
        String(ports.database),
        (value) => /^\d{1,5}$/.test(value) && Number(value) > 0 && Number(value) < 65_536,
        'set a port from 1 to 65535, or remove it',
      ),
    ),
    databaseDirectory: checked('HOLDFAST_DATABASE_DIR', MOUNTS.database, isPath, 'set an absolute path, or remove it'),
    databaseKind: databaseKind === 'release' ? 'release' : 'own',
    imageRoot: checked('HOLDFAST_IMAGE_ROOT', '/', isPath, 'set an absolute path, or remove it'),
    flowsNetwork: flowsNetwork === '' ? undefined : flowsNetwork,
    proxyDirectory: checked('HOLDFAST_PROXY_DIR', MOUNTS.proxy, isPath, 'set an absolute path, or remove it'),
    outpostDirectory: checked('HOLDFAST_OUTPOST_DIR', MOUNTS.outpost, isPath, 'set an absolute path, or remove it'),
    natsDirectory: checked('HOLDFAST_NATS_DIR', MOUNTS.nats, isPath, 'set an absolute path, or remove it'),
    flowsDirectory: checked('HOLDFAST_FLOWS_DIR', MOUNTS.flows, isPath, 'set an absolute path, or remove it'),
  };
  const zone = given('TZ');
  if (zone !== undefined && !isTimeZone(zone)) problems.push(unknownTimeZone(zone));
  if (places.databases.length !== databases.length) problems.push(unknownDatabases(databases));
  return { places, problems };
}

/** Only IPv4, like the networks of the stack. */
function isSubnet(value: string): boolean {
  const [address = '', prefix = '', more] = value.split('/');
  return more === undefined && isIPv4(address) && /^\d{1,2}$/.test(prefix) && Number(prefix) <= 32;
}

/** Node treats an unknown time zone as UTC, so retention would run at the wrong hour. */
function isTimeZone(name: string): boolean {
  try {
    return new Intl.DateTimeFormat('en', { timeZone: name }).resolvedOptions().timeZone !== '';
  } catch {
    return false;
  }
}

function unknownTimeZone(zone: string): Problem {
  return {
    name: 'TZ',
    value: zone,
    message: 'is not a known time zone (UTC would be used)',
    remedy: 'use a name from timedatectl list-timezones, such as TZ=Europe/Vienna, or remove it',
  };
}

function unknownDatabases(databases: readonly string[]): Problem {
  return {
    name: 'HOLDFAST_DATABASES',
    value: databases.join(','),
    message: `must be a list of ${DATABASE_NAMES.join(', ')}`,
    remedy: 'set HOLDFAST_DATABASES=cot or HOLDFAST_DATABASES=holdfast,identity',
  };
}

function isDatabaseName(name: string): name is DatabaseName {
  return DATABASE_NAMES.some((each) => each === name);
}

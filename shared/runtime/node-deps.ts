// Everything that functions and jobs need, on Node: one adapter for each outside system.

import { hostname } from 'node:os';
import { join } from 'node:path';
import { singleFlight } from '@holdfast/kit/concurrency';
import { type DatabaseOptions, freshConnections, keptDatabase, type RunSql } from '@holdfast/kit/kept-database';
import type { Log } from '@holdfast/kit/log';
import { httpHeartbeat } from '../alerts/heartbeat.ts';
import { alertJournal } from '../alerts/journal.ts';
import type { Alerts } from '../alerts/port.ts';
import { smtpNotifier } from '../alerts/smtp.ts';
import { AlertStore } from '../alerts/store.ts';
import { PostgresAlertTable } from '../alerts/table.ts';
import { AuditLog } from '../audit/audit-log.ts';
import { coreFiles } from '../core/files.ts';
import { ARCHIVES_DIRECTORY } from '../core/missions/archives.ts';
import { coreVacuum } from '../database/vacuum/statement.ts';
import { MemoryHealthCache } from '../health/cache.ts';
import type { HealthModule } from '../health/module.ts';
import type { Measurer } from '../health/port.ts';
import { HealthResultTable, keptId } from '../health/results.ts';
import { containerRuntime } from '../host/containers.ts';
import { diskUse } from '../host/disks.ts';
import { assetDirectory, hostNames, logDirectory, nodeProcess } from '../host/machine.ts';
import { memoryRequestStatistics } from '../host/request-statistics.ts';
import { tlsEndpoints } from '../host/tls-endpoints.ts';
import { upgradeFile } from '../host/upgrades.ts';
import type { Deps } from '../http/deps.ts';
import { appliedPasswordTable } from '../identity/applied-passwords.ts';
import { exclusiveByDatabase } from '../identity/exclusive.ts';
import type { AppliedPasswords, Exclusive } from '../identity/port.ts';
import { cronSeconds, intervalSeconds, minuteCron } from '../jobs/crons.ts';
import type { Job } from '../jobs/port.ts';
import { memoryJobStatistics } from '../jobs/statistics.ts';
import { type Configuration, watchConfiguration } from '../settings/configuration.ts';
import type { Handover, Layer } from '../settings/load.ts';
import type { Settings } from '../settings/table.ts';
import { SimulatorProcess } from '../simulation/process.ts';
import { GuardedAuthenticator } from '../sign-in/authenticator.ts';
import { failureTable } from '../sign-in/lockouts.ts';
import type { FastAuthenticator } from '../sign-in/port.ts';
import { endSignInsOf, SignedSignIns } from '../sign-in/signed-sign-ins.ts';
import {
  CORE,
  CORE_LOCK,
  DEVICE_LOCK,
  EXCLUSIVE,
  FEED_LOCK,
  FIGURES,
  PEOPLE_LOCK,
  type SharedDeps,
  sharedDeps,
  STATE,
} from './both-hosts.ts';
import { corePartsOf, directoryOf } from './core-part.ts';

export interface NodeHost {
  /** The root of the release. */
  home: string;
  startedAt: Date;
  configuration: Configuration;
  handover: Handover & { layers: Layer[] };
  log: Log;
  modules: readonly Pick<HealthModule, 'name' | 'isLocal'>[];
  jobs: readonly Job<Deps>[];
  /** The crons of the jobs are fired by a host that knows no seconds. */
  minuteCrons?: boolean;
  /** In the names of the files below DATA_DIR that each process has to itself. */
  suffix?: string;
}

/** Of these, Node's own code uses more than the port says. */
type OfNode = 'health' | 'requests' | 'authenticator';

export interface NodeDeps extends Omit<Deps, OfNode>, Pick<HostPorts, OfNode> {
  appliedPasswords: AppliedPasswords;
  /** As a worker in workerd may ask for them. */
  hostPorts: HostPorts;
}

/** Opens nothing by itself: every adapter connects when it is first asked. */
export function nodeDeps(host: NodeHost): NodeDeps {
  const { startedAt, configuration, handover, log } = host;
  const { settings, thresholds } = configuration;
  const { DATABASE_URL: stateUrl, CORE_DATABASE_URL: coreUrl } = settings;
  const state = keptDatabase(stateUrl, STATE);
  const lock = (place: DatabaseOptions): Exclusive => exclusiveByDatabase(keptDatabase(stateUrl, place));
  const shared = sharedDeps({
    startedAt,
    loaded: configuration,
    thresholds,
    listen: handover.tls?.address,
    mode: handover.mode,
    nodeVersion: process.versions.node,
    timeZone: ownTimeZone(),
    figures: keptDatabase(coreUrl, FIGURES),
    core: {
      run: keptDatabase(coreUrl, CORE),
      runSizes: keptDatabase(coreUrl, CORE),
      runFresh: freshConnections(coreUrl, CORE),
    },
    state,
    exclusive: lock(EXCLUSIVE),
    smtp: (url, from) => smtpNotifier({ url, from }),
  });
  const hostPorts = hostPortsOf(host, shared, state);
  return {
    ...shared,
    ...hostPorts,
    hostPorts,
    monitored: { ...shared.monitored, ...hostPorts },
    log,
    peopleLock: lock(PEOPLE_LOCK),
    deviceLock: lock(DEVICE_LOCK),
    feedLock: lock(FEED_LOCK),
    coreLock: lock(CORE_LOCK),
    appliedPasswords: appliedPasswordTable(state),
    together: singleFlight(),
  };
}

/**
 * The ports that need Node, one line each; in workerd they are calls to the host by these names.
 */
function hostPortsOf(host: NodeHost, { notify }: Pick<SharedDeps, 'notify'>, state: RunSql) {
  const { home, configuration, handover, log, modules, jobs, minuteCrons = false } = host;
  const { settings, thresholds } = configuration;
  const { HEARTBEAT_URL: beatUrl, CONTAINER_RUNTIME_URL: runtimeUrl, CORE_DATA_DIR: coreDirectory } = settings;
  const { DATA_DIR: ownDirectory } = settings;
  const measurer = measurerOf(host);
  return {
    ...corePartsOf(settings),
    ...signInPortsOf(settings, state, log),
    coreVacuum: coreVacuum({ url: settings.CORE_DATABASE_OWNER_URL, log }),
    coreFiles: coreDirectory === undefined ? undefined : coreFiles(coreDirectory),
    alerts: alertsOf(host, Object.keys(notify).length > 0),
    smtp: notify.email?.notifier,
    simulator: new SimulatorProcess(join(home, 'dist/simulate.js')),
    heartbeat: beatUrl === undefined ? undefined : httpHeartbeat(beatUrl, fetch, () => new Date()),
    logFiles: logDirectory(settings.LOG_DIR),
    assets: assetDirectory({
      files: {
        [join(home, 'node_modules/swagger-ui-dist')]: ['swagger-ui.css', 'swagger-ui-bundle.js'],
        [join(home, 'dist/pages')]: ['pages.css', 'pages.js', 'map.js', 'outlines.json'],
      },
      docs: join(home, 'dist/docs'),
    }),
    disks: diskUse(() => dataPaths(settings, handover.dataPlaces)),
    tls: tlsEndpoints({ ownCaFile: ownCaFile(settings) }),
    hostNames: hostNames({}),
    containers:
      runtimeUrl === undefined
        ? undefined
        : containerRuntime(runtimeUrl, {
            alone: handover.mode !== 'embedded',
            ...(handover.composeProject === undefined ? {} : { project: handover.composeProject }),
          }),
    upgrades: ownDirectory === undefined ? undefined : upgradeFile(ownDirectory),
    configurationFiles: watchConfiguration({ home, ...handover, envFile: handover.envFile, thresholds }),
    health: new MemoryHealthCache({
      intervals: Object.fromEntries(modules.map(({ name }) => [name, thresholds.modules[name]?.interval ?? 60])),
      sharing: { process: measurer, local: modules.filter(({ isLocal }) => isLocal).map(({ name }) => name) },
      nowMs: () => Date.now(),
      tickSeconds: minuteCrons ? 60 : 1,
    }),
    healthResults:
      settings.DATABASE_URL === undefined
        ? undefined
        : new HealthResultTable({ run: state, process: measurer, steadyMs: () => performance.now() }),
    jobStatistics: memoryJobStatistics(
      jobs.map((job) => ({
        name: job.name,
        intervalSeconds: () =>
          Math.max(intervalSeconds(job, thresholds), minuteCrons ? cronSeconds(minuteCron(job.cron)) : 1),
      })),
    ),
    requests: memoryRequestStatistics(),
    process: nodeProcess(),
  };
}

export type HostPorts = ReturnType<typeof hostPortsOf>;

function signInPortsOf(settings: Settings, state: RunSql, log: Log) {
  const directory = directoryOf(settings, ownCaFile(settings), log);
  const signIns = new SignedSignIns({ run: state, key: settings.SESSION_KEY });
  const audit = new AuditLog({
    run: state,
    key: settings.AUDIT_KEY,
    headFile: settings.DATA_DIR === undefined ? undefined : join(settings.DATA_DIR, 'audit-head.json'),
    log,
    endSignInsOf,
    signInsEnded: (username) => void authenticator.forget(username),
  });
  const authenticator: FastAuthenticator = new GuardedAuthenticator({
    directory,
    signIns,
    audit,
    failures: settings.DATABASE_URL === undefined ? undefined : failureTable(state),
    roles: { admin: settings.ADMIN_GROUP, viewer: settings.VIEWER_GROUP },
    webadminPassword: settings.CORE_WEBADMIN_PASSWORD,
    metricsToken: settings.METRICS_TOKEN,
    steadyMs: () => performance.now(),
    wallMs: () => Date.now(),
  });
  return { directory, signIns, audit, authenticator };
}

/** The core is on the same machine, or told the same TZ. */
export function ownTimeZone(): string {
  return Intl.DateTimeFormat().resolvedOptions().timeZone;
}

/** An alert must be on its way within seconds, also when the database only hangs. */
const ALERTS_WITHIN_MS = 2_000;
const ALERT_READS_WITHIN_MS = 5_000;

/** The name of a file in DATA_DIR that each management process has to itself. */
export function ofReplica(file: string, replica = 1): string {
  return replica === 1 ? file : file.replace(/(?=\.\w+$)/, `-${replica}`);
}

/** A file in DATA_DIR that each process has to itself; undefined without DATA_DIR. */
function ownFile({ configuration, suffix = '' }: NodeHost, name: string, ending: string): string | undefined {
  const { DATA_DIR: directory, MANAGEMENT_REPLICA: replica } = configuration.settings;
  return directory === undefined ? undefined : join(directory, ofReplica(`${name}${suffix}${ending}`, replica));
}

function measurerOf(host: NodeHost): Measurer {
  const { MANAGEMENT_REPLICA: replica = 1 } = host.configuration.settings;
  const name = replica === 1 ? hostname() : `${hostname()} (process ${replica})`;
  return { id: keptId(ownFile(host, 'process-id', '.txt'), host.log), name };
}

function alertsOf(host: NodeHost, anybody: boolean): Alerts {
  const { configuration, log } = host;
  const journal = ownFile(host, 'alerts', '.json');
  const { DATABASE_URL: url } = configuration.settings;
  const { alert_cooldown: cooldownSeconds } = configuration.thresholds;
  const within = (withinMs: number) => new PostgresAlertTable(keptDatabase(url, { ...STATE, withinMs }));
  return new AlertStore({
    table: url === undefined ? undefined : within(ALERTS_WITHIN_MS),
    reads: url === undefined ? undefined : within(ALERT_READS_WITHIN_MS),
    journal: journal === undefined ? undefined : alertJournal(journal, log),
    policy: { cooldownSeconds, anybody },
    runner: crypto.randomUUID(),
    clock: { wallMs: () => Date.now(), steadyMs: () => performance.now() },
    log,
  });
}

/** Whose file systems the module `disk` measures. */
export function dataPaths(
  {
    CORE_DATA_DIR: core,
    CORE_DATABASE_DIR: database,
    DATA_DIR: own,
    LOG_DIR: logs,
  }: Pick<Settings, 'CORE_DATA_DIR' | 'CORE_DATABASE_DIR' | 'DATA_DIR' | 'LOG_DIR'>,
  places: readonly string[] = [],
): string[] {
  const wal = database === undefined ? undefined : join(database, 'pg_wal');
  // A volume of its own where processes on several machines share it.
  const archives = own === undefined ? undefined : join(own, ARCHIVES_DIRECTORY);
  return [...new Set(['/', ...places, database, wal, core, archives, logs].filter((path) => path !== undefined))];
}

function ownCaFile({ CORE_DATA_DIR: core }: Settings): string | undefined {
  return core === undefined ? undefined : join(core, 'certs/files/ca.pem');
}

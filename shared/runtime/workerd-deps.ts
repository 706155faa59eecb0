// Everything that functions and jobs need, in workerd: databases by a fresh connection for each piece of work, the rest
// from the Node host.

import { z } from 'zod';
import { AppError } from '@holdfast/kit/app-error';
import type { Directory } from '@holdfast/kit/directory';
import { bytesOfBase64 } from '@holdfast/kit/encoding';
import { freshConnections } from '@holdfast/kit/kept-database';
import type { Log } from '@holdfast/kit/log';
import type { Alerts, Heartbeat, Notifier } from '../alerts/port.ts';
import type { Audit } from '../audit/port.ts';
import type { ClientKeys, CoreDevices, CoreEnrollment } from '../core/devices/port.ts';
import type { Core, CoreAuthority, CoreFiles, CoreNotices, CoreRetention } from '../core/port.ts';
import type { CoreVacuum } from '../database/port.ts';
import type { AdminGrants, Bundles } from '../devices/port.ts';
import type { HealthCache } from '../health/port.ts';
import type {
  Asset,
  Assets,
  Containers,
  Disks,
  HostNames,
  LogFiles,
  ProcessStatus,
  TlsEndpoints,
} from '../host/port.ts';
import type { RequestStatistics } from '../host/request-statistics.ts';
import type { Deps } from '../http/deps.ts';
import { exclusiveByDatabase } from '../identity/exclusive.ts';
import type { JobStatistics } from '../jobs/port.ts';
import type { RetentionFiles } from '../retention/port.ts';
import { handoverSchema, loadSettings } from '../settings/load.ts';
import type { ConfigurationFiles } from '../settings/setting.ts';
import type { Thresholds } from '../settings/threshold-figures.ts';
import type { Authenticator, SignIns } from '../sign-in/port.ts';
import { CORE, CORE_LOCK, DEVICE_LOCK, EXCLUSIVE, FIGURES, PEOPLE_LOCK, sharedDeps, STATE } from './both-hosts.ts';
import { EXPOSED, type ExposedPort, type Outcome, type WireAsset } from './host-calls.ts';

// The HOST service binding, the worker's side: ports whose methods are calls to the Node host.

/** A service binding of workerd. */
export interface ServiceBinding {
  fetch(url: string, init: RequestInit): Promise<Response>;
}

export type HostCall = (port: ExposedPort, method: string, args: unknown[]) => Promise<unknown>;

/** Calls through the binding; rethrows what the host's method threw. */
export function hostCall(host: ServiceBinding, token: string): HostCall {
  return async function call(port, method, args) {
    const response = await host.fetch('http://host/', {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      body: JSON.stringify({ port, method, args: withoutLast(args) }),
    });
    if (!response.ok) throw new Error(`the host answered ${response.status} to ${port}.${method}`);
    const outcome = (await response.json()) as Outcome;
    if (!('error' in outcome)) return outcome.value;
    const { code, message } = outcome.error;
    throw code === undefined ? new Error(message) : new AppError(code, message);
  };
}

/** JSON would make null of what was left out. */
function withoutLast(args: unknown[]): unknown[] {
  return args.slice(0, args.findLastIndex((each) => each !== undefined) + 1);
}

/** The ports behind the binding, by their names there. */
interface HostPorts {
  directory: Directory;
  doors: Authenticator;
  signIns: SignIns;
  audit: Audit;
  core: Core;
  coreEnrollment: CoreEnrollment;
  coreDevices: CoreDevices;
  coreRetention: CoreRetention;
  retentionFiles: RetentionFiles;
  coreVacuum: CoreVacuum;
  coreNotices: CoreNotices;
  coreAuthority: CoreAuthority;
  adminGrants: AdminGrants;
  clientKeys: ClientKeys;
  bundles: Bundles;
  disks: Disks;
  coreFiles: CoreFiles;
  tls: TlsEndpoints;
  hostNames: HostNames;
  containers: Containers;
  configurationFiles: ConfigurationFiles;
  health: HealthCache;
  alerts: Alerts;
  smtp: Notifier;
  heartbeat: Heartbeat;
  jobStatistics: JobStatistics;
  requests: RequestStatistics;
  process: ProcessStatus;
  logFiles: LogFiles;
}

/** A port of the host. */
export function hostPort<N extends keyof HostPorts>(call: HostCall, port: N): HostPorts[N] {
  return Object.fromEntries(
    EXPOSED[port].map((method) => [method, (...args: unknown[]) => call(port, method, args)]),
  ) as unknown as HostPorts[N];
}

export function hostAssets(call: HostCall): Assets {
  return {
    async read(name): Promise<Asset | undefined> {
      const asset = (await call('assets', 'read', [name])) as WireAsset | undefined;
      return asset && { ...asset, body: bytesOfBase64(asset.body) };
    },
  };
}

/** The bindings of the worker, as packages/stack/dev-workerd.ts sets them. */
export interface WorkerEnv {
  HOST: ServiceBinding;
  /** Proves the host to the worker and the worker to the host. */
  HOST_TOKEN: string;
  /** JSON of WorkerFacts. */
  FACTS: string;
}

const factsSchema = z.object({
  handover: handoverSchema,
  startedAt: z.iso.datetime(),
  nodeVersion: z.string(),
  timeZone: z.string(),
  thresholds: z.custom<Thresholds>(),
});

export type WorkerFacts = z.infer<typeof factsSchema>;

export function workerdDeps(env: WorkerEnv): Deps {
  const { handover, startedAt, nodeVersion, timeZone, thresholds } = factsSchema.parse(JSON.parse(env.FACTS));
  const loaded = loadSettings(handover.layers, handover.mode);
  const { settings } = loaded;
  const uncoded = 'connection';
  const call = hostCall(env.HOST, env.HOST_TOKEN);
  const shared = sharedDeps({
    startedAt: new Date(startedAt),
    loaded,
    thresholds,
    listen: handover.tls?.address,
    mode: handover.mode,
    nodeVersion,
    timeZone,
    figures: freshConnections(settings.CORE_DATABASE_URL, { ...FIGURES, uncoded }),
    core: { run: freshConnections(settings.CORE_DATABASE_URL, { ...CORE, uncoded }) },
    state: freshConnections(settings.DATABASE_URL, { ...STATE, uncoded }),
    exclusive: exclusiveByDatabase(freshConnections(settings.DATABASE_URL, { ...EXCLUSIVE, uncoded }), {
      queued: false,
    }),
    smtp: () => hostPort(call, 'smtp'),
  });
  const alerts = hostPort(call, 'alerts');
  const directory = hostPort(call, 'directory');
  const heartbeat = settings.HEARTBEAT_URL === undefined ? undefined : hostPort(call, 'heartbeat');
  const core = hostPort(call, 'core');
  const coreEnrollment = hostPort(call, 'coreEnrollment');
  const coreDevices = hostPort(call, 'coreDevices');
  const clientKeys = hostPort(call, 'clientKeys');
  const coreRetention = hostPort(call, 'coreRetention');
  const retentionFiles = hostPort(call, 'retentionFiles');
  return {
    ...shared,
    log: consoleLog(),
    directory,
    doors: hostPort(call, 'doors'),
    signIns: hostPort(call, 'signIns'),
    audit: hostPort(call, 'audit'),
    peopleLock: exclusiveByDatabase(freshConnections(settings.DATABASE_URL, { ...PEOPLE_LOCK, uncoded }), {
      queued: false,
    }),
    deviceLock: exclusiveByDatabase(freshConnections(settings.DATABASE_URL, { ...DEVICE_LOCK, uncoded }), {
      queued: false,
    }),
    coreLock: exclusiveByDatabase(freshConnections(settings.DATABASE_URL, { ...CORE_LOCK, uncoded }), {
      queued: false,
    }),
    core,
    coreEnrollment,
    coreDevices,
    coreAuthority: hostPort(call, 'coreAuthority'),
    adminGrants: hostPort(call, 'adminGrants'),
    clientKeys,
    bundles: hostPort(call, 'bundles'),
    coreRetention,
    retentionFiles,
    coreVacuum: hostPort(call, 'coreVacuum'),
    coreNotices: hostPort(call, 'coreNotices'),
    alerts,
    heartbeat,
    logFiles: hostPort(call, 'logFiles'),
    assets: hostAssets(call),
    monitored: {
      ...shared.monitored,
      directory,
      core,
      coreEnrollment,
      coreDevices,
      clientKeys,
      coreRetention,
      retentionFiles,
      alerts,
      heartbeat,
      disks: hostPort(call, 'disks'),
      coreFiles: settings.CORE_DATA_DIR === undefined ? undefined : hostPort(call, 'coreFiles'),
      tls: hostPort(call, 'tls'),
      hostNames: hostPort(call, 'hostNames'),
      containers: settings.CONTAINER_RUNTIME_URL === undefined ? undefined : hostPort(call, 'containers'),
      configurationFiles: hostPort(call, 'configurationFiles'),
    },
    health: hostPort(call, 'health'),
    jobStatistics: hostPort(call, 'jobStatistics'),
    requests: hostPort(call, 'requests'),
    process: hostPort(call, 'process'),
    together: (_, work) => work(),
  };
}

/** One line per event at once: nothing may run after the request. */
function consoleLog(): Log {
  const line =
    (level: string): Log['info'] =>
    (event, fields = {}) => {
      console.log(JSON.stringify({ time: new Date().toISOString(), level, role: 'worker', event, ...fields }));
    };
  return { info: line('info'), warn: line('warn'), error: line('error') };
}

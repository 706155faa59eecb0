// Everything that functions and jobs need, in workerd: databases by a fresh connection for each piece of work, the rest
// from the Node host.

import { z } from 'zod';
import { exclusiveByDatabase } from '../adapters/exclusive.ts';
import { freshConnections } from '../adapters/kept-database.ts';
import { loadSettings } from '../config/load-settings.ts';
import type { Thresholds } from '../domain/thresholds.ts';
import type { Deps } from '../http/deps.ts';
import type { Log } from '../ports/log.ts';
import { CORE, CORE_LOCK, DEVICE_LOCK, EXCLUSIVE, FIGURES, PEOPLE_LOCK, sharedDeps, STATE } from './both-hosts.ts';
import { handoverSchema } from './handover.ts';
import { hostAssets, hostCall, hostPort, type ServiceBinding } from './host-ports.ts';

/** The bindings of the worker, as scripts/dev-workerd.ts sets them. */
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

// /actuator: whether the core works, and figures of its process. Only what is measured; no figure is made up.

import { messageOf } from '@holdfast/kit/app-error';
import { json, PageFault } from '../http/answers.ts';
import type { AdminRoute } from '../http/route.ts';
import type { AdminApiOptions } from './options.ts';

interface Component {
  status: 'UP' | 'DOWN';
  details?: Record<string, string>;
}

export function actuatorRoutes(options: AdminApiOptions): AdminRoute[] {
  const { database, directory, knownAccount, revocations, ownProcess, streamCounts, archiveCounts, now, log } = options;

  /** Rule `downIsAnAnswer`: whatever fails here makes that part DOWN. */
  async function component(name: string, ask: () => Promise<unknown>): Promise<Component> {
    try {
      await ask();
      return { status: 'UP' };
    } catch (error) {
      log.warn('core.component_down', { component: name, error: messageOf(error) });
      return { status: 'DOWN' };
    }
  }

  function revocationList(): Component {
    const nextUpdate = revocations.listTimes()?.nextUpdate;
    if (nextUpdate === undefined) return { status: 'DOWN' };
    return { status: nextUpdate > now() ? 'UP' : 'DOWN', details: { nextUpdate: nextUpdate.toISOString() } };
  }

  async function readHealth(): Promise<Response> {
    const [db, ldap] = await Promise.all([
      component('db', () => database.server()),
      component('ldap', () => directory.find(knownAccount)),
    ]);
    const components = { db, ldap, crl: revocationList() };
    const isUp = Object.values(components).every(({ status }) => status === 'UP');
    return json({ status: isUp ? 'UP' : 'DOWN', components }, isUp ? 200 : 503);
  }

  /** One process does the work of the release's two. */
  function readMemory(): Response {
    const { heapUsedBytes, heapCommittedBytes } = ownProcess.memory();
    return json({
      heapUsed: heapUsedBytes,
      heapCommitted: heapCommittedBytes,
      messagingHeapUsed: heapUsedBytes,
      messagingHeapCommitted: heapCommittedBytes,
    });
  }

  function readCpu(): Response {
    const { count, usage } = ownProcess.cpu();
    return json({ cpuCount: count, cpuUsage: usage, messagingCpuCount: count, messagingCpuUsage: usage });
  }

  async function readDisk(): Promise<Response> {
    const { totalBytes, freeBytes, usableBytes } = await ownProcess.disk();
    return json({
      totalSpace: totalBytes,
      freeSpace: freeBytes,
      usableSpace: usableBytes,
      usedSpace: totalBytes - freeBytes,
    });
  }

  async function readDatabase(): Promise<Response> {
    const server = await database.server();
    return json({ apiConnected: true, messagingConnected: true, ...server });
  }

  /** Reads are events that came, writes are events that were handed on. */
  function readNetwork(): Response {
    const counts = streamCounts?.();
    if (counts === undefined) throw new PageFault(404, 'There is no stream.');
    const { bytesRead, bytesWritten, read, delivered, clients } = counts;
    return json({ bytesRead, bytesWritten, numReads: read, numWrites: delivered, numClients: clients });
  }

  /** One queue here: a release's others have no counterpart, and no figure is made up for them. */
  function readQueues(): Response {
    const counts = archiveCounts?.();
    if (counts === undefined) throw new PageFault(404, 'There is no archive.');
    const { waiting, capacity, stored, skipped, lost } = counts;
    return json({
      repositorySize: waiting,
      repositoryCapacity: capacity,
      repositoryStored: stored,
      repositorySkipped: skipped,
      repositoryLost: lost,
    });
  }

  /** By the names of a JVM, whose heap is the heap of this process. */
  const metrics: Record<string, { description: string; baseUnit: string; value: () => number }> = {
    'process.start.time': {
      description: 'Start time of the process since unix epoch.',
      baseUnit: 'seconds',
      value: () => ownProcess.startedAt.getTime() / 1000,
    },
    'jvm.memory.used': {
      description: 'The amount of used memory',
      baseUnit: 'bytes',
      value: () => ownProcess.memory().heapUsedBytes,
    },
    'jvm.memory.max': {
      description: 'The maximum amount of memory in bytes that can be used for memory management',
      baseUnit: 'bytes',
      value: () => ownProcess.memory().heapCapBytes,
    },
  };

  function readMetric(name: string): Response {
    const metric = Object.hasOwn(metrics, name) ? metrics[name] : undefined;
    if (metric === undefined) throw new PageFault(404, 'There is no metric of this name.');
    const { description, baseUnit, value } = metric;
    return json({
      name,
      description,
      baseUnit,
      measurements: [{ statistic: 'VALUE', value: value() }],
      availableTags: [],
    });
  }

  return [
    { path: '/actuator/health', handlers: { GET: readHealth } },
    { path: '/actuator/metrics', handlers: { GET: () => json({ names: Object.keys(metrics) }) } },
    { path: '/actuator/metrics/:name', handlers: { GET: (c) => readMetric(c.req.param('name') ?? '') } },
    { path: '/actuator/takserver-database', handlers: { GET: readDatabase } },
    { path: '/actuator/custom-memory-metrics', handlers: { GET: readMemory } },
    { path: '/actuator/custom-cpu-metrics', handlers: { GET: readCpu } },
    { path: '/actuator/custom-disk-metrics', handlers: { GET: readDisk } },
    { path: '/actuator/custom-network-metrics', handlers: { GET: readNetwork } },
    { path: '/actuator/custom-queue-metrics', handlers: { GET: readQueues } },
  ];
}

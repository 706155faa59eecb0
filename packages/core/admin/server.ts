// Serves facts about the server (version, name, roles, counts, device profile) and its metrics.

import { join } from 'node:path';
import { messageOf } from '@holdfast/kit/app-error';
import { readOrMakeRandom } from '@holdfast/kit/files';
import { groupsOf } from '../groups/own-groups.ts';
import { json, PageFault, plainText, wrapped } from '../http/answers.ts';
import { type AdminContext, type AdminRoute, isAdmin } from '../http/route.ts';
import type { AdminApiOptions } from './options.ts';

/** The release whose API this is; clients know the form. The vendor numbers its builds from 1. */
export const API_RELEASE = { major: 5, minor: 7, patch: 0, branch: 'RELEASE' } as const;
export const CORE_VERSION = `${API_RELEASE.major}.${API_RELEASE.minor}-${API_RELEASE.branch}-${API_RELEASE.patch}`;

export function serverRoutes(options: AdminApiOptions): AdminRoute[] {
  const { nodeId, hostname, database } = options;

  /** Whoever may send into no group only reads. */
  async function listRoles(c: AdminContext): Promise<Response> {
    const { caller } = c.env;
    if (isAdmin(caller)) return json([caller.role]);
    const sends = (await groupsOf(caller, options)).some(({ direction }) => direction === 'IN');
    return json([...new Set(sends ? [caller.role] : [caller.role, 'ROLE_READONLY'])]);
  }

  return [
    { path: '/Marti/api/version', handlers: { GET: () => plainText(CORE_VERSION) } },
    { path: '/Marti/api/version/info', handlers: { GET: () => json({ ...API_RELEASE, variant: 'embedded' }) } },
    {
      path: '/Marti/api/version/config',
      handlers: { GET: () => wrapped('ServerConfig', { version: CORE_VERSION, api: '3', hostname }, nodeId) },
    },
    { path: '/Marti/api/node/id', handlers: { GET: () => plainText(nodeId) } },
    // There are no pages here: this is what everybody may open.
    { path: '/Marti/api/home', handlers: { GET: () => plainText('/Marti/api/version') } },
    { path: '/Marti/api/util/isAdmin', handlers: { GET: (c) => json(isAdmin(c.env.caller)) } },
    { path: '/Marti/api/util/user/roles', handlers: { GET: listRoles } },
    { path: '/Marti/api/database/cotCount', handlers: { GET: async () => json(await database.cotCount()) } },
  ];
}

export function nodeIdFile(dataDir: string): string {
  return join(dataDir, 'node-id');
}

/**
 * The name of this server in every wrapped answer. 32 hex digits from `{data_dir}/node-id`, which
 * is made when it is missing. Throws a StackError that names the file.
 */
export function readNodeId(dataDir: string): string {
  return readOrMakeRandom({
    path: nodeIdFile(dataDir),
    bytes: 16,
    remedy: 'restore the old number. Without one, delete the file: devices then treat this as a new server',
  });
}

/**
 * /actuator: whether the core works, and figures of its process. Only what is measured; no figure
 * is made up.
 */
interface Component {
  status: 'UP' | 'DOWN';
  details?: Record<string, string>;
}

export class Actuator {
  readonly #options: AdminApiOptions;
  /** By the names of a JVM, whose heap is the heap of this process. */
  readonly #metrics: Record<string, { description: string; baseUnit: string; value: () => number }>;

  constructor(options: AdminApiOptions) {
    this.#options = options;
    this.#metrics = {
      'process.start.time': {
        description: 'Start time of the process since unix epoch.',
        baseUnit: 'seconds',
        value: () => options.ownProcess.startedAt.getTime() / 1000,
      },
      'jvm.memory.used': {
        description: 'The amount of used memory',
        baseUnit: 'bytes',
        value: () => options.ownProcess.memory().heapUsedBytes,
      },
      'jvm.memory.max': {
        description: 'The maximum amount of memory in bytes that can be used for memory management',
        baseUnit: 'bytes',
        value: () => options.ownProcess.memory().heapCapBytes,
      },
    };
  }

  routes(): AdminRoute[] {
    return [
      { path: '/actuator/health', handlers: { GET: () => this.#readHealth() } },
      { path: '/actuator/metrics', handlers: { GET: () => json({ names: Object.keys(this.#metrics) }) } },
      { path: '/actuator/metrics/:name', handlers: { GET: (c) => this.#readMetric(c.req.param('name') ?? '') } },
      { path: '/actuator/takserver-database', handlers: { GET: () => this.#readDatabase() } },
      { path: '/actuator/custom-memory-metrics', handlers: { GET: () => this.#readMemory() } },
      { path: '/actuator/custom-cpu-metrics', handlers: { GET: () => this.#readCpu() } },
      { path: '/actuator/custom-disk-metrics', handlers: { GET: () => this.#readDisk() } },
      { path: '/actuator/custom-network-metrics', handlers: { GET: () => this.#readNetwork() } },
      { path: '/actuator/custom-queue-metrics', handlers: { GET: () => this.#readQueues() } },
    ];
  }

  /** Rule `downIsAnAnswer`: whatever fails here makes that part DOWN. */
  async #component(name: string, ask: () => Promise<unknown>): Promise<Component> {
    try {
      await ask();
      return { status: 'UP' };
    } catch (error) {
      this.#options.log.warn('core.component_down', { component: name, error: messageOf(error) });
      return { status: 'DOWN' };
    }
  }

  #revocationList(): Component {
    const nextUpdate = this.#options.revocations.listTimes()?.nextUpdate;
    if (nextUpdate === undefined) return { status: 'DOWN' };
    return {
      status: nextUpdate > this.#options.now() ? 'UP' : 'DOWN',
      details: { nextUpdate: nextUpdate.toISOString() },
    };
  }

  async #readHealth(): Promise<Response> {
    const [db, ldap] = await Promise.all([
      this.#component('db', () => this.#options.database.server()),
      this.#component('ldap', () => this.#options.directory.find(this.#options.knownAccount)),
    ]);
    const components = { db, ldap, crl: this.#revocationList() };
    const isUp = Object.values(components).every(({ status }) => status === 'UP');
    return json({ status: isUp ? 'UP' : 'DOWN', components }, isUp ? 200 : 503);
  }

  /** One process does the work of the release's two. */
  #readMemory(): Response {
    const { heapUsedBytes, heapCommittedBytes } = this.#options.ownProcess.memory();
    return json({
      heapUsed: heapUsedBytes,
      heapCommitted: heapCommittedBytes,
      messagingHeapUsed: heapUsedBytes,
      messagingHeapCommitted: heapCommittedBytes,
    });
  }

  #readCpu(): Response {
    const { count, usage } = this.#options.ownProcess.cpu();
    return json({ cpuCount: count, cpuUsage: usage, messagingCpuCount: count, messagingCpuUsage: usage });
  }

  async #readDisk(): Promise<Response> {
    const { totalBytes, freeBytes, usableBytes } = await this.#options.ownProcess.disk();
    return json({
      totalSpace: totalBytes,
      freeSpace: freeBytes,
      usableSpace: usableBytes,
      usedSpace: totalBytes - freeBytes,
    });
  }

  async #readDatabase(): Promise<Response> {
    const server = await this.#options.database.server();
    return json({ apiConnected: true, messagingConnected: true, ...server });
  }

  /** Reads are events that came, writes are events that were handed on. */
  #readNetwork(): Response {
    const counts = this.#options.streamCounts?.();
    if (counts === undefined) throw new PageFault(404, 'The stream is not running.');
    const { bytesRead, bytesWritten, read, delivered, clients, thinning } = counts;
    const { maxClients, cluster } = this.#options;
    const { user, system } = process.cpuUsage();
    return json({
      bytesRead,
      bytesWritten,
      numReads: read,
      numWrites: delivered,
      numClients: clients,
      maxClients,
      thinning,
      cpuSeconds: (user + system) / 1e6,
      ...(cluster && { cluster: cluster.state() }),
    });
  }

  /** One queue here: a release's others have no counterpart, and no figure is made up for them. */
  #readQueues(): Response {
    const counts = this.#options.archiveCounts?.();
    if (counts === undefined) throw new PageFault(404, 'The archive is not running.');
    const { waiting, capacity, stored, skipped, lost } = counts;
    return json({
      repositorySize: waiting,
      repositoryCapacity: capacity,
      repositoryStored: stored,
      repositorySkipped: skipped,
      repositoryLost: lost,
    });
  }

  #readMetric(name: string): Response {
    const metric = Object.hasOwn(this.#metrics, name) ? this.#metrics[name] : undefined;
    if (metric === undefined) throw new PageFault(404, 'No metric with this name.');
    const { description, baseUnit, value } = metric;
    return json({
      name,
      description,
      baseUnit,
      measurements: [{ statistic: 'VALUE', value: value() }],
      availableTags: [],
    });
  }
}

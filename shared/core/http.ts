// Calls the core's admin API on 8443, over mutual TLS with the certificate of svc_api.

import { z } from 'zod';
import { AppError } from '@holdfast/kit/app-error';
import { ATTEMPT_RESULTS, type CoreNode, type EnrollmentAttempt } from '@holdfast/kit/core-wire';
import { nameKey } from '@holdfast/kit/names';
import { oneLine, shortened } from '@holdfast/kit/text';
import { coreCertificates } from './certificates.ts';
import { coreClients, coreGroups, coreNotices } from './clients.ts';
import type { Core, CoreNotices, CorePlugin, CoreRetention, CoreStatus, CoreStreamFacts } from './port.ts';
import { type CoreCalls, CorePort, WITHIN_MS } from './request.ts';
import { HttpCoreRetention } from './retention.ts';

const VERSION = '/Marti/api/version';
const METRICS = '/actuator/metrics';
const STREAM = '/actuator/custom-network-metrics';
const ATTEMPTS = '/Marti/api/tls/attempts';
const MAX_CHARACTERS = 100;
/** The status of a core without such a list: a release has no such path. */
const NOT_REPORTED: ReadonlySet<number> = new Set([403, 404, 405]);

const metric = z.object({ measurements: z.array(z.object({ value: z.number() })).min(1) });

const text = z
  .string()
  .nullish()
  .transform((value) => value ?? '');
const attempt = z.object({
  at: z.iso.datetime({ offset: true }).transform((value) => new Date(value).toISOString()),
  address: text,
  username: z.string(),
  clientUid: text,
  result: z.enum(ATTEMPT_RESULTS),
  reason: text,
});

const node: z.ZodType<CoreNode> = z.object({
  node: z.string(),
  state: z.enum(['up', 'stopped', 'lost']),
  heardAt: z.iso.datetime(),
  startedAt: z.iso.datetime(),
  version: z.string(),
  api: z.url(),
  enrollment: z.url(),
  streaming: z.url(),
  clients: z.number(),
  maxClients: z.number(),
  memoryBytes: z.number(),
  memoryCapBytes: z.number(),
});

/** A release has no `thinning`, and only one of several nodes has `cluster`. */
const streamFacts = z.object({
  numClients: z.number().default(0),
  maxClients: z.number().default(0),
  thinning: z.object({ seconds: z.number().nonnegative() }).optional(),
  cpuSeconds: z.number().optional(),
  cluster: z.object({ node: z.string(), isBusUp: z.boolean(), nodes: z.array(node) }).optional(),
});

/** The core's own facts, and recent enrollment attempts. */
export function coreStatus(port: CorePort): Pick<Core, 'status' | 'stream' | 'enrollmentAttempts'> {
  /** Text, whatever its content type, but not an HTML page. */
  async function version(calls: CoreCalls): Promise<string> {
    const answer = await calls.ask('GET', VERSION, { headers: { accept: 'text/plain, */*;q=0.5' } });
    if (answer.status !== 200) throw port.failure(`GET ${VERSION}`, answer);
    const message = shortened(oneLine(answer.text), MAX_CHARACTERS);
    if (message === '' || answer.kind === 'page') throw port.wrong(`answered GET ${VERSION} without a version`);
    return message;
  }

  /** Undefined when the core has no such figure. */
  async function figure(
    calls: CoreCalls,
    name: string,
    query: Record<string, string> = {},
  ): Promise<number | undefined> {
    const path = `${METRICS}/${name}`;
    const answer = await calls.ask('GET', path, { query });
    if (answer.status === 404) return undefined;
    return calls.read(`GET ${path}`, answer, metric).measurements[0]?.value;
  }

  return {
    async status(): Promise<CoreStatus> {
      const calls = port.within(WITHIN_MS);
      // JVM memory outside the heap has no cap of its own.
      const heap = { tag: 'area:heap' };
      const requests = [
        version(calls),
        figure(calls, 'process.start.time'),
        figure(calls, 'jvm.memory.used', heap),
        figure(calls, 'jvm.memory.max', heap),
      ] as const;
      // Reports the first failure in this order, not the quickest: a stable message avoids false
      // changes.
      await Promise.allSettled(requests);
      const [output, started, used, cap] = await Promise.all(requests);
      return {
        version: output,
        startedAt: started === undefined ? null : new Date(started * 1000).toISOString(),
        // -1 means no cap.
        memory: used === undefined ? null : { usedBytes: used, capBytes: cap === undefined || cap <= 0 ? null : cap },
      };
    },

    async stream(): Promise<CoreStreamFacts | undefined> {
      const calls = port.within(WITHIN_MS);
      const answer = await calls.ask('GET', STREAM);
      if (NOT_REPORTED.has(answer.status)) return undefined;
      const { numClients, maxClients, thinning, cpuSeconds, cluster } = calls.read(
        `GET ${STREAM}`,
        answer,
        streamFacts,
      );
      if (thinning === undefined) return undefined;
      return {
        clients: numClients,
        maxClients,
        thinningSeconds: thinning.seconds,
        ...(cpuSeconds === undefined ? {} : { cpuSeconds }),
        ...(cluster && { cluster }),
      };
    },

    async enrollmentAttempts(username): Promise<EnrollmentAttempt[] | undefined> {
      const calls = port.within(WITHIN_MS);
      const answer = await calls.ask('GET', ATTEMPTS, { query: { username } });
      if (NOT_REPORTED.has(answer.status)) return undefined;
      const { data } = calls.read(`GET ${ATTEMPTS}`, answer, z.object({ data: z.array(attempt) }));
      return data
        .filter((each) => nameKey(each.username) === nameKey(username))
        .toSorted((a, b) => (a.at === b.at ? 0 : a.at < b.at ? 1 : -1));
    },
  };
}

// Manages plugins through the core's admin API.
const BASE = '/Marti/api/plugins/info';
const TRIES = 5;
const MAX_ERROR_LENGTH = 2_000;

const plugin = z
  .object({
    name: z.string(),
    description: z.string().nullish(),
    version: z.string().nullish(),
    enabled: z.boolean(),
    started: z.boolean(),
    exceptionMessage: z.string().nullish(),
  })
  .transform((read): CorePlugin => ({
    name: read.name,
    description: read.description ?? '',
    version: read.version ?? '',
    enabled: read.enabled,
    started: read.started,
    error: shortened(read.exceptionMessage ?? '', MAX_ERROR_LENGTH) || null,
  }));
const NONE = z.union([z.object({ data: z.array(z.unknown()).max(0) }), z.array(z.unknown()).max(0)]);

function noPlugin(name: string): AppError {
  const message = JSON.stringify(name.slice(0, 100));
  return new AppError('not_found', `The core has no plugin ${message}; GET /api/plugins lists them.`);
}

export function corePlugins(port: CorePort): Pick<Core, 'plugins' | 'changePlugin'> {
  async function list(calls: CoreCalls): Promise<CorePlugin[]> {
    const path = `${BASE}/all`;
    const answer = await calls.ask('GET', path);
    if (answer.status === 500 && NONE.safeParse(answer.json).success)
      throw new AppError('unavailable', 'The plugin process of the core is down. Remedy: restart the core.');
    return calls.read(`GET ${path}`, answer, z.object({ data: z.array(plugin) })).data;
  }

  async function named(calls: CoreCalls, name: string): Promise<CorePlugin> {
    const found = (await list(calls)).find((each) => each.name === name);
    if (found === undefined) throw noPlugin(name);
    return found;
  }

  return {
    plugins: () => list(port.within(WITHIN_MS)),

    async changePlugin(name, change) {
      const calls = port.within(WITHIN_MS);
      await named(calls, name);
      const [what, wanted] =
        'enabled' in change ? (['enabled', change.enabled] as const) : (['started', change.started] as const);
      const path = `${BASE}/${what}`;
      const answer = await calls.ask('POST', path, { query: { name, status: String(wanted) } });
      if (answer.status !== 200) throw port.failure(`POST ${path}`, answer);
      // A plugin takes a moment to start, and may fail: its actual state counts.
      for (let tried = 1; tried < TRIES; tried += 1) {
        const now = await named(calls, name);
        if (now[what] === wanted || now.error !== null) return now;
        await calls.moment();
      }
      return named(calls, name);
    },
  };
}

/** Enough for a page of two hundred users at once; a release serves 200 at most. */
const CONNECTIONS = 16;

export interface HttpCoreOptions {
  /** CORE_API_URL. */
  url: string;
  /** CORE_DATA_DIR: `ca.pem` and `svc_api.p12` are in `certs/files`. */
  dataDir: string;
}

export interface HttpCore extends Core {
  /** On the same connections. */
  retention: CoreRetention;
  notices: CoreNotices;
  /** For the parts that have a file of their own. */
  port: CorePort;
  /** Closes the pooled connections. */
  close(): Promise<void>;
}

/**
 * A method takes 10 s at most, one that reads a whole list of certificates 30 s. Connects when it
 * is first asked.
 *
 * @example
 * const core = httpCore({ url: 'https://takserver:8443', dataDir: '/opt/tak' });
 * const { version } = await core.status();
 */
export function httpCore({ url, dataDir }: HttpCoreOptions): HttpCore {
  const port = new CorePort({
    url,
    variable: 'CORE_API_URL',
    name: 'The core',
    dataDir,
    trust: 'own',
    connections: CONNECTIONS,
  });
  return {
    ...coreCertificates(port),
    ...coreClients(port),
    ...coreGroups(port),
    ...corePlugins(port),
    ...coreStatus(port),
    retention: new HttpCoreRetention(port),
    notices: coreNotices(port),
    port,
    close: () => port.connections.close(),
  };
}

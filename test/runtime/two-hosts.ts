// Node and workerd (npm run dev:workerd) beside one running stack, asked the same at the same time: what must not differ is
// compared, and what differs from one moment to the next is left out.

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { afterAll, beforeAll, expect } from 'vitest';
import {
  answersPing,
  cleanEnvironment,
  eventually,
  home,
  newStack,
  stop,
  type TestStack,
} from '../e2e/embedded/embedded.ts';
import { parseOpenMetrics } from '../health/fake-open-metrics-parser.ts';
import { basic } from '../http/fake-deps.ts';

const TOKEN = 'a-token-for-this-test-0123';
export const READER = { authorization: `Bearer ${TOKEN}` };
/** How long an event takes is no difference between hosts. */
const UNHURRIED = { MON_PROBE_LATENCY_WARNING: '100', MON_PROBE_LATENCY_CRITICAL: '200' };

export interface Answer {
  status: number;
  headers: Record<string, string | null>;
  body: unknown;
}

export interface TwoHosts {
  stack: () => TestStack;
  /** The API of Node and that of workerd. */
  apis: () => [node: string, workerd: string];
  /** The host of workerd. */
  worker: () => ChildProcess;
  startWorker: () => Promise<void>;
  endWorker: (signal?: NodeJS.Signals) => Promise<void>;
  admin: () => { authorization: string };
  ask: (api: string, path: string, init: RequestInit) => Promise<Answer>;
  /** The answer of Node; that of workerd must be the same. What changes between two questions is asked again. */
  both: (path: string, init?: RequestInit) => Promise<Answer>;
  /** For each module in the worker, whether it was measured. */
  measured: () => Promise<boolean[]>;
}

/** Starts a stack and both hosts before the tests of the file, and ends them afterwards. */
export function twoHosts(settings: () => Promise<Record<string, string>> = async () => ({})): TwoHosts {
  let stack: TestStack;
  let worker: ChildProcess;
  let env: Record<string, string>;
  const workerApi = (): string => `http://127.0.0.1:${8081 + stack.offset}`;

  async function startWorker(): Promise<void> {
    const args = ['--data', stack.data, '--offset', String(stack.offset), '--env', '/dev/null'];
    worker = spawn(join(home, 'node_modules/.bin/node'), [join(home, 'dist/dev-workerd.js'), ...args], {
      env: cleanEnvironment(env),
      stdio: 'ignore',
    });
    const isUp = async (): Promise<boolean> => {
      if (worker.exitCode !== null) throw new Error(`the worker ended with ${worker.exitCode}`);
      return answersPing(workerApi());
    };
    await eventually('the worker answers', isUp, 60_000);
  }

  async function endWorker(signal: NodeJS.Signals = 'SIGTERM'): Promise<void> {
    if (worker.exitCode !== null || worker.signalCode !== null) return;
    worker.kill(signal);
    await once(worker, 'exit');
  }

  async function modulesAt(api: string): Promise<Record<string, ModuleState>> {
    const answer = await fetch(`${api}/api/health`, { headers: READER });
    return ((await answer.json()) as { modules: Record<string, ModuleState> }).modules;
  }

  async function measured(): Promise<boolean[]> {
    return Object.values(await modulesAt(workerApi())).map(({ updated_at }) => typeof updated_at === 'string');
  }

  beforeAll(async () => {
    env = { METRICS_TOKEN: TOKEN, UPDATES_URL: 'off', MON_DATABASE_INTERVAL: '2', ...UNHURRIED, ...(await settings()) };
    stack = await newStack();
    expect((await stack.start([], { env })).code).toBe(0);
    // What the worker measures once an hour is then what Node has measured: the canary has run, the own certificates are made.
    await eventually(
      'Node knows of a canary',
      async () => {
        const { certificates, probe } = await modulesAt(stack.file().api);
        return certificates?.data?.canary?.ok === true && probe?.status === 'ok';
      },
      60_000,
    );
    await startWorker();
    await eventually('the worker has measured every module', async () => (await measured()).every(Boolean), 60_000);
  });
  afterAll(async () => {
    await endWorker();
    await stop(stack.data);
  });

  return {
    stack: () => stack,
    apis: () => [stack.file().api, workerApi()],
    worker: () => worker,
    startWorker,
    endWorker,
    admin() {
      const { username, password } = stack.file().webadmin;
      return { authorization: basic(username, password) };
    },
    ask,
    async both(path, init = {}) {
      const answers = (): Promise<[Answer, Answer]> =>
        Promise.all([ask(stack.file().api, path, init), ask(workerApi(), path, init)]);
      let [node, workerd] = await answers();
      // A job or the canary may have worked between the two: asking changes nothing, so it is done again.
      for (let tries = 0; isReading(init) && tries < 5 && !isDeepStrictEqual(workerd, node); tries++) {
        await new Promise((tick) => setTimeout(tick, 500));
        [node, workerd] = await answers();
      }
      expect(workerd).toEqual(node);
      return node;
    },
    measured,
  };
}

interface ModuleState {
  status: string;
  updated_at: string | null;
  data?: { canary?: { ok: boolean } | null };
}

function isReading({ method = 'GET' }: RequestInit): boolean {
  return ['GET', 'HEAD'].includes(method);
}

const HEADERS = ['content-type', 'www-authenticate', 'cache-control', 'content-security-policy', 'content-disposition'];

async function ask(api: string, path: string, init: RequestInit): Promise<Answer> {
  const response = await fetch(`${api}${path}`, { redirect: 'manual', ...init });
  expect(response.headers.get('x-request-id')).toMatch(/^[0-9a-f-]{36}$/);
  return {
    status: response.status,
    headers: Object.fromEntries(HEADERS.map((name) => [name, response.headers.get(name)])),
    body: bodyOf(Buffer.from(await response.arrayBuffer()), response.headers.get('content-type') ?? ''),
  };
}

/** Of a file what it begins with, of metrics the names, of JSON what does not change, of anything else the text. */
function bodyOf(bytes: Buffer, type: string): unknown {
  if (/^application\/(zip|x-pkcs12)$/.test(type)) return [bytes.subarray(0, 2).toString('hex'), bytes.length > 1000];
  const text = bytes.toString();
  if (type === 'application/x-pem-file') return text.match(/-----(BEGIN|END) [A-Z ]+-----/g);
  if (type.startsWith('application/openmetrics-text'))
    return [...parseOpenMetrics(text).keys()].filter((name) => !FILLERS.test(name));
  return /json/.test(type) && text !== '' ? comparable(JSON.parse(text)) : text;
}

const CHANGING =
  /^(fillers|request_id|last_login|updated_at|started_at|free_bytes|used_pct|inodes_used_pct|total_bytes|live_bytes|overhead_bytes|wal_bytes|measured_at|milliseconds|latency_seconds|memory_.*|.*offset_seconds)$/;
/** Each host keeps for an hour who filled the database; the worker begins later. */
const FILLERS = /^holdfast_database_fillers_(type|uid)_/;
const FIGURES = /\d+(\.\d+)? (bytes|kB|MB|GB|TB|ms|s|%)/g;

/** Without what differs from one moment to the next. */
function comparable(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(comparable);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, member]) => [key, comparableMember(key, member)]));
}

function comparableMember(key: string, member: unknown): unknown {
  if (CHANGING.test(key)) return typeof member;
  if (key === 'message')
    return String(member)
      .replaceAll(FIGURES, 'N')
      .replace(/(does not answer): .*/, '$1');
  // Where hosts show what they measured last, other work was done in between; measured now, it is compared as a whole.
  if (key === 'autovacuum' && typeof member === 'object') return comparable(withoutCounts(member));
  // Each process runs one of its own when it starts.
  if (key === 'canary' && member !== null) return { ...(member as object), at: 'at some time' };
  return comparable(member);
}

function withoutCounts(value: unknown): unknown {
  if (typeof value === 'number') return 'a number';
  if (typeof value === 'string') return value.replace(/\d+ dead rows?/, 'N dead rows');
  if (Array.isArray(value)) return value.map(withoutCounts).toSorted((a, b) => (tableOf(a) < tableOf(b) ? -1 : 1));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, member]) => [key, withoutCounts(member)]));
}

function tableOf(row: unknown): string {
  return (row as { table?: string }).table ?? '';
}

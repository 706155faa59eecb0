// Deps after everything has happened once: every health module measured in a world with tables, mounts, TLS endpoints,
// containers, clocks and alerts, jobs run, requests answered.

import { DEFAULT_SCHEDULE, KEEP_ALL } from '@holdfast/kit/retention';
import { run as pollHealth } from '../../jobs/poll-health.ts';
import { MemoryHealthCache } from '../../shared/health/cache.ts';
import { HEALTH_MODULES } from '../../shared/health/modules/index.ts';
import type { Measurement } from '../../shared/health/port.ts';
import type { Status } from '../../shared/settings/status.ts';
import { runningContainer } from '../host/fake-container.ts';
import { fakeDeps } from '../http/fake-deps.ts';
import { mount, NOW, table, type World, withNodes, world } from './fake-monitored.ts';

function populatedWorld(): World {
  const around = world();
  withNodes(around);
  const tls = { reachable: true, trusted: true, error: undefined, subject: 'CN=cot', issuer: 'CN=ca' };
  const own = { host: 'cot.example.org', trust: 'public' } as const;
  const runs = { health: 'healthy', restarts: 2 } as const;
  return {
    ...around,
    wanted: {
      ...around.wanted,
      publicNames: ['cot.example.org'],
      tlsEndpoints: [
        { name: 'https://cot.example.org', port: 443, ...own },
        { name: 'https://cot.example.org:8446', port: 8446, ...own },
      ],
    },
    tables: [table('cot_router', 10, 4990), { ...table('cot_router', 20, 300), schema: 'history' }],
    mounts: [mount('/', 41.5), mount('/data "1"', 82.5, null)],
    tls: {
      ...around.tls,
      'https://cot.example.org': { ...tls, expires_at: new Date(NOW.getTime() + 20 * 86_400_000).toISOString() },
      'https://cot.example.org:8446': { ...tls, reachable: false, error: 'wrong issuer', expires_at: undefined },
    },
    addresses: { 'cot.example.org': ['192.0.2.1'] },
    containers: [
      runningContainer('core', runs),
      runningContainer('database', { ...runs, out_of_memory: true, restarts: 7 }),
    ],
    changed: ['SMTP_URL'],
    clockOffsetMs: 1500,
  };
}

export async function populatedDeps(): Promise<ReturnType<typeof fakeDeps>> {
  const around = populatedWorld();
  await around.certificateStore.recordCanary({
    at: NOW.toISOString(),
    ok: true,
    signed: true,
    problem: null,
    coreStartedAt: null,
  });
  await keepThirtyDays(around);
  growForAWeek(around);
  const deps = fakeDeps({}, around);
  const names = [...new Set([...HEALTH_MODULES.map(({ name }) => name), 'alerts'])];
  const health = new MemoryHealthCache({
    intervals: Object.fromEntries(names.map((name) => [name, 60])),
    nowMs: () => NOW.getTime(),
  });
  deps.health = health;
  await pollHealth(deps, NOW);
  const alerts = {
    pending: 3,
    oldest_pending_seconds: 61,
    partly_sent: 1,
    pending_reason: 'queue is full',
    failed: 2,
    failed_unreached: 1,
  };
  health.put(measured('alerts', 'warning', alerts));
  for (const job of ['poll-health', 'prune-job-runs'])
    for (const failed of [false, true])
      await deps.jobStatistics.ended({ job, failed, endedMs: NOW.getTime(), seconds: 0.25 });
  deps.requests.answered('GET', 200, 0.002);
  deps.requests.answered('POST', 422, 0.2);
  return deps;
}

/** A gigabyte a day, on each file system, most of it from one feed. */
function growForAWeek({ growth, mounts }: World): void {
  const filler = { share: 0.9, rows: 900, bytes: 9e8 };
  const [types, uids] = [[{ name: 'a-f-G', ...filler }], [{ name: 'FEED-7', ...filler }]];
  growth.fillers = (seconds) => ({ seconds, sampled: 1000, rows: 1000, bytes: 1e9, types, uids });
  for (let hour = 7 * 24; hour >= 0; hour--) {
    const grown = (hour / 24) * 1e9;
    growth.samples.push({
      at: new Date(NOW.getTime() - hour * 3_600_000).toISOString(),
      database_bytes: 30e9 - grown,
      wal_bytes: 1e9,
      max_wal_bytes: 1e9,
      mounts: mounts.map(({ mount: path, total_bytes, free_bytes }) => ({
        mount: path,
        total_bytes,
        free_bytes: free_bytes + grown,
        holds_database: path === '/',
        holds_wal: path === '/',
      })),
    });
  }
}

/** Days, a schedule, and a run of last night. */
async function keepThirtyDays({ retention, retentionHistory }: World): Promise<void> {
  const policy = { ...KEEP_ALL, cot: 30 };
  Object.assign(retention, { policy, schedule: DEFAULT_SCHEDULE });
  retention.files = { policy: { ...policy }, exemptKeywords: [], schedule: DEFAULT_SCHEDULE };
  await retentionHistory.seenInForce('2026-02-01T00:00:00.000Z', { policy, schedule: DEFAULT_SCHEDULE });
  retention.runs.push({
    id: '0d9c3f3e-5f57-4c3c-9a0e-2f0b8f3f6a11',
    trigger: 'schedule',
    state: 'done',
    startedAt: '2026-03-04T03:00:00.000Z',
    finishedAt: '2026-03-04T03:02:00.000Z',
    limits: { cot: '2026-02-02T03:00:00.000Z' },
    rows: { cot: 1200 },
    included: { cot: 0, files: 0 },
    expected: 1200,
    bytes: 1_200_000,
    error: null,
  });
}

/** A measurement as a module makes it. */
export function measured(module: string, status: Status, data: Record<string, unknown>): Measurement {
  return {
    module,
    status,
    message: 'As measured.',
    details: [],
    remedies: [],
    updated_at: NOW.toISOString(),
    data,
    shouldAlert: false,
    failuresInRow: 0,
    pollsInRow: 0,
  };
}

import { describe, expect, it } from 'vitest';
import { createApp } from '../../functions/app.ts';
import { MemoryHealthCache } from '../../shared/health/cache.ts';
import { HEALTH_MODULES } from '../../shared/health/modules/index.ts';
import type { Bindings } from '../../shared/http/context.ts';
import { runJob } from '../../shared/jobs/run.ts';
import { memoryJobStatistics } from '../../shared/jobs/statistics.ts';
import { ADMIN, fakeDeps, READER } from '../http/fake-deps.ts';
import type { HealthBody } from './fake-health-body.ts';
import { NOW } from './fake-monitored.ts';
import { type ParsedFamily, parseOpenMetrics } from './fake-open-metrics-parser.ts';
import { measured, populatedDeps } from './fake-populated.ts';

const CONNECTION: Bindings = { requestId: 'request-1', clientAddress: '192.0.2.7', secure: false };

const deps = await populatedDeps();
const app = createApp(deps);
const text = async (of = app): Promise<string> =>
  (await of.request('/metrics', { headers: READER }, CONNECTION)).text();
const scrape = async (of = app): Promise<Map<string, ParsedFamily>> => parseOpenMetrics(await text(of));
const samples = (families: Map<string, ParsedFamily>, name: string) =>
  families.get(name)?.samples.map(({ labels, value }) => [labels, value]) ?? [];

describe('GET /metrics', () => {
  it('is OpenMetrics text 1.0, for viewers and administrators', async () => {
    for (const headers of [READER, ADMIN]) {
      const response = await app.request('/metrics', { headers }, CONNECTION);
      expect([response.status, response.headers.get('content-type')]).toEqual([
        200,
        'application/openmetrics-text; version=1.0.0; charset=utf-8',
      ]);
      const body = await response.text();
      expect(body.endsWith('\n# EOF\n')).toBe(true);
      expect(parseOpenMetrics(body).size).toBeGreaterThan(50);
    }
    expect((await app.request('/metrics', {}, CONNECTION)).status).toBe(401);
  });

  it('has every number and every yes or no of the full health answer, in base units', async () => {
    const health = JSON.parse((await deps.health.current('full')).body) as HealthBody;
    const families = [...(await scrape()).values()];
    let total = 0;
    expect(Object.keys(health.modules)).toEqual([...new Set([...HEALTH_MODULES.map(({ name }) => name), 'alerts'])]);
    for (const [module, { data }] of Object.entries(health.modules)) {
      const own = families.filter(({ name }) => name.startsWith(`holdfast_${module}_`));
      const shown = own.flatMap((family) => family.samples.map(({ value }) => value));
      expect([module, shown.toSorted((x, y) => x - y)]).toEqual([module, figuresIn(data).toSorted((x, y) => x - y)]);
      total += shown.length;
    }
    expect(total).toBeGreaterThan(50);
  });

  it('names what it has after module and member', async () => {
    const families = await scrape();
    expect(samples(families, 'holdfast_autovacuum_table_dead_ratio')).toContainEqual([
      { schema: 'public', table: 'cot_router' },
      0.002,
    ]);
    expect(samples(families, 'holdfast_disk_mount_used_ratio')).toEqual([
      [{ mount: '/' }, 0.415],
      [{ mount: '/data "1"' }, 0.825],
    ]);
    expect(samples(families, 'holdfast_tls_endpoint_left_seconds')).toEqual([
      [{ name: 'https://cot.example.org' }, 20 * 86_400],
    ]);
    expect(samples(families, 'holdfast_database_total_bytes')).toEqual([[{}, 30e6]]);
    expect(samples(families, 'holdfast_database_growth_bytes_per_day')).toEqual([[{}, expect.closeTo(1e9, -7)]]);
    expect(samples(families, 'holdfast_disk_mount_full_in_seconds')).toEqual([
      [{ mount: '/' }, 590 * 86_400],
      [{ mount: '/data "1"' }, 180 * 86_400],
    ]);
    expect(samples(families, 'holdfast_alerts_pending')).toEqual([[{}, 3]]);
    expect(samples(families, 'holdfast_retention_type_kept_seconds')).toEqual([[{ name: 'cot' }, 30 * 86_400]]);
    expect(samples(families, 'holdfast_build')).toEqual([[{ version: '1.2.3' }, 1]]);
  });

  it('has the status of each module, when it was measured, and how often it is', async () => {
    const families = await scrape();
    expect(samples(families, 'holdfast_health_overall_status')).toEqual([[{}, 3]]);
    expect(samples(families, 'holdfast_health_status')).toContainEqual([{ module: 'tls' }, 3]);
    expect(samples(families, 'holdfast_health_status')).toContainEqual([{ module: 'disk' }, 2]);
    expect(samples(families, 'holdfast_health_status')).toContainEqual([{ module: 'dns' }, 0]);
    expect(samples(families, 'holdfast_health_updated_timestamp_seconds')).toContainEqual([
      { module: 'disk' },
      NOW.getTime() / 1000,
    ]);
    expect(samples(families, 'holdfast_health_interval_seconds')).toContainEqual([{ module: 'disk' }, 300]);
  });

  it('has no message and no secret', async () => {
    const body = await text();
    for (const message of ['queue is full', 'wrong issuer', 'As measured']) expect(body).not.toContain(message);
  });

  it('answers without an outside system, before anything was measured, too', async () => {
    const fresh = fakeDeps();
    const families = await scrape(createApp({ ...fresh, monitored: undefined as never, jobRuns: undefined as never }));
    expect(samples(families, 'holdfast_health_status')).toContainEqual([{ module: 'disk' }, 1]);
    expect(samples(families, 'holdfast_health_updated_timestamp_seconds')).toEqual([]);
    expect(samples(families, 'holdfast_job_runs')).toContainEqual([{ name: 'poll-health' }, 0]);
    expect(samples(families, 'holdfast_job_last_duration_seconds')).toEqual([]);
    expect(samples(families, 'holdfast_job_last_seen_timestamp_seconds')).toEqual([]);
    expect(samples(families, 'holdfast_job_failures_in_row')).toContainEqual([{ name: 'poll-health' }, 0]);
  });

  it('knows modules that nobody has told it about', async () => {
    const fresh = fakeDeps();
    fresh.health = new MemoryHealthCache({ intervals: { probe: 300 }, nowMs: () => NOW.getTime() });
    const stages = [
      { stage: 'bind', latency_ms: 12, ok: true, error: null },
      { stage: 'cot', latency_ms: null, ok: false, error: 'nothing came back' },
    ];
    await fresh.health.put(measured('probe', 'warning', { verdict: 'no event', stages }));
    const families = await scrape(createApp(fresh));
    expect(samples(families, 'holdfast_probe_stage_latency_seconds')).toEqual([[{ stage: 'bind' }, 0.012]]);
    expect(samples(families, 'holdfast_probe_stage_ok')).toEqual([
      [{ stage: 'bind' }, 1],
      [{ stage: 'cot' }, 0],
    ]);
  });
});

describe('jobs in /metrics', () => {
  it('count runs and failures, claimed or not; a run elsewhere is none', async () => {
    const fresh = fakeDeps();
    const job = (name: string, claim: 'row' | 'none', fails: boolean) => ({
      name,
      claim,
      cron: '* * * * *',
      limitSeconds: 60,
      run: async () => {
        if (fails) throw new Error('no broom');
        return {};
      },
    });
    for (const claim of ['row', 'none'] as const) {
      await runJob(job(`sweep-${claim}`, claim, false), fresh, 'me', NOW);
      await runJob(job(`fail-${claim}`, claim, true), fresh, 'me', NOW);
    }
    await runJob(job('sweep-row', 'row', false), fresh, 'another', NOW);
    fresh.jobRuns.claim = async () => {
      throw new Error('no database');
    };
    await runJob(job('never', 'row', false), fresh, 'me', NOW);
    const families = await scrape(createApp(fresh));
    const swept = ['sweep-row', 'fail-row', 'sweep-none', 'fail-none'];
    const one = (name: string): [object, number] => [{ name }, 1];
    expect(samples(families, 'holdfast_job_runs')).toEqual([
      [{ name: 'poll-health' }, 0],
      [{ name: 'prune-job-runs' }, 0],
      ...swept.map(one),
    ]);
    expect(samples(families, 'holdfast_job_failures').filter(([, value]) => value === 1)).toEqual([
      one('fail-row'),
      one('fail-none'),
    ]);
    expect(samples(families, 'holdfast_job_last_run_timestamp_seconds')).toHaveLength(4);
    expect(samples(families, 'holdfast_job_last_success_timestamp_seconds')).toHaveLength(2);
    for (const [, value] of samples(families, 'holdfast_job_last_run_timestamp_seconds'))
      expect(value).toBeGreaterThanOrEqual(NOW.getTime() / 1000);
    for (const [, value] of samples(families, 'holdfast_job_last_duration_seconds')) expect(value).toBeLessThan(5);
  });

  it('say how often each is to run; of one that nobody expects nothing is known', async () => {
    const fresh = fakeDeps();
    await fresh.jobStatistics.ended({ job: 'unheard-of', failed: false, endedMs: NOW.getTime(), seconds: 1 });
    expect(samples(await scrape(createApp(fresh)), 'holdfast_job_interval_seconds')).toEqual([
      [{ name: 'poll-health' }, 1],
      [{ name: 'prune-job-runs' }, 3600],
    ]);
  });

  it('count the failures in a row: the first success ends them', async () => {
    const fresh = fakeDeps();
    const inRow: unknown[] = [];
    for (const failed of [true, true, false, true]) {
      await fresh.jobStatistics.ended({ job: 'poll-health', failed, endedMs: NOW.getTime(), seconds: 1 });
      inRow.push(samples(await scrape(createApp(fresh)), 'holdfast_job_failures_in_row')[0]?.[1]);
    }
    expect(inRow).toEqual([1, 2, 0, 1]);
  });

  it('are seen to run where another process has run them; a database that does not answer shows nothing', async () => {
    const fresh = fakeDeps();
    const sweep = {
      name: 'sweep',
      claim: 'row' as const,
      cron: '* * * * *',
      limitSeconds: 60,
      run: async () => ({}),
    };
    const seen = async (): Promise<unknown[]> =>
      samples(await scrape(createApp(fresh)), 'holdfast_job_last_seen_timestamp_seconds');
    const around = { ...fresh, jobStatistics: memoryJobStatistics([]) };
    await runJob(sweep, around, 'another', NOW);
    expect(await seen()).toEqual([]);
    await runJob(sweep, fresh, 'me', new Date(NOW.getTime() + 15_000));
    const families = await scrape(createApp(fresh));
    expect(await seen()).toEqual([[{ name: 'sweep' }, expect.closeTo(NOW.getTime() / 1000 + 15, 0)]]);
    expect(samples(families, 'holdfast_job_last_run_timestamp_seconds')).toEqual([]);
    expect(samples(families, 'holdfast_job_runs')).toContainEqual([{ name: 'sweep' }, 0]);
    const before = await seen();
    fresh.jobRuns.claim = async () => {
      throw new Error('no database');
    };
    await runJob(sweep, fresh, 'me', new Date(NOW.getTime() + 3600_000));
    expect(await seen()).toEqual(before);
  });

  it('go on when a run cannot be counted', async () => {
    const fresh = fakeDeps();
    fresh.jobStatistics.ended = async () => {
      throw new Error('the host is gone');
    };
    const job = { name: 'sweep', claim: 'none' as const, cron: '* * * * * *', run: async () => ({}) };
    await runJob(job, fresh, 'me', NOW);
    expect(fresh.log.events.map(({ event }) => event)).toEqual(['job.not_counted']);
  });
});

describe('requests in /metrics', () => {
  it('are counted by method and status, and by how long they took', async () => {
    const fresh = fakeDeps();
    for (const [method, status, seconds] of [
      ['GET', 200, 0.0004],
      ['GET', 200, 0.001],
      ['DELETE', 404, 0.3],
      ['BREW', 418, 60],
      ['CONNECT', 999, 0.002],
    ] as const)
      fresh.requests.answered(method, status, seconds);
    const families = await scrape(createApp(fresh));
    expect(samples(families, 'holdfast_http_requests')).toEqual([
      [{ method: 'other', status: 'other' }, 1],
      [{ method: 'other', status: '418' }, 1],
      [{ method: 'GET', status: '200' }, 2],
      [{ method: 'DELETE', status: '404' }, 1],
    ]);
    const took = families.get('holdfast_http_request_duration_seconds')?.samples ?? [];
    expect(took.map(({ labels, value }) => [labels['le'], value])).toEqual([
      ['0.001', 2],
      ['0.005', 3],
      ['0.025', 3],
      ['0.1', 3],
      ['0.5', 4],
      ['2.5', 4],
      ['10.0', 4],
      ['+Inf', 5],
      [undefined, 5],
      [undefined, expect.closeTo(60.3034, 6)],
    ]);
  });
});

/** Every number, in base units, and every yes or no. */
function figuresIn(value: unknown, key = ''): number[] {
  if (typeof value === 'boolean') return [Number(value)];
  if (typeof value === 'number') {
    if (key.endsWith('_pct')) return [value / 100];
    if (key.endsWith('hours_left')) return [value * 3600];
    return [/days(_left|_earliest|_latest)?$/.test(key) ? value * 86_400 : value];
  }
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([name, member]) => figuresIn(member, name));
}

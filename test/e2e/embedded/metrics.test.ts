// GET /metrics of a running stack, scraped as Prometheus does: with METRICS_TOKEN, again and again.

import { isDeepStrictEqual } from 'node:util';
import { beforeAll, describe, expect, it } from 'vitest';
import { type ParsedFamily, parseOpenMetrics } from '../../health/fake-open-metrics-parser.ts';
import { eventually, lives, newStack, query, type TestStack } from './embedded.ts';
import { PORTABLE_SETTINGS } from './portable.ts';
import { stands } from './running-stack.ts';

const TOKEN = PORTABLE_SETTINGS.METRICS_TOKEN;
const SETTINGS = { METRICS_TOKEN: TOKEN, UPDATES_URL: 'off', MON_DATABASE_INTERVAL: '1', MON_AUTOVACUUM_INTERVAL: '1' };

let stack: TestStack;
beforeAll(async () => {
  stack = await newStack();
  expect((await stack.start([], { env: SETTINGS })).code).toBe(0);
});

const ask = async (authorization = `Bearer ${TOKEN}`): Promise<Response> =>
  fetch(`${stack.file().api}/metrics`, { headers: { authorization } });

type Scraped = Map<string, ParsedFamily>;
const scrape = async (): Promise<Scraped> => parseOpenMetrics(await (await ask()).text());
const value = (metrics: Scraped, family: string, labels: Record<string, string> = {}): number | undefined =>
  metrics.get(family)?.samples.find((sample) => isDeepStrictEqual(sample.labels, labels))?.value;

describe('a scrape', () => {
  it('is valid OpenMetrics text, with every module as it is', async () => {
    const response = await ask();
    expect([response.status, response.headers.get('content-type')]).toEqual([
      200,
      'application/openmetrics-text; version=1.0.0; charset=utf-8',
    ]);
    const metrics = parseOpenMetrics(await response.text());
    expect(metrics.get('holdfast_health_status')?.samples.length).toBeGreaterThanOrEqual(9);
    expect(value(metrics, 'holdfast_database_total_bytes')).toBeGreaterThan(1e6);
    expect(metrics.get('holdfast_disk_mount_used_ratio')?.samples[0]?.value).toBeLessThanOrEqual(1);
    expect(value(metrics, 'process_resident_memory_bytes')).toBeGreaterThan(20e6);
    expect(value(metrics, 'process_open_fds')).toBeGreaterThan(5);
    const started = (value(metrics, 'process_start_time_seconds') ?? 0) * 1000;
    expect(Math.abs(Date.now() - started)).toBeLessThan(stands ? 86_400_000 : 60_000);
  });

  it('is 401 without the token, or with a wrong one', async () => {
    expect((await fetch(`${stack.file().api}/metrics`)).status).toBe(401);
    for (const wrong of ['Bearer wrong', TOKEN]) expect((await ask(wrong)).status).toBe(401);
  });

  it('sees what has happened since the one before', async () => {
    const ok = { method: 'GET', status: '200' };
    const refused = { method: 'GET', status: '401' };
    const before = await scrape();
    await ask('Bearer wrong');
    await eventually(
      'jobs run',
      async () =>
        (value(await scrape(), 'holdfast_job_runs', { name: 'poll-health' }) ?? 0) >
        (value(before, 'holdfast_job_runs', { name: 'poll-health' }) ?? 0),
    );
    const after = await scrape();
    const grown = (family: string, labels = {}): number =>
      (value(after, family, labels) ?? 0) - (value(before, family, labels) ?? 0);
    expect(grown('holdfast_http_requests', ok)).toBeGreaterThanOrEqual(2);
    expect(grown('holdfast_http_requests', refused)).toBe(1);
    expect(grown('process_cpu_seconds')).toBeGreaterThan(0);
    expect(grown('nodejs_eventloop_idle_seconds')).toBeGreaterThan(0);
    expect(value(after, 'holdfast_job_failures', { name: 'poll-health' })).toBe(0);
    expect([...after.keys()]).toEqual([...before.keys()]);
  });

  it('has the figures of each table after the next poll', async () => {
    await query(
      stack.file().database,
      `DROP TABLE IF EXISTS "rows ""dead"" \\";
       CREATE TABLE "rows ""dead"" \\" (n int) WITH (autovacuum_vacuum_threshold = 1000000000, autovacuum_vacuum_insert_threshold = -1);
       INSERT INTO "rows ""dead"" \\" SELECT generate_series(1, 2000)`,
    );
    await query(stack.file().database, 'DELETE FROM "rows ""dead"" \\" WHERE n > 1000');
    const labels = { schema: 'public', table: 'rows "dead" \\' };
    await eventually(
      'the ratio is there',
      async () => value(await scrape(), 'holdfast_autovacuum_table_dead_ratio', labels) === 0.5,
      10_000,
    );
    expect(value(await scrape(), 'holdfast_health_status', { module: 'autovacuum' })).toBe(3);
  });

  it.skipIf(stands)('is answered while the database is away, and says so', async () => {
    process.kill(stack.pid('supervisor'), 'SIGSTOP');
    try {
      const database = stack.pid('database');
      process.kill(database, 'SIGINT');
      await eventually('it is away', () => !lives(database), 10_000);
      await eventually(
        'the scrape says so',
        async () => {
          const metrics = await scrape();
          // A measurement that the database left in the middle of has figures, too.
          const isUnavailable = value(metrics, 'holdfast_database_total_bytes') === undefined;
          return isUnavailable && value(metrics, 'holdfast_health_status', { module: 'database' }) === 3;
        },
        10_000,
      );
      const begun = performance.now();
      const metrics = await scrape();
      expect(performance.now() - begun).toBeLessThan(4_000);
      expect(value(metrics, 'holdfast_health_overall_status')).toBe(3);
      expect(value(metrics, 'holdfast_database_total_bytes')).toBe(undefined);
    } finally {
      process.kill(stack.pid('supervisor'), 'SIGCONT');
    }
  });
});

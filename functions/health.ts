// GET /api/health returns the last measurements from memory; GET /api/health/{module} measures one
// module now.

import { z } from '@hono/zod-openapi';
import { AppError } from '@holdfast/kit/app-error';
import { collectMetrics } from '../shared/health/metrics.ts';
import type { HealthModule } from '../shared/health/module.ts';
import { HEALTH_MODULES, healthModuleOf } from '../shared/health/modules/index.ts';
import { OPEN_METRICS_TYPE, renderOpenMetrics } from '../shared/health/open-metrics.ts';
import type { Measurement, Prepared } from '../shared/health/port.ts';
import { answerPrepared, weakEtag } from '../shared/http/answers.ts';
import type { App } from '../shared/http/context.ts';
import type { Deps } from '../shared/http/deps.ts';
import { apiRoute, jsonAnswer } from '../shared/http/route.ts';
import { requireAccess } from '../shared/http/sign-in.ts';
import { NO_HISTORY, STATUSES } from '../shared/settings/status.ts';

const head = {
  status: z.enum(STATUSES),
  message: z.string(),
  updated_at: z.iso.datetime().nullable(),
};
const remedies = z.array(z.string()).openapi({ description: 'Next steps, for the worst finding first; empty if ok' });
const data = z.record(z.string(), z.unknown());
const moduleSchema = z.object({ ...head, data }).openapi('HealthModule');
const measuredSchema = z.object({ ...head, remedies, data }).openapi('HealthMeasurement');
const healthSchema = z
  .object({ status: head.status, updated_at: head.updated_at, modules: z.record(z.string(), moduleSchema) })
  .openapi('Health');
const autovacuumSchema = z
  .object({
    ...head,
    remedies,
    tables: z.array(
      z.object({
        schema: z.string(),
        table: z.string(),
        dead_tuples: z.int(),
        live_tuples: z.int(),
        dead_pct: z.number(),
        last_autovacuum: z.iso.datetime().nullable(),
        last_vacuum: z.iso.datetime().nullable(),
      }),
    ),
    settings: z.record(z.string(), z.union([z.string(), z.number()])),
  })
  .catchall(z.unknown())
  .openapi('HealthAutovacuum');
const databaseSchema = z
  .object({
    ...head,
    remedies,
    total_bytes: z.int().nullable(),
    live_bytes: z.int().nullable(),
    overhead_bytes: z.int().nullable(),
    lost_events: z.int().nullable(),
  })
  .catchall(z.unknown())
  .openapi('HealthDatabase');

/** Modules that show their data beside the status, with the values for a failed measurement. */
const FLAT: Record<string, Record<string, unknown>> = {
  autovacuum: { tables: [], settings: {} },
  database: { total_bytes: null, live_bytes: null, overhead_bytes: null, lost_events: null },
};

/** A measurement this recent is reused. */
const FRESH_MS = 2_000;

const NOT_MODIFIED = { description: 'Not changed since the sent entity tag' };

/** Also used by the shortcuts of quick-answers.ts. */
export const healthRoute = apiRoute(
  {
    method: 'get',
    path: '/api/health',
    summary: 'Last measurement of every health module; never contacts other systems',
    tags: ['health'],
    request: { query: z.object({ view: z.literal('status').optional() }) },
    responses: { 200: jsonAnswer('The health cache', healthSchema), 304: NOT_MODIFIED },
  },
  { access: 'viewer', area: 'monitoring', fails: ['invalid'] },
);

const liveRoute = apiRoute(
  {
    method: 'get',
    path: '/api/health/{module}',
    summary: 'One health module, measured now',
    tags: ['health'],
    request: { params: z.object({ module: z.string() }) },
    responses: {
      200: jsonAnswer('The measurement', z.union([autovacuumSchema, databaseSchema, measuredSchema])),
      304: NOT_MODIFIED,
    },
  },
  { access: 'viewer', area: 'monitoring', fails: ['not_found'] },
);

/** Adds the routes of this file. */
export function healthFunction(app: App, deps: Deps): void {
  app.openapi(healthRoute, async function showHealth(c) {
    const prepared = await deps.health.current(c.req.valid('query').view ?? 'full');
    return answerPrepared(prepared, c.req.raw.headers, c.env.requestId);
  });
  app.openapi(liveRoute, async function measureLive(c) {
    const { module: name } = c.req.valid('param');
    const module = healthModuleOf(name);
    if (module === undefined) {
      const names = HEALTH_MODULES.map((each) => each.name).join(', ');
      throw new AppError('not_found', `No health module is named "${name}". Modules: ${names}.`);
    }
    const prepared = await deps.together(`health ${name}`, () => measurePrepared(module, deps));
    return answerPrepared(prepared, c.req.raw.headers, c.env.requestId);
  });
}

/**
 * Measures now unless just measured, and publishes the result; the poll, due then, passes it to
 * alerts.
 */
export async function measureNow(module: HealthModule, deps: Deps): Promise<void> {
  const { name } = module;
  await deps.together(`measure ${name}`, async () => {
    if (await isFresh(name, deps)) return;
    const before = (await deps.health.history(name)) ?? NO_HISTORY;
    const measurement = await module.measure(deps.monitored, deps.thresholds, before);
    // Read again: the poll may have counted meanwhile.
    const { failuresInRow, pollsInRow } = (await deps.health.history(name)) ?? NO_HISTORY;
    await deps.health.put({ ...measurement, failuresInRow, pollsInRow });
    await deps.health.forget(name);
  });
}

async function isFresh(name: string, { health, now }: Deps): Promise<boolean> {
  const state = (await health.states()).find(({ module }) => module === name);
  const age = now().getTime() - Date.parse(state?.measurement?.updated_at ?? '');
  return age >= 0 && age < FRESH_MS;
}

async function measurePrepared(module: HealthModule, deps: Deps): Promise<Prepared> {
  const before = (await deps.health.history(module.name)) ?? NO_HISTORY;
  return prepare(await module.measure(deps.monitored, deps.thresholds, before), module.remedy);
}

/** The entity tag covers everything but the time. */
async function prepare(measurement: Measurement, general: readonly string[]): Promise<Prepared> {
  const { module, status, message, updated_at, data } = measurement;
  const remedies = status === 'ok' ? [] : [...measurement.remedies, ...general];
  const flat = FLAT[module];
  const members = JSON.stringify(flat === undefined ? { remedies, data } : { remedies, ...flat, ...data }).slice(1);
  const head = JSON.stringify({ status, message }).slice(0, -1);
  return { body: `${head},"updated_at":"${updated_at}",${members}`, etag: await weakEtag(head + members) };
}

const metricsRoute = apiRoute(
  {
    method: 'get',
    path: '/metrics',
    summary: 'Health, jobs, requests and the process as OpenMetrics text; never contacts other systems',
    tags: ['health'],
    responses: {
      200: { description: 'OpenMetrics text 1.0', content: { [OPEN_METRICS_TYPE]: { schema: z.string() } } },
    },
  },
  { access: 'viewer', area: 'monitoring' },
);

/** Adds GET /metrics: all metrics as OpenMetrics text, from memory only. */
export function metricsFunction(app: App, deps: Deps): void {
  app.openAPIRegistry.registerPath(metricsRoute);
  app.get(metricsRoute.path, requireAccess(metricsRoute.demand), async function showMetrics(c) {
    const text = renderOpenMetrics(await collectMetrics(deps));
    return c.body(text, 200, { 'Content-Type': OPEN_METRICS_TYPE, 'Cache-Control': 'no-store' });
  });
}

const pingRoute = apiRoute(
  {
    method: 'get',
    path: '/api/ping',
    summary: 'Checks that the management process answers',
    tags: ['health'],
    responses: { 200: jsonAnswer('It answers', z.object({ status: z.literal('ok') })) },
  },
  { access: 'open' },
);

/** Adds GET /api/ping: open to all, contacts nothing. */
export function pingFunction(app: App): void {
  app.openapi(pingRoute, function ping(c) {
    return c.json({ status: 'ok' as const }, 200);
  });
}

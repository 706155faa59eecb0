// /api/retention: reads and changes the retention policy, previews and starts runs.

import { z } from '@hono/zod-openapi';
import { RETAINED } from '@holdfast/kit/retention';
import type { App } from '../shared/http/context.ts';
import type { Deps } from '../shared/http/deps.ts';
import { bodyOf, pageOf, pagingQuery } from '../shared/http/listing.ts';
import { apiRoute, jsonAnswer } from '../shared/http/route.ts';
import { opsJobPath, opsJobSchema, toOpsJobView } from '../shared/http/schemas/jobs.ts';
import {
  cutoffTime,
  previewQuery,
  previewSchema,
  retentionBody,
  retentionSchema,
} from '../shared/http/schemas/retention.ts';
import { actingIn } from '../shared/http/sign-in.ts';
import { changeRetention } from '../shared/retention/change.ts';
import { keepRetentionHistory } from '../shared/retention/keep-history.ts';
import type { RetentionRun } from '../shared/retention/port.ts';
import { showPreview } from '../shared/retention/preview.ts';
import { startRetentionRun } from '../shared/retention/start-run.ts';
import { retentionState } from '../shared/retention/state.ts';

const tags = ['retention'];

const readRoute = apiRoute(
  {
    method: 'get',
    path: '/api/retention',
    summary: 'Days and schedule in force with their sources, and the next runs',
    tags,
    responses: { 200: jsonAnswer('Retention', retentionSchema) },
  },
  { access: 'viewer', fails: ['upstream', 'unavailable'] },
);

const changeRoute = apiRoute(
  {
    method: 'put',
    path: '/api/retention',
    summary: 'Changes days and schedule; notes say what the next run deletes',
    tags,
    request: retentionBody,
    responses: { 200: jsonAnswer('Retention after the change', retentionSchema) },
  },
  { access: 'admin', fails: ['conflict', 'upstream', 'unavailable'] },
);

const previewRoute = apiRoute(
  {
    method: 'get',
    path: '/api/retention/preview',
    summary: 'Previews what a run would delete, with the policy in force or exactly the given days',
    tags,
    request: { query: previewQuery },
    responses: { 200: jsonAnswer('Rows per type', previewSchema) },
  },
  { access: 'viewer', fails: ['invalid', 'conflict', 'upstream', 'unavailable'] },
);

/** Adds the routes of this file. */
export function retentionFunction(app: App, deps: Deps): void {
  app.openapi(readRoute, async function readRetention(c) {
    const state = await retentionState(deps);
    c.header('Cache-Control', 'no-store');
    return c.json(state, 200);
  });
  app.openapi(changeRoute, async function putRetention(c) {
    const state = await changeRetention(actingIn(c, deps), c.req.valid('json'));
    c.header('Cache-Control', 'no-store');
    return c.json(state, 200);
  });
  app.openapi(previewRoute, async function preview(c) {
    const { cutoff, ...days } = c.req.valid('query');
    const shown = await showPreview(deps, { days, cutoff });
    c.header('Cache-Control', 'no-store');
    return c.json(shown, 200);
  });
}

const runTags = ['retention'];
/** A request for the history waits no longer than this for a slow core. */
const CORE_TIMEOUT_MS = 1_000;

const time = z.iso.datetime();
const byType = <const S extends z.ZodType>(of: S) => z.partialRecord(z.enum(RETAINED), of);

const runSchema = z
  .object({
    id: z.string(),
    source: z.enum(['core', 'log']).openapi({
      description: 'log: read from the log of a TAK Server release, which has fewer details',
    }),
    trigger: z.enum(['schedule', 'order']),
    state: z.enum(['running', 'done', 'failed', 'interrupted']).openapi({
      description: 'done with source log: it started and no error is known; such a log has no end',
    }),
    started_at: time,
    finished_at: time.nullable(),
    limits: byType(time).openapi({ description: 'Rows older than these times were deleted; empty if unknown' }),
    rows: byType(z.int()).openapi({ description: 'Deleted so far; with source log only if the log has a count' }),
    included: z
      .object({ cot: z.int(), files: z.int() })
      .openapi({ description: 'Deleted with missions, besides rows' }),
    expected: z
      .int()
      .nullable()
      .openapi({ description: 'Total rows to delete, including those deleted with missions; null: unknown' }),
    bytes: z.int().nullable().openapi({ description: 'Estimate of bytes freed for new rows; null: unknown' }),
    error: z.string().nullable(),
    complete: z.boolean().openapi({ description: 'False: only the figures of a log are known' }),
  })
  .openapi('RetentionRun');

const pageSchema = pageOf(runSchema, 'RetentionRunPage').extend({
  up_to_date: z.boolean().openapi({ description: 'False: the core was unavailable, and there may be newer runs' }),
});

const listRoute = apiRoute(
  {
    method: 'get',
    path: '/api/retention/runs',
    summary: 'Retention runs, newest first',
    tags: runTags,
    request: { query: z.object(pagingQuery()) },
    responses: { 200: jsonAnswer('A page', pageSchema) },
  },
  { access: 'viewer', fails: ['invalid'] },
);

const { body: orderBody } = bodyOf({
  confirm_rows: z
    .int()
    .min(0)
    .optional()
    .openapi({ description: 'Maximum number of rows to delete; without it, more than a million are rejected' }),
  cutoff: cutoffTime
    .optional()
    .openapi({ description: 'The cutoff of a preview, to delete the same rows; default: now' }),
});

const startRoute = apiRoute(
  {
    method: 'post',
    path: '/api/retention/runs',
    summary: 'Deletes expired data now; returns the job that does it',
    tags: runTags,
    request: { body: { ...orderBody, required: false } },
    responses: { 202: jsonAnswer('The job; Location is its address', opsJobSchema) },
  },
  {
    access: 'admin',
    fails: ['conflict', 'confirmation_needed', 'not_supported', 'upstream', 'unavailable'],
  },
);

/** Adds GET /api/retention/runs, the history, and POST, which starts a run on demand as a job. */
export function retentionRunsFunction(app: App, deps: Deps): void {
  app.openapi(listRoute, async function listRuns(c) {
    const { page, page_size } = c.req.valid('query');
    const { upToDate } = await deps.together('retention.history.soon', () =>
      keepRetentionHistory(deps, CORE_TIMEOUT_MS),
    );
    const { results, count } = await deps.retentionHistory.runs((page - 1) * page_size, page_size);
    c.header('Cache-Control', 'no-store');
    return c.json({ results: results.map(shown), count, page, page_size, up_to_date: upToDate }, 200);
  });
  app.openapi(startRoute, async function startRun(c) {
    const { confirm_rows: confirmRows, cutoff } = c.req.valid('json');
    const job = await startRetentionRun(actingIn(c, deps), deps.settings.CORE_RETENTION_UNIT, {
      confirmRows,
      cutoff: cutoff === undefined ? undefined : new Date(cutoff),
    });
    c.header('Cache-Control', 'no-store');
    c.header('Location', opsJobPath(job));
    return c.json(toOpsJobView(job), 202);
  });
}

function shown(run: RetentionRun): z.infer<typeof runSchema> {
  const { id, source, trigger, state, startedAt, finishedAt, limits, rows, included, expected, bytes, error } = run;
  return {
    id,
    source,
    trigger,
    state,
    started_at: startedAt,
    finished_at: finishedAt,
    limits,
    rows,
    included,
    expected,
    bytes,
    error,
    complete: source === 'core',
  };
}

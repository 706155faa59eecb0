// GET /api/ops/database/vacuum previews a vacuum of the core's database; POST starts one as a job.

import { z } from '@hono/zod-openapi';
import { VACUUM_MODES } from '../shared/database/port.ts';
import { previewVacuum } from '../shared/database/vacuum/preview.ts';
import { startVacuum } from '../shared/database/vacuum/start.ts';
import type { App } from '../shared/http/context.ts';
import type { Deps } from '../shared/http/deps.ts';
import { bodyOf } from '../shared/http/listing.ts';
import { apiRoute, jsonAnswer } from '../shared/http/route.ts';
import { opsJobPath, opsJobSchema, toOpsJobView } from '../shared/http/schemas/jobs.ts';
import { actingIn } from '../shared/http/sign-in.ts';

const tags = ['database'];
const MAX_NAMES = 1000;

const figures = {
  bytes: z.int().openapi({ description: 'Rows, TOAST and indexes' }),
  dead_tuples: z.int(),
  live_tuples: z.int(),
  lock_seconds: z.int().openapi({ description: 'Estimate of how long FULL would lock it; standard locks no one out' }),
};

const previewSchema = z
  .object({
    tables: z
      .array(
        z.object({
          schema: z.string(),
          table: z.string(),
          ...figures,
          reclaimable_bytes: z
            .int()
            .nullable()
            .openapi({ description: 'Estimate of what FULL would free; null: never analyzed' }),
          allowed: z.boolean().openapi({ description: 'False: it has another owner, usually an extension' }),
        }),
      )
      .openapi({ description: 'Largest first' }),
    total: z
      .object({ ...figures, reclaimable_bytes: z.int() })
      .openapi({ description: 'Totals of the tables that may be vacuumed' }),
    rate_from: z.enum(['runs', 'default']).openapi({ description: 'runs: measured by earlier FULL vacuums here' }),
    bytes_per_second: z.int(),
    free_bytes: z.int().nullable(),
    needed_bytes: z.int().openapi({ description: 'For FULL of all that may be vacuumed, one after the other' }),
    mount: z.string().nullable(),
    enough_disk: z.boolean().nullable().openapi({ description: 'Null: unknown; FULL is rejected then, too' }),
    reason: z.string().nullable(),
    running: z.guid().nullable().openapi({ description: 'The job that is vacuuming now' }),
  })
  .openapi('VacuumPreview');

const previewRoute = apiRoute(
  {
    method: 'get',
    path: '/api/ops/database/vacuum',
    summary: 'Tables of the core with the space VACUUM FULL would free, and the disk space it needs',
    tags,
    responses: { 200: jsonAnswer('The preview', previewSchema) },
  },
  { access: 'viewer', fails: ['upstream', 'unavailable'] },
);

const { body } = bodyOf({
  mode: z.enum(VACUUM_MODES).openapi({
    description: 'full: frees disk space, and locks clients out meanwhile; standard: makes space usable for new rows',
  }),
  tables: z
    .array(z.string().min(1, 'must name a table').max(200, 'must have at most 200 characters'))
    .min(1, 'must name a table; omit it for all tables')
    .max(MAX_NAMES, `must be at most ${MAX_NAMES} names`)
    .optional()
    .openapi({ description: 'Names, with or without schema; default: all that may be vacuumed' }),
});

const startRoute = apiRoute(
  {
    method: 'post',
    path: '/api/ops/database/vacuum',
    summary: 'Vacuums tables of the core one after the other; returns the job that does it',
    tags,
    request: { body },
    responses: { 202: jsonAnswer('The job; Location is its address', opsJobSchema) },
  },
  { access: 'admin', fails: ['conflict', 'not_enough_disk', 'not_supported', 'upstream', 'unavailable'] },
);

/** Adds the routes of this file. */
export function vacuumFunction(app: App, deps: Deps): void {
  app.openapi(previewRoute, async function preview(c) {
    const answer = await deps.together('vacuum.preview', () => previewVacuum(deps));
    c.header('Cache-Control', 'no-store');
    return c.json(answer, 200);
  });
  app.openapi(startRoute, async function start(c) {
    const { mode, tables } = c.req.valid('json');
    const mayVacuum = deps.settings.CORE_DATABASE_OWNER_URL !== undefined;
    const job = await startVacuum(actingIn(c, deps), { mode, names: tables, mayVacuum });
    c.header('Cache-Control', 'no-store');
    c.header('Location', opsJobPath(job));
    return c.json(toOpsJobView(job), 202);
  });
}

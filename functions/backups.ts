// /api/backups: lists backups, starts and proves them, marks them permanent, and downloads one.

import { z } from '@hono/zod-openapi';
import { backupSchema, backupStateSchema } from '../shared/backups/port.ts';
import { isArchiveName } from '../shared/backups/rules.ts';
import { downloadBackup, markPermanent, startBackup, startProof } from '../shared/backups/start.ts';
import { backupsView } from '../shared/backups/view.ts';
import { dispositionOf } from '../shared/http/answers.ts';
import type { App } from '../shared/http/context.ts';
import type { Deps } from '../shared/http/deps.ts';
import { bodyOf } from '../shared/http/listing.ts';
import { apiRoute, jsonAnswer } from '../shared/http/route.ts';
import { opsJobPath, opsJobSchema, toOpsJobView } from '../shared/http/schemas/jobs.ts';
import { actingIn } from '../shared/http/sign-in.ts';

const tags = ['backups'];

// Copies: the schemas of the port know no OpenAPI.
const backupShown = z.object(backupSchema.shape).openapi('Backup');
const listSchema = z
  .object({
    ...backupStateSchema.shape,
    wanted: z.boolean().openapi({ description: 'False while BACKUP_TARGET is unset' }),
    cron: z.string().openapi({ description: 'BACKUP_CRON, in that time zone' }),
    time_zone: z.string(),
    next_at: z.iso.datetime().nullable().openapi({ description: 'The next scheduled backup' }),
    history: z.boolean().openapi({ description: 'BACKUP_HISTORY' }),
    keep_days: z.int().openapi({ description: 'BACKUP_KEEP_DAYS' }),
    keep_count: z.int().openapi({ description: 'BACKUP_KEEP_COUNT' }),
    backups: z
      .array(
        z.object({
          ...backupSchema.shape,
          proven: z.boolean().openapi({ description: 'Its proof reached the highest level that this stack can reach' }),
        }),
      )
      .openapi({ description: 'Newest first' }),
  })
  .openapi('Backups');

const name = { params: z.object({ name: z.string().refine(isArchiveName, 'must be the name of a backup') }) };

const listRoute = apiRoute(
  {
    method: 'get',
    path: '/api/backups',
    summary: 'Backups with their proofs, the target, the run in progress and the last failure',
    tags,
    responses: { 200: jsonAnswer('Backups', listSchema) },
  },
  { access: 'viewer', fails: ['upstream', 'unavailable'] },
);

const { body: startBody } = bodyOf({
  history: z.boolean().optional().openapi({ description: 'Include the history of messages; default: BACKUP_HISTORY' }),
});

const startRoute = apiRoute(
  {
    method: 'post',
    path: '/api/backups',
    summary: 'Makes a backup now; returns the job that does it',
    tags,
    request: { body: { ...startBody, required: false } },
    responses: { 202: jsonAnswer('The job; Location is its address', opsJobSchema) },
  },
  { access: 'admin', fails: ['conflict', 'not_supported', 'upstream', 'unavailable'] },
);

const proofRoute = apiRoute(
  {
    method: 'post',
    path: '/api/backups/{name}/proof',
    summary: 'Proves a backup by restoring it into a scratch instance; returns the job that does it',
    tags,
    request: name,
    responses: { 202: jsonAnswer('The job; Location is its address', opsJobSchema) },
  },
  { access: 'admin', fails: ['invalid', 'not_found', 'conflict', 'not_supported', 'upstream', 'unavailable'] },
);

const permanentRoute = apiRoute(
  {
    method: 'put',
    path: '/api/backups/{name}/permanent',
    summary: 'Keeps a backup for good, or lets the keep rules delete it again',
    tags,
    request: { ...name, ...bodyOf({ permanent: z.boolean() }) },
    responses: { 200: jsonAnswer('The backup', backupShown) },
  },
  { access: 'admin', fails: ['not_found', 'not_supported', 'upstream', 'unavailable'] },
);

const archiveRoute = apiRoute(
  {
    method: 'get',
    path: '/api/backups/{name}/archive',
    summary: 'Downloads the archive of a backup, encrypted as it is stored',
    tags,
    request: name,
    responses: {
      200: {
        description: 'The archive, a tar file compressed with zstd and encrypted with age',
        content: { 'application/octet-stream': { schema: z.string().openapi({ format: 'binary' }) } },
      },
    },
  },
  { access: 'admin', fails: ['invalid', 'not_found', 'not_supported', 'upstream', 'unavailable'] },
);

/** Adds the routes of this file. */
export function backupsFunction(app: App, deps: Deps): void {
  app.openapi(listRoute, async function listBackups(c) {
    const view = await backupsView(deps);
    c.header('Cache-Control', 'no-store');
    return c.json(view, 200);
  });
  app.openapi(startRoute, async function start(c) {
    const { history } = c.req.valid('json');
    const job = await startBackup(actingIn(c, deps), { history });
    c.header('Cache-Control', 'no-store');
    c.header('Location', opsJobPath(job));
    return c.json(toOpsJobView(job), 202);
  });
  app.openapi(proofRoute, async function prove(c) {
    const job = await startProof(actingIn(c, deps), c.req.valid('param').name);
    c.header('Cache-Control', 'no-store');
    c.header('Location', opsJobPath(job));
    return c.json(toOpsJobView(job), 202);
  });
  app.openapi(permanentRoute, async function keep(c) {
    const { name: file } = c.req.valid('param');
    const backup = await markPermanent(actingIn(c, deps), { name: file, ...c.req.valid('json') });
    c.header('Cache-Control', 'no-store');
    return c.json(backup, 200);
  });
  app.openapi(archiveRoute, async function download(c) {
    const { name: file } = c.req.valid('param');
    const { body, bytes } = await downloadBackup(actingIn(c, deps), file);
    return c.newResponse(body, 200, {
      'Content-Type': 'application/octet-stream',
      'Content-Length': String(bytes),
      'Content-Disposition': dispositionOf(file),
      'Cache-Control': 'no-store',
      'X-Content-Type-Options': 'nosniff',
    });
  });
}

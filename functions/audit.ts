// Serves the audit log with its verification, and the log files.

import { z } from '@hono/zod-openapi';
import { AppError } from '@holdfast/kit/app-error';
import { objectIn } from '@holdfast/kit/json';
import { csvLine } from '@holdfast/kit/text';
import { AUDIT_PHASES, AUDIT_RESULTS, type AuditRecord } from '../shared/audit/port.ts';
import type { App } from '../shared/http/context.ts';
import type { Deps } from '../shared/http/deps.ts';
import { csvAnswer, integerQuery, listingAnswer, listingQuery, pageOf, wantedPart } from '../shared/http/listing.ts';
import { apiRoute, jsonAnswer } from '../shared/http/route.ts';

const recordSchema = z
  .object({
    seq: z.int(),
    at: z.iso.datetime(),
    actor: z.string(),
    address: z.string(),
    action: z.string(),
    target: z.string(),
    phase: z.enum(AUDIT_PHASES),
    result: z.enum(AUDIT_RESULTS).nullable().openapi({ description: 'Null for an intent' }),
    detail: z.record(z.string(), z.unknown()),
    intent: z.int().nullable().openapi({ description: 'seq of the intent that an outcome belongs to' }),
    request_id: z.string(),
    hash: z.string(),
  })
  .openapi('AuditRecord');

const pageSchema = pageOf(recordSchema, 'AuditPage');

const verdictSchema = z
  .object({
    ok: z.boolean(),
    records: z.int().openapi({ description: 'Number of checked records' }),
    first_broken: z.int().nullable().openapi({ description: 'seq of the first record that was changed or removed' }),
  })
  .openapi('AuditVerdict');

const filterText = (): z.ZodOptional<z.ZodString> => z.string().min(1).max(300).optional();

const listRoute = apiRoute(
  {
    method: 'get',
    path: '/api/audit',
    summary: 'The audit log, newest first; CSV without page and page_size has all matches, at most 10,000',
    tags: ['audit'],
    request: {
      query: z.object({
        actor: filterText(),
        action: filterText().openapi({ description: 'Exact, or its first words: user also finds user.create' }),
        target: filterText(),
        ...listingQuery(),
      }),
    },
    responses: { 200: listingAnswer('A page; for CSV, X-Total-Count has the count', pageSchema) },
  },
  { access: 'admin', fails: ['invalid'] },
);

const verifyRoute = apiRoute(
  {
    method: 'get',
    path: '/api/audit/verify',
    summary: 'Checks that no record was changed or removed',
    tags: ['audit'],
    responses: { 200: jsonAnswer('The verdict', verdictSchema) },
  },
  { access: 'admin' },
);

/** Adds the routes below /api/audit. */
export function auditFunction(app: App, deps: Deps): void {
  app.openapi(listRoute, async function listAudit(c) {
    const { page, page_size, format, ...filter } = c.req.valid('query');
    const { offset, limit } = wantedPart(c, { page, page_size, format });
    const { results, count } = await deps.audit.list(filter, offset, limit);
    c.header('Cache-Control', 'no-store');
    if (format === 'csv') return csvAnswer(c, 'audit', csvOf(results), count);
    return c.json({ results: results.map(shown), count, page, page_size }, 200);
  });
  app.openapi(verifyRoute, async function verifyAudit(c) {
    c.header('Cache-Control', 'no-store');
    return c.json(await deps.together('audit.verify', async () => deps.audit.verify()), 200);
  });
}

function shown(record: AuditRecord): z.infer<typeof recordSchema> {
  return { ...record, detail: objectIn(record.detail) };
}

const COLUMNS = Object.keys(recordSchema.shape) as (keyof AuditRecord)[];

function csvOf(records: readonly AuditRecord[]): string {
  return csvLine(COLUMNS) + records.map((record) => csvLine(COLUMNS.map((column) => record[column]))).join('');
}

const namesSchema = z.array(z.string());
const tailSchema = z.object({ name: z.string(), lines: z.array(z.string()) });

const logsRoute = apiRoute(
  {
    method: 'get',
    path: '/api/logs',
    summary: 'Names of the logs, or the last lines of one',
    tags: ['operations'],
    request: {
      query: z.object({
        name: z.string().min(1).max(100).optional(),
        tail: integerQuery(1, 5000, 200),
      }),
    },
    responses: { 200: jsonAnswer('Names, or lines oldest first', z.union([namesSchema, tailSchema])) },
  },
  { access: 'admin', fails: ['not_found', 'invalid', 'not_supported'] },
);

/** Adds the route /api/logs. */
export function logsFunction(app: App, deps: Deps): void {
  app.openapi(logsRoute, async function showLogs(c) {
    const { name, tail } = c.req.valid('query');
    c.header('Cache-Control', 'no-store');
    if (name === undefined) return c.json(await deps.logFiles.names(), 200);
    const lines = await deps.logFiles.tail(name, tail);
    if (lines === undefined) throw new AppError('not_found', `No log is named "${name}". Omit name for the list.`);
    return c.json({ name, lines }, 200);
  });
}

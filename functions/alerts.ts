// GET /api/alerts lists alerts with their deliveries; POST /api/ops/alerts/test sends a test
// message.

import { z } from '@hono/zod-openapi';
import { csvLine } from '@holdfast/kit/text';
import { toAlertView } from '../shared/alerts/message.ts';
import { sendTestMessage } from '../shared/alerts/transports.ts';
import { ALERT_STATES, CHANNELS } from '../shared/alerts/port.ts';
import { audited } from '../shared/audit/audited.ts';
import type { App } from '../shared/http/context.ts';
import type { Deps } from '../shared/http/deps.ts';
import { csvAnswer, listingAnswer, listingQuery, wantedPart } from '../shared/http/listing.ts';
import { apiRoute, jsonAnswer } from '../shared/http/route.ts';
import { actorOf } from '../shared/http/sign-in.ts';
import { STATUSES } from '../shared/settings/status.ts';

const levelSchema = z.enum(STATUSES).exclude(['ok']);
const time = z.iso.datetime();
const alertSchema = z
  .object({
    id: z.string(),
    module: z.string(),
    level: levelSchema,
    message: z.string(),
    raised_at: time,
    state: z.enum(ALERT_STATES),
    sent_at: time.nullable(),
    attempts: z.int(),
    since: time,
    details: z.array(z.string()),
    remedies: z.array(z.string()),
    reason: z.string().nullable(),
    next_attempt_at: time.nullable(),
    deliveries: z.array(
      z.object({
        channel: z.enum(CHANNELS),
        recipient: z.string(),
        accepted: z.boolean(),
        detail: z.string(),
        at: time,
      }),
    ),
  })
  .openapi('Alert');
type AlertView = z.infer<typeof alertSchema>;

const pageSchema = z
  .object({
    results: z.array(alertSchema),
    count: z.int(),
    page: z.int(),
    page_size: z.int(),
    complete: z.boolean().openapi({ description: 'False while the database is unavailable' }),
  })
  .openapi('AlertPage');

const listRoute = apiRoute(
  {
    method: 'get',
    path: '/api/alerts',
    summary: 'Alerts, newest first; CSV without page and page_size has all matches, at most 10,000',
    tags: ['alerts'],
    request: {
      query: z.object({
        module: z
          .string()
          .regex(/^[\w-]{1,100}$/, 'must be the name of a health module')
          .optional(),
        level: levelSchema.optional(),
        state: z.enum(ALERT_STATES).optional(),
        ...listingQuery(),
      }),
    },
    responses: {
      200: listingAnswer('A page; for CSV, X-Total-Count and X-Complete have the count and completeness', pageSchema),
    },
  },
  { access: 'viewer', area: 'monitoring', fails: ['invalid'] },
);

const testRoute = apiRoute(
  {
    method: 'post',
    path: '/api/ops/alerts/test',
    summary: 'Sends a test message to all recipients of a channel',
    tags: ['alerts'],
    request: {
      body: { content: { 'application/json': { schema: z.object({ channel: z.enum(CHANNELS) }) } }, required: true },
    },
    responses: { 200: jsonAnswer('The result', z.object({ delivered: z.boolean(), detail: z.string() })) },
  },
  { access: 'admin', fails: ['conflict'] },
);

/** Adds the routes of this file. */
export function alertsFunction(app: App, deps: Deps): void {
  app.openapi(listRoute, async function listAlerts(c) {
    const { page, page_size, format, ...filter } = c.req.valid('query');
    const { offset, limit } = wantedPart(c, { page, page_size, format });
    const { results, count, complete } = await deps.alerts.list(filter, offset, limit);
    const shown = results.map((alert) => toAlertView(alert, deps.settings));
    c.header('Cache-Control', 'no-store');
    if (format === 'json') return c.json({ results: shown, count, page, page_size, complete }, 200);
    return csvAnswer(c, 'alerts', csvOf(shown), count, { 'X-Complete': String(complete) });
  });
  app.openapi(testRoute, async function testChannel(c) {
    c.header('Cache-Control', 'no-store');
    const { channel } = c.req.valid('json');
    const auditedAction = { actor: actorOf(c), action: 'alert.test', target: channel };
    return c.json(await audited(deps, auditedAction, () => sendTestMessage(deps, channel)), 200);
  });
}

const COLUMNS = Object.keys(alertSchema.shape) as (keyof AlertView)[];

/** Details and deliveries are separate lines within their cell. */
function csvOf(alerts: readonly AlertView[]): string {
  const lines = alerts.map((alert) => {
    const deliveries = alert.deliveries.map(
      ({ channel, recipient, accepted, detail, at }) =>
        `${channel} ${recipient} ${accepted ? 'accepted' : 'refused'} ${at}: ${detail}`,
    );
    const flat = {
      ...alert,
      details: alert.details.join('\n'),
      remedies: alert.remedies.join('\n'),
      deliveries: deliveries.join('\n'),
    };
    return csvLine(COLUMNS.map((column) => flat[column]));
  });
  return csvLine(COLUMNS) + lines.join('');
}

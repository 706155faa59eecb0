// /api/retention: what is kept how long, and what a run would delete.

import { actingIn } from '../shared/http/acting.ts';
import type { Deps } from '../shared/http/deps.ts';
import type { App } from '../shared/http/env.ts';
import { previewQuery, previewSchema, retentionBody, retentionSchema } from '../shared/http/retention-schemas.ts';
import { apiRoute, jsonAnswer } from '../shared/http/route.ts';
import { changeRetention } from '../shared/verbs/change-retention.ts';
import { retentionState } from '../shared/verbs/retention-state.ts';
import { showPreview } from '../shared/verbs/show-preview.ts';

const tags = ['retention'];

const readRoute = apiRoute(
  {
    method: 'get',
    path: '/api/retention',
    summary: 'Days and schedule in force, where each comes from, and the next runs',
    tags,
    responses: { 200: jsonAnswer('Retention', retentionSchema) },
  },
  { access: 'viewer', fails: ['upstream', 'unavailable'] },
);

const changeRoute = apiRoute(
  {
    method: 'put',
    path: '/api/retention',
    summary: 'Changes days and schedule; notes say what the next run then deletes',
    tags,
    request: retentionBody,
    responses: { 200: jsonAnswer('Retention as it is then', retentionSchema) },
  },
  { access: 'admin', fails: ['conflict', 'upstream', 'unavailable'] },
);

const previewRoute = apiRoute(
  {
    method: 'get',
    path: '/api/retention/preview',
    summary: 'What a run would delete: with the policy in force, or with exactly the days that are given',
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
    const state = await changeRetention(actingIn(c, deps, 'admin', 'rest'), c.req.valid('json'));
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

// GET /api/ops/jobs: requested long jobs with progress and result. POST /api/ops/simulation starts
// one of simulated clients in a channel of their own; DELETE ends it early.

import { z } from '@hono/zod-openapi';
import { AppError } from '@holdfast/kit/app-error';
import type { App } from '../shared/http/context.ts';
import type { Deps } from '../shared/http/deps.ts';
import { bodyOf, pageOf, pagingQuery } from '../shared/http/listing.ts';
import { apiRoute, jsonAnswer } from '../shared/http/route.ts';
import { opsJobPath, opsJobSchema, toOpsJobView } from '../shared/http/schemas/jobs.ts';
import { actingIn } from '../shared/http/sign-in.ts';
import { OPS_JOB_STATES } from '../shared/jobs/port.ts';
import { startSimulation, stopSimulation } from '../shared/simulation/start.ts';

const tags = ['jobs'];

const SIMULATION = '/api/ops/simulation';
const ACCEPTED = { 202: jsonAnswer('The job; Location is its address', opsJobSchema) };

const { body } = bodyOf({
  clients: z.int().default(50).openapi({ description: 'At least 2; at most what the machine allows' }),
  minutes: z.int().default(1).openapi({ description: 'How long they send, 1 to 60' }),
  ramp: z.int().default(10).openapi({ description: 'Seconds over which they connect, at most 600' }),
  every: z.int().default(5).openapi({ description: 'Seconds between two positions of a client, 1 to 60' }),
});

const startSimulationRoute = apiRoute(
  {
    method: 'post',
    path: SIMULATION,
    summary: 'Connects simulated clients in the channel EXERCISE; returns the job that does it',
    tags,
    request: { body },
    responses: ACCEPTED,
  },
  { access: 'admin', fails: ['conflict', 'not_supported', 'upstream', 'unavailable'] },
);

const stopSimulationRoute = apiRoute(
  {
    method: 'delete',
    path: SIMULATION,
    summary: 'Ends the simulation early; everything of it is removed',
    tags,
    responses: ACCEPTED,
  },
  { access: 'admin', fails: ['not_found'] },
);

const listRoute = apiRoute(
  {
    method: 'get',
    path: '/api/ops/jobs',
    summary: 'Requested jobs, newest first; finished jobs are kept for 90 days',
    tags,
    request: {
      query: z.object({
        kind: z
          .string()
          .regex(/^[\w-]{1,100}$/, 'must be a kind of job, such as retention')
          .optional(),
        state: z.enum(OPS_JOB_STATES).optional(),
        ...pagingQuery(),
      }),
    },
    responses: { 200: jsonAnswer('A page', pageOf(opsJobSchema, 'OpsJobPage')) },
  },
  { access: 'viewer', fails: ['invalid'] },
);

const readRoute = apiRoute(
  {
    method: 'get',
    path: '/api/ops/jobs/{id}',
    summary: 'One job with its progress and result',
    tags,
    request: { params: z.object({ id: z.string() }) },
    responses: { 200: jsonAnswer('The job', opsJobSchema) },
  },
  { access: 'viewer', fails: ['not_found'] },
);

/** Adds the routes of this file. */
export function opsJobsFunction(app: App, deps: Deps): void {
  app.openapi(listRoute, async function listJobs(c) {
    const { page, page_size, kind, state } = c.req.valid('query');
    const filter = { ...(kind === undefined ? {} : { kind }), ...(state === undefined ? {} : { state }) };
    const { results, count } = await deps.opsJobs.list(filter, (page - 1) * page_size, page_size);
    c.header('Cache-Control', 'no-store');
    return c.json({ results: results.map(toOpsJobView), count, page, page_size }, 200);
  });
  app.openapi(readRoute, async function readJob(c) {
    const { id } = c.req.valid('param');
    const job = await deps.opsJobs.get(id.toLowerCase());
    if (job === undefined) throw new AppError('not_found', 'Job not found. GET /api/ops/jobs lists all jobs.');
    c.header('Cache-Control', 'no-store');
    return c.json(toOpsJobView(job), 200);
  });
  app.openapi(startSimulationRoute, async function start(c) {
    const job = await startSimulation(actingIn(c, deps), c.req.valid('json'));
    c.header('Cache-Control', 'no-store');
    c.header('Location', opsJobPath(job));
    return c.json(toOpsJobView(job), 202);
  });
  app.openapi(stopSimulationRoute, async function stop(c) {
    const job = await stopSimulation(actingIn(c, deps));
    c.header('Cache-Control', 'no-store');
    c.header('Location', opsJobPath(job));
    return c.json(toOpsJobView(job), 202);
  });
}

// The entry of workerd: the same functions and jobs. Requests come from the Node host only, which
// vouches for the connection they arrived on.

import { z } from 'zod';
import { AppError } from '@holdfast/kit/app-error';
import { constantTimeEqual } from '@holdfast/kit/secret';
import { JOBS } from '../jobs/index.ts';
import type { App, Bindings } from '../shared/http/context.ts';
import type { Deps } from '../shared/http/deps.ts';
import { problemResponse } from '../shared/http/problem.ts';
import { minuteCron } from '../shared/jobs/crons.ts';
import { runJob } from '../shared/jobs/run.ts';
import { workerdDeps, type WorkerEnv } from '../shared/runtime/workerd-deps.ts';
import { createApp } from './app.ts';

interface Started {
  app: App;
  deps: Deps;
  /** Names this isolate as the runner of jobs. */
  runner: string;
}

const bindings = z.object({
  requestId: z.string(),
  clientAddress: z.string(),
  secure: z.boolean(),
  face: z.enum(['console', 'portal']).exactOptional(),
});
let started: Started | undefined;

/** Once per isolate: nothing in it belongs to a single request. */
function start(env: WorkerEnv): Started {
  if (started !== undefined) return started;
  const deps = workerdDeps(env);
  return (started = { app: createApp(deps), deps, runner: crypto.randomUUID() });
}

/** The connection as the host saw it; undefined when the request does not come from the host. */
async function connectionOf(request: Request, env: WorkerEnv): Promise<Bindings | undefined> {
  if (!(await constantTimeEqual(request.headers.get('x-holdfast-host') ?? '', env.HOST_TOKEN))) return undefined;
  return bindings.parse(JSON.parse(request.headers.get('x-holdfast-connection') ?? '{}'));
}

export default {
  async fetch(request: Request, env: WorkerEnv): Promise<Response> {
    const connection = await connectionOf(request, env);
    if (connection !== undefined) return start(env).app.fetch(request, connection);
    return problemResponse(new AppError('forbidden', 'Ask the host of this worker.'), crypto.randomUUID());
  },

  async scheduled(
    { cron, scheduledTime }: { cron: string; scheduledTime: number | Date },
    env: WorkerEnv,
  ): Promise<void> {
    const { deps, runner } = start(env);
    const due = JOBS.filter((job) => minuteCron(job.cron) === cron);
    await Promise.all(due.map((job) => runJob(job, deps, runner, new Date(scheduledTime))));
  },
};

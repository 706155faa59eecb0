// Deps of a stack whose core keeps retention: rows of 90 days, a policy, and ways to order a run and to carry it on.

import type { CoreRetentionRun } from '@holdfast/kit/core-wire';
import type { Retained } from '@holdfast/kit/retention';
import { DAY_MS } from '@holdfast/kit/time';
import { run as runRetention } from '../../jobs/run-retention.ts';
import type { OpsJob } from '../../shared/jobs/port.ts';
import type { Step } from '../../shared/jobs/followed-job.ts';
import { peopleWorld, type PeopleWorld } from '../people/fake-people.ts';
import type { FakeRetention } from './fake-retention.ts';

export interface RetentionWorld extends PeopleWorld {
  retention: FakeRetention;
  /** So many days ago, ISO 8601. */
  ago(days: number): string;
  later(seconds: number): void;
  /** POST /api/retention/runs. */
  order(body?: unknown): Promise<Response>;
  /** The id of the job that was accepted. */
  ordered(body?: unknown): Promise<string>;
  /** One step of the job, two seconds later. */
  step(): Promise<Step>;
  job(id: string): Promise<OpsJob>;
  /** That of the core, which can be changed. */
  coreRun(id: string): CoreRetentionRun;
}

/** `perDay` rows of each type a day; the policy keeps events for 30 days and chat for 60. */
export async function retentionWorld(
  values: Record<string, string> = { CORE_RETENTION_UNIT: 'days' },
  perDay = 1,
): Promise<RetentionWorld> {
  const world = await peopleWorld(values);
  const { around, deps } = world;
  const { retention } = deps;
  const ago = (days: number): string => new Date(around.now.getTime() - days * DAY_MS).toISOString();
  const hours = Array.from({ length: 90 * perDay }, (_, n) => ago(0.5 / perDay + n / perDay));
  for (const type of Object.keys(retention.rows) as Retained[]) retention.rows[type] = [...hours];
  Object.assign(retention.policy, { cot: 30, geochat: 60 });
  const order = (body: unknown = {}): Promise<Response> => world.ask('POST', '/api/retention/runs', body);
  const later = (seconds: number): void => {
    around.now = new Date(around.now.getTime() + seconds * 1000);
  };
  return {
    ...world,
    retention,
    ago,
    later,
    order,
    async ordered(body) {
      const response = await order(body);
      if (response.status !== 202) throw new Error(`${response.status} ${await response.text()}`);
      return ((await response.json()) as { id: string }).id;
    },
    async step() {
      later(2);
      return (await runRetention(deps)).step;
    },
    async job(id) {
      const job = await deps.opsJobs.get(id);
      if (job === undefined) throw new Error(`no job ${id}`);
      return job;
    },
    coreRun(id) {
      const run = retention.runs.find((each) => each.id === id);
      if (run === undefined) throw new Error(`no run ${id} at the core`);
      return run;
    },
  };
}

// Deps of a stack whose database can be vacuumed, with room on its disk, and ways to order a vacuum and to carry it on.

import { run as runVacuum } from '../../jobs/run-vacuum.ts';
import type { Step } from '../../shared/database/vacuum/work.ts';
import type { DiskUse } from '../../shared/host/port.ts';
import type { OpsJob } from '../../shared/jobs/port.ts';
import { peopleWorld, type PeopleWorld } from '../people/fake-people.ts';
import { fakeTable, type FakeTable, type FakeVacuum } from './fake-vacuum.ts';

export const OWNER_URL = { CORE_DATABASE_OWNER_URL: 'postgres://owner:secret@127.0.0.1:5432/cot' };
export const GIB = 1024 ** 3;

export interface VacuumWorld extends PeopleWorld {
  vacuum: FakeVacuum;
  later(seconds: number): void;
  /** POST /api/ops/database/vacuum. */
  order(body?: unknown): Promise<Response>;
  /** The id of the job that was accepted. */
  ordered(body?: unknown): Promise<string>;
  /** One step of the job, two seconds later. */
  step(): Promise<Step>;
  /** Steps until the statement of the job runs. */
  begun(id: string): Promise<void>;
  /** Steps, each statement ending well, until the job has ended. */
  throughout(id: string): Promise<OpsJob>;
  job(id: string): Promise<OpsJob>;
  /** Lines of its log, without their times. */
  reportedIn(id: string): Promise<string[]>;
  table(name: string): FakeTable;
}

export function databaseMount(free: number, members: Partial<DiskUse> = {}): DiskUse {
  return {
    mount: '/data',
    paths: ['/data/pgdata', '/data/pgdata/pg_wal'],
    total_bytes: 100e9,
    free_bytes: free,
    used_pct: 50,
    inodes_used_pct: 1,
    ...members,
  };
}

/** Three tables of 0.1, 1 and 8 GB, of each of which FULL gives a quarter back. */
export async function vacuumWorld(values: Record<string, string> = OWNER_URL): Promise<VacuumWorld> {
  const world = await peopleWorld(values);
  const { around, deps } = world;
  const { vacuum } = deps;
  vacuum.tables = [fakeTable('cot_router', 8e9), fakeTable('resource', 1e9), fakeTable('cot_router_chat', 1e8)];
  around.mounts = [databaseMount(50e9)];
  const order = (body: unknown = { mode: 'full' }): Promise<Response> =>
    world.ask('POST', '/api/ops/database/vacuum', body);
  const later = (seconds: number): void => {
    around.now = new Date(around.now.getTime() + seconds * 1000);
  };
  const isRunning = (id: string): boolean => vacuum.statements.get(id)?.shown.state === 'running';
  async function step(): Promise<Step> {
    later(2);
    return (await runVacuum(deps, around.now)).step;
  }
  async function job(id: string): Promise<OpsJob> {
    const found = await deps.opsJobs.get(id);
    if (found === undefined) throw new Error(`no job ${id}`);
    return found;
  }
  return {
    ...world,
    vacuum,
    later,
    order,
    step,
    job,
    async ordered(body) {
      const response = await order(body);
      if (response.status !== 202) throw new Error(`${response.status} ${await response.text()}`);
      return ((await response.json()) as { id: string }).id;
    },
    async begun(id) {
      for (let steps = 0; !isRunning(id); steps++) {
        if (steps > 50) throw new Error(`nothing was begun: ${JSON.stringify(await job(id))}`);
        await step();
      }
    },
    async throughout(id) {
      for (let steps = 0; steps < 500; steps++) {
        if (isRunning(id)) vacuum.end(id);
        if ((await step()) === 'ended') return job(id);
      }
      throw new Error(`it does not end: ${JSON.stringify(await job(id))}`);
    },
    reportedIn: async (id) => (await job(id)).log.map((line) => line.slice(25)),
    table(name) {
      const found = vacuum.tables.find((each) => each.table === name);
      if (found === undefined) throw new Error(`no table ${name}`);
      return found;
    },
  };
}

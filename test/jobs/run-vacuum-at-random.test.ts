// A vacuum in a world in which anything happens at any time: its end agrees with what was done to the tables.

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { AppError } from '@holdfast/kit/app-error';
import { run as finishIntents } from '../../jobs/finish-intents.ts';
import { run as runVacuum } from '../../jobs/run-vacuum.ts';
import type { VacuumMode } from '../../shared/database/port.ts';
import type { VacuumResult } from '../../shared/database/vacuum/jobs.ts';
import { NOTICE_AFTER } from '../../shared/database/vacuum/rules.ts';
import { databaseMount, vacuumWorld, type VacuumWorld } from '../database/fake-vacuum-world.ts';
import { standIn } from '../devices/fake-revocation-world.ts';
import { dyingAt, OF_VACUUM } from '../people/fake-people.ts';

const NAMES = ['cot_router_chat', 'resource', 'cot_router'] as const;
/** A host that looks once a minute, and is a little late, was not away. */
const UNAVAILABLE_MS = 75_000;

const table = fc.constantFrom(...NAMES);
const happening = fc.oneof(
  { weight: 6, arbitrary: fc.constant({ what: 'step' } as const) },
  { weight: 4, arbitrary: fc.constant({ what: 'ends well' } as const) },
  fc.record({
    what: fc.constant('fails' as const),
    error: fc.constantFrom('55P03', '42501', '53100', '57P01', '40P01'),
  }),
  fc.record({
    what: fc.constant('is killed' as const),
    nth: fc.integer({ min: 1, max: 40 }),
    when: fc.constantFrom('before' as const, 'after' as const),
  }),
  fc.constant({ what: 'database dies' } as const),
  fc.constant({ what: 'database is away' } as const),
  fc.constant({ what: 'answers are lost' } as const),
  fc.constant({ what: 'database is back' } as const),
  fc.record({ what: fc.constant('is held' as const), table }),
  fc.constant({ what: 'is let go' } as const),
  fc.record({ what: fc.constant('is dropped' as const), table }),
  fc.record({ what: fc.constant('room' as const), bytes: fc.constantFrom(0, 6e9, 50e9) }),
  fc.record({ what: fc.constant('time' as const), seconds: fc.constantFrom(1, 30, 59, 90, 700, 4000) }),
);
type Happening = typeof happening extends fc.Arbitrary<infer T> ? T : never;

interface Course {
  world: VacuumWorld;
  id: string;
  /** What statements of the job have really done. */
  done: Set<string>;
  dropped: Set<string>;
  isUnavailable: boolean;
  /** What was begun is not said to have been. */
  losesAnswer: boolean;
  /** Nobody looked for too long: nothing may be begun any more. */
  wasAlone: boolean;
  /** The process that has begun the statement is gone: nobody hears of its end. */
  isOrphan: boolean;
  wrong: string[];
}

async function course(mode: VacuumMode): Promise<Course> {
  const world = await vacuumWorld();
  const { deps, vacuum } = world;
  const made: Course = {
    world,
    id: await world.ordered({ mode }),
    done: new Set(),
    dropped: new Set(),
    isUnavailable: false,
    losesAnswer: false,
    wasAlone: false,
    isOrphan: false,
    wrong: [],
  };
  standIn(deps.coreVacuum, 'begin', (begin) => async (order) => {
    if (made.isUnavailable) throw new AppError('unavailable', 'no answer');
    if ([...vacuum.statements.values()].some(({ shown }) => shown.state === 'running')) made.wrong.push('two at once');
    if (made.wasAlone) made.wrong.push(`${order.table} begun after nobody looked for long`);
    await begin(order);
    made.isOrphan = false;
    if (made.losesAnswer) throw new AppError('unavailable', 'the answer was lost');
  });
  const facts = deps.vacuumFacts as unknown as Record<string, (...given: unknown[]) => Promise<unknown>>;
  for (const [name, real] of Object.entries(facts))
    facts[name] = (...given) =>
      made.isUnavailable ? Promise.reject(new AppError('unavailable', 'no answer')) : real(...given);
  return made;
}

async function step(made: Course, deps = made.world.deps): Promise<void> {
  const { world, id } = made;
  world.later(2);
  const { memory, createdAt } = await world.job(id);
  const lookedAt = (memory as { looked_at?: string } | null)?.looked_at ?? createdAt;
  if (world.around.now.getTime() - Date.parse(lookedAt) > UNAVAILABLE_MS) made.wasAlone = true;
  await runVacuum(deps, world.around.now);
}

function endStatement(made: Course, error?: string): void {
  const { world, id, done, dropped } = made;
  const statement = world.vacuum.statements.get(id);
  if (statement?.shown.state !== 'running') return;
  const name = statement.order.table;
  if (dropped.has(name)) world.vacuum.statements.delete(id);
  else {
    world.vacuum.end(id, error);
    if (error === undefined) done.add(name);
  }
  if (made.isOrphan) world.vacuum.statements.delete(id);
}

async function happen(made: Course, it: Happening): Promise<void> {
  const { world } = made;
  const { vacuum, around } = world;
  switch (it.what) {
    case 'step':
      return step(made);
    case 'ends well':
      return endStatement(made);
    case 'fails':
      return endStatement(made, it.error);
    case 'is killed':
      await step(made, dyingAt(world.deps, it.nth, it.when, OF_VACUUM)).catch(() => undefined);
      made.isOrphan = true;
      if ([...vacuum.statements.values()].some(({ shown }) => shown.state === 'ended')) vacuum.die();
      return undefined;
    case 'database dies':
      return vacuum.die();
    case 'database is away':
      made.isUnavailable = true;
      return undefined;
    case 'answers are lost':
      made.losesAnswer = true;
      return undefined;
    case 'database is back':
      made.losesAnswer = false;
      made.isUnavailable = false;
      return undefined;
    case 'is held': {
      const since = new Date(around.now.getTime() - 10_000).toISOString();
      for (const each of vacuum.tables.filter((one) => one.table === it.table))
        each.holders = [{ pid: 7, user: 'u', application: '', since }];
      return undefined;
    }
    case 'is let go':
      for (const each of vacuum.tables) each.holders = [];
      return undefined;
    case 'is dropped':
      made.dropped.add(it.table);
      vacuum.tables = vacuum.tables.filter((one) => one.table !== it.table);
      return undefined;
    case 'room':
      around.mounts = [databaseMount(it.bytes)];
      return undefined;
    case 'time':
      return world.later(it.seconds);
  }
}

/** Steps without further trouble, until the job has ended. */
async function finish(made: Course): Promise<void> {
  const { world } = made;
  made.isUnavailable = false;
  made.losesAnswer = false;
  for (const each of world.vacuum.tables) each.holders = [];
  for (let steps = 0; steps < 100 && (await world.deps.opsJobs.open()).length > 0; steps++) {
    await step(made);
    endStatement(made);
  }
  world.later(300);
  await finishIntents(world.deps, world.around.now, new AbortController().signal);
}

async function agrees({ world, id, done, dropped, wrong }: Course): Promise<void> {
  const job = await world.job(id);
  expect(wrong).toEqual([]);
  expect(job.finishedAt).not.toBeNull();
  const { tables } = job.result as VacuumResult;
  expect(tables.map((each) => each.table)).toEqual(NAMES);
  const isGivenUp = job.error?.startsWith('Given up') === true;
  for (const { table: name, state } of tables) {
    if (state === 'done') expect([name, done.has(name)]).toEqual([name, true]);
    else if (!dropped.has(name) && !isGivenUp) expect([name, state, done.has(name)]).toEqual([name, state, false]);
  }
  expect(job.state === 'succeeded').toBe(tables.every(({ state }) => state === 'done'));
  const phases = world.deps.audit.records.filter(({ action }) => action === 'database.vacuum');
  expect(phases.map(({ phase }) => phase)).toEqual(['intent', 'outcome']);
  const notices = world.vacuum.notices ?? [];
  expect(notices.filter((text) => text === NOTICE_AFTER).length).toBeLessThanOrEqual(1);
  expect(notices.filter((text) => text !== NOTICE_AFTER).length).toBeLessThanOrEqual(1);
}

describe('a vacuum, whatever happens meanwhile', () => {
  it.each(['full', 'standard'] as const)(
    'ends %s as the tables show it, and begins nothing that it may not',
    async (mode) => {
      const states = new Set<string>();
      await fc.assert(
        fc.asyncProperty(fc.array(happening, { maxLength: 40 }), async (happenings) => {
          const made = await course(mode);
          for (const each of happenings) await happen(made, each);
          await finish(made);
          await agrees(made);
          states.add((await made.world.job(made.id)).state);
        }),
        { numRuns: 150 },
      );
      expect([...states].toSorted()).toEqual(['failed', 'interrupted', 'succeeded']);
    },
  );
});

// A change of retention among others, and in a process that dies.

import { beforeEach, describe, expect, it } from 'vitest';
import { AppError } from '@holdfast/kit/app-error';
import { KEEP_ALL } from '@holdfast/kit/retention';
import { MINUTE_MS } from '@holdfast/kit/time';
import { run as finishIntents } from '../../jobs/finish-intents.ts';
import { changeRetention } from '../../shared/retention/change.ts';
import type { FakeDeps } from '../http/fake-deps.ts';
import { ACTOR, dyingAt, peopleWorld, type PeopleWorld } from '../people/fake-people.ts';

const OLD = { policy: { ...KEEP_ALL, cot: 10, files: 10 }, schedule: '0 0 3 * * ?' };
const NEW = { policy: { ...KEEP_ALL, cot: 90, files: 5 }, schedule: '0 0 5 * * ?' };
const INPUT = { policy: { cot: 90, files: 5 }, cron: '0 0 5 * * ?' };

let world: PeopleWorld;
beforeEach(async () => {
  world = await peopleWorld({ CORE_RETENTION_UNIT: 'days' });
  Object.assign(world.deps.retention, { policy: { ...OLD.policy }, schedule: OLD.schedule });
});

const inForce = () => ({ policy: world.deps.retention.policy, schedule: world.deps.retention.schedule });
const outcomes = () =>
  world.deps.audit.records
    .filter(({ action, phase }) => action === 'retention.change' && phase === 'outcome')
    .map(({ result, detail }) => ({ result, ...(JSON.parse(detail) as Record<string, unknown>) }));

async function finish(afterMinutes = 3): Promise<Record<string, number>> {
  world.around.now = new Date(world.around.now.getTime() + afterMinutes * MINUTE_MS);
  return finishIntents(world.deps, world.around.now, new AbortController().signal);
}

describe('changes of retention', () => {
  it('come one after the other: of two at once the second begins with what the first has left', async () => {
    const change = (deps: FakeDeps, policy: object) => changeRetention({ deps, actor: ACTOR }, { policy });
    await Promise.all([change(world.deps, { cot: 20 }), change(world.deps, { cot: 30 })]);
    const intents = world.deps.audit.records.filter(({ phase }) => phase === 'intent');
    expect(intents.map(({ detail }) => JSON.parse(detail) as unknown)).toMatchObject([
      { old: { policy: { cot: 10 } }, new: { policy: { cot: 20 } } },
      { old: { policy: { cot: 20 } }, new: { policy: { cot: 30 } } },
    ]);
    expect(inForce().policy.cot).toBe(30);
  });

  it('are not made by somebody who was put out while waiting', async () => {
    const mustStillBeIn = () => Promise.reject(new AppError('forbidden', 'not any more'));
    await expect(changeRetention({ deps: world.deps, actor: ACTOR, mustStillBeIn }, INPUT)).rejects.toThrow(
      'not any more',
    );
    expect(inForce()).toEqual(OLD);
  });

  it('are not made without an intent in the audit log', async () => {
    world.deps.audit.mood = 'away';
    await expect(changeRetention({ deps: world.deps, actor: ACTOR }, INPUT)).rejects.toThrow('Our own database');
    expect(inForce()).toEqual(OLD);
  });

  it('in days are not given to a release, which would take them for seconds; but it may be told to keep more', async () => {
    world.deps.retention.tellsRuns = false;
    const change = (input: object) => changeRetention({ deps: world.deps, actor: ACTOR }, input);
    for (const requested of [INPUT, { policy: { geochat: 30 } }])
      await expect(change(requested)).rejects.toMatchObject({
        code: 'conflict',
        message: expect.stringMatching(/this core is a TAK Server release, which counts seconds.* Nothing was changed/),
      });
    expect([inForce(), outcomes()]).toEqual([OLD, []]);
    await change({ policy: { cot: null, files: null }, cron: '-' });
    await expect(change({ cron: '0 0 3 * * ?', policy: { cot: 10 } })).rejects.toMatchObject({ code: 'conflict' });
    expect(inForce()).toEqual({ policy: KEEP_ALL, schedule: '-' });
  });

  it('that the core does not take are put back, and concluded with what is in force', async () => {
    world.deps.coreRetention.changeSchedule = () =>
      Promise.reject(new AppError('upstream', 'The core has "-" in force.'));
    await expect(changeRetention({ deps: world.deps, actor: ACTOR }, INPUT)).rejects.toMatchObject({
      code: 'upstream',
      message: expect.stringContaining('Nothing was changed. In force: cot 10 days, files 10 days'),
    });
    expect(inForce()).toEqual(OLD);
    expect(outcomes()).toEqual([{ result: 'unknown', error: expect.stringContaining('Nothing was changed') }]);
  });

  it('of which nobody knows what became are looked at later', async () => {
    const { coreRetention, retention } = world.deps;
    coreRetention.changeSchedule = () => {
      retention.mood = 'down';
      return Promise.reject(new AppError('unavailable', 'The core did not answer.'));
    };
    await expect(changeRetention({ deps: world.deps, actor: ACTOR }, INPUT)).rejects.toThrow(
      "Couldn't read the values in force now. The result is read back within minutes",
    );
    expect(outcomes()).toEqual([]);
    expect(await finish()).toMatchObject({ open: 1 });
    retention.mood = 'up';
    await finish();
    expect(outcomes()).toMatchObject([
      {
        result: 'failed',
        error: expect.stringContaining('done in part and not continued: in force is cot 90 days'),
      },
    ]);
    expect(inForce()).toEqual({ policy: { ...OLD.policy, cot: 90 }, schedule: OLD.schedule });
  });
});

describe('a process that dies in a change', () => {
  // Policy and schedule are read, and whether the core tells of runs; then the policy that keeps more is set, the schedule, and the policy that keeps less.
  it.each([
    [4, 'before', OLD],
    [4, 'after', { policy: { ...OLD.policy, cot: 90 }, schedule: OLD.schedule }],
    [5, 'after', { policy: { ...OLD.policy, cot: 90 }, schedule: NEW.schedule }],
    [6, 'before', { policy: { ...OLD.policy, cot: 90 }, schedule: NEW.schedule }],
    [6, 'after', NEW],
  ] as const)(
    'at call %d, %s it, leaves what keeps enough; the job says what is, and does nothing',
    async (nth, when, left) => {
      const deps = dyingAt(world.deps, nth, when, ['coreRetention']);
      await expect(changeRetention({ deps, actor: ACTOR }, INPUT)).rejects.toThrow();
      expect(inForce()).toEqual(left);
      expect(outcomes()).toEqual([]);
      await finish();
      expect(inForce()).toEqual(left);
      const message = left === NEW ? 'ok' : 'failed';
      expect(outcomes()).toMatchObject([{ result: message, finished_later: true }]);
      if (left === OLD) expect(outcomes()).toMatchObject([{ error: 'not done: the previous values are in force' }]);
    },
  );

  it('is not judged by what somebody changed later', async () => {
    const deps = dyingAt(world.deps, 5, 'after', ['coreRetention']);
    await expect(changeRetention({ deps, actor: ACTOR }, INPUT)).rejects.toThrow();
    await changeRetention({ deps: world.deps, actor: ACTOR }, { policy: { cot: 7 } });
    await finish();
    expect(outcomes()).toMatchObject([
      { result: 'ok' },
      { result: 'unknown', reason: expect.stringContaining('later') },
    ]);
    expect(inForce().policy.cot).toBe(7);
  });

  it('leaves an intent that is given up after a day without the core', async () => {
    const deps = dyingAt(world.deps, 5, 'after', ['coreRetention']);
    await expect(changeRetention({ deps, actor: ACTOR }, INPUT)).rejects.toThrow();
    world.deps.retention.mood = 'down';
    await finish(25 * 60);
    expect(outcomes()).toMatchObject([{ result: 'unknown' }]);
  });
});

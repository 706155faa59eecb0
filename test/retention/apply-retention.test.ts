// The order of the steps of a change, and what is left when one of them fails.

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { AppError } from '@holdfast/kit/app-error';
import { KEEP_ALL, NEVER, RETAINED, type Retained } from '@holdfast/kit/retention';
import {
  applyRetention,
  type ChangingCore,
  type RetentionAtCore,
  retentionAtCore,
} from '../../shared/retention/apply.ts';
import { runs } from '../support/runs.ts';

const NOT_BEGUN = { begun: () => expect.unreachable('nothing is left open') };

/** A core that keeps each state that it was in; `fails` says what happens to the nth change, counted from 1. */
function recordingCore(
  before: RetentionAtCore,
  fails: (change: number) => 'no' | 'refused' | 'answer lost' = () => 'no',
) {
  let now: RetentionAtCore = structuredClone(before);
  let changes = 0;
  const states: RetentionAtCore[] = [now];
  function change(to: RetentionAtCore): void {
    changes += 1;
    const failure = fails(changes);
    if (failure !== 'refused') {
      now = to;
      states.push(now);
    }
    if (failure !== 'no') throw new AppError('unavailable', `The core did not answer change ${changes}.`);
  }
  const core: ChangingCore = {
    policy: async () => now.policy,
    schedule: async () => now.schedule,
    changePolicy: async (part) => {
      change({ ...now, policy: { ...now.policy, ...part } });
      return now.policy;
    },
    changeSchedule: async (schedule) => {
      change({ ...now, schedule });
      return now.schedule;
    },
  };
  return { core, states, now: () => now };
}

const keptFor = ({ policy }: RetentionAtCore, type: Retained): number => policy[type] ?? Number.POSITIVE_INFINITY;

/** Whatever a run by the schedule of `a` deletes, one of `b` by the same schedule deletes too. */
function deletesNoMore(a: RetentionAtCore, b: RetentionAtCore): boolean {
  if (a.schedule === NEVER) return true;
  return a.schedule === b.schedule && RETAINED.every((type) => keptFor(a, type) >= keptFor(b, type));
}

const days = fc.constantFrom(null, 1, 2, 3);
const state = fc.record({
  policy: fc.record({ cot: days, geochat: days, files: days, missionpackages: days, missions: days }),
  schedule: fc.constantFrom(NEVER, '0 0 3 * * ?', '0 0 4 * * ?'),
});

describe('a change of retention', () => {
  it('is never for a moment such that a run deletes more than before or after it', async () => {
    await fc.assert(
      fc.asyncProperty(state, state, async (from, to) => {
        const { core, states, now } = recordingCore(from);
        await applyRetention(core, from, to, 'days', NOT_BEGUN);
        expect(now()).toEqual(to);
        for (const each of states) expect(deletesNoMore(each, from) || deletesNoMore(each, to)).toBe(true);
      }),
      { numRuns: runs(500) },
    );
  });

  it('that fails anywhere, in whatever way, lets no run delete more than before or after it, also while it is put back', async () => {
    const failure = fc.constantFrom('no', 'refused', 'answer lost');
    await fc.assert(
      fc.asyncProperty(state, state, fc.array(failure, { maxLength: 6 }), async (from, to, failures) => {
        const { core, states } = recordingCore(from, (n) => failures[n - 1] ?? 'no');
        await applyRetention(core, from, to, 'days', { begun: () => undefined }).catch((error: unknown) => {
          expect(error).toBeInstanceOf(AppError);
        });
        for (const each of states) expect(deletesNoMore(each, from) || deletesNoMore(each, to)).toBe(true);
      }),
      { numRuns: runs(1_000) },
    );
  });

  it('that changes nothing asks for nothing', async () => {
    const before = { policy: { ...KEEP_ALL, cot: 3 }, schedule: NEVER };
    const { core, states } = recordingCore(before);
    await applyRetention(core, before, before, 'days', NOT_BEGUN);
    expect(states).toHaveLength(1);
  });
});

describe('a change that fails', () => {
  const before: RetentionAtCore = { policy: { ...KEEP_ALL, cot: 10, files: 10 }, schedule: NEVER };
  const after: RetentionAtCore = { policy: { ...KEEP_ALL, cot: 90, files: 5 }, schedule: '0 0 3 * * ?' };
  const failed = async (core: ChangingCore, begun: (means?: string) => void = NOT_BEGUN.begun): Promise<AppError> =>
    (await applyRetention(core, before, after, 'days', { begun }).catch((error: unknown) => error)) as AppError;

  it.each([1, 2, 3])('at step %d is put back, and the error says what is in force', async (nth) => {
    for (const how of ['refused', 'answer lost'] as const) {
      const { core, now } = recordingCore(before, (n) => (n === nth ? how : 'no'));
      const { code, message } = await failed(core);
      expect(now()).toEqual(before);
      expect([code, message]).toEqual([
        'unavailable',
        `The core did not answer change ${nth}. ` +
          'Nothing was changed. In force: cot 10 days, files 10 days by age, with the schedule "-".',
      ]);
    }
  });

  it('and cannot be put back is left open, with what is in force', async () => {
    const { core, now } = recordingCore(before, (n) => (n < 3 ? 'no' : 'refused'));
    const means: (string | undefined)[] = [];
    const { message } = await failed(core, (text) => void means.push(text));
    expect(message).toContain(
      'The change was done in part. In force: cot 90 days, files 10 days by age, with the schedule "0 0 3 * * ?".',
    );
    expect(now().policy.cot).toBe(90);
    expect(means).toEqual([expect.stringContaining('read back within minutes')]);
  });

  it('with a core that then is away says that nothing is known', async () => {
    const { core } = recordingCore(before, (n) => (n === 1 ? 'answer lost' : 'no'));
    const policy = (): Promise<never> => Promise.reject(new AppError('unavailable', 'gone'));
    expect((await failed({ ...core, policy }, () => undefined)).message).toContain(
      "Couldn't read the values in force now.",
    );
  });

  it('speaks of days where the core counts seconds', async () => {
    const inSeconds = { policy: { ...KEEP_ALL, cot: 864_000 }, schedule: NEVER };
    const { core } = recordingCore(inSeconds, (n) => (n === 1 ? 'refused' : 'no'));
    const to = { ...inSeconds, policy: { ...KEEP_ALL, cot: 86_400 } };
    await expect(applyRetention(core, inSeconds, to, 'seconds', NOT_BEGUN)).rejects.toThrow('In force: cot 10 days by');
    expect(await retentionAtCore(core)).toEqual(inSeconds);
  });
});

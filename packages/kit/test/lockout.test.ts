// The lock-out, held against a model that remembers everything.

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createLockout, lockoutAddress } from '../passwords/lockout.ts';

const MINUTE = 60_000;

function fail(lockout: ReturnType<typeof createLockout>, key: string, times: number, nowMs: number): void {
  for (let count = 0; count < times; count++) lockout.failed(key, nowMs);
}

describe('the lock-out', () => {
  it('locks at the tenth failure within five minutes, for fifteen minutes, that key alone', () => {
    const lockout = createLockout();
    fail(lockout, 'a', 9, 0);
    expect(lockout.check('a', 0)).toEqual({});
    expect(lockout.failed('a', 5 * MINUTE - 1)).toEqual({ lockedUntilMs: 20 * MINUTE - 1 });
    expect(lockout.check('a', 20 * MINUTE - 2)).toEqual({ lockedUntilMs: 20 * MINUTE - 1 });
    expect(lockout.check('b', 5 * MINUTE)).toEqual({});
    expect(lockout.check('a', 20 * MINUTE - 1)).toEqual({});
  });

  it('forgets a failure after five minutes', () => {
    const lockout = createLockout();
    fail(lockout, 'a', 9, 0);
    expect(lockout.failed('a', 5 * MINUTE)).toEqual({});
  });

  it('counts from nothing after a lock, and failures of a locked key do not prolong it', () => {
    const lockout = createLockout();
    fail(lockout, 'a', 10, 0);
    fail(lockout, 'a', 50, MINUTE);
    expect(lockout.check('a', 15 * MINUTE)).toEqual({});
    fail(lockout, 'a', 9, 15 * MINUTE);
    expect(lockout.check('a', 15 * MINUTE)).toEqual({});
  });

  it('says how many failures a key has left', () => {
    const lockout = createLockout();
    expect(lockout.left('a', 0)).toBe(10);
    for (let count = 0; count < 9; count++) lockout.failed('a', count * 1000);
    expect([lockout.left('a', 9000), lockout.left('b', 9000), lockout.left('a', 5 * 60_000 + 3000)]).toEqual([
      1, 10, 5,
    ]);
    lockout.failed('a', 9000);
    expect([lockout.left('a', 9000), lockout.left('a', 9000 + 15 * 60_000)]).toEqual([0, 10]);
  });

  it('counts again once an adopted lock is over, though a longer one was adopted before it', () => {
    const lockout = createLockout();
    lockout.adopt('long', { failedMs: [], lockedUntilMs: 15 * MINUTE }, 0);
    lockout.adopt('short', { failedMs: [], lockedUntilMs: MINUTE }, 0);
    fail(lockout, 'short', 9, MINUTE);
    expect(lockout.left('short', MINUTE)).toBe(1);
    expect(lockout.failed('short', MINUTE)).toEqual({ lockedUntilMs: 16 * MINUTE });
    expect(lockout.check('long', MINUTE)).toEqual({ lockedUntilMs: 15 * MINUTE });
  });

  it('gives all that counts now to another one, which counts on', () => {
    const [lockout, other] = [createLockout(), createLockout()];
    fail(lockout, 'old', 9, 0);
    fail(lockout, 'a', 9, 4 * MINUTE);
    fail(lockout, 'b', 10, 4 * MINUTE);
    const nowMs = 5 * MINUTE;
    for (const { key, ...state } of lockout.states(nowMs)) other.adopt(key, state, nowMs);
    expect(['old', 'a', 'b'].map((key) => other.left(key, nowMs))).toEqual([10, 1, 0]);
    expect(other.check('b', nowMs)).toEqual({ lockedUntilMs: 19 * MINUTE });
    expect(other.failed('a', nowMs)).toEqual({ lockedUntilMs: 20 * MINUTE });
  });

  it('lists who is locked, soonest free first, and releases', () => {
    const lockout = createLockout();
    fail(lockout, 'a', 10, 0);
    fail(lockout, 'b', 10, MINUTE);
    fail(lockout, 'c', 3, MINUTE);
    expect(lockout.list(2 * MINUTE)).toEqual([
      { key: 'a', lockedUntilMs: 15 * MINUTE, failures: 10 },
      { key: 'b', lockedUntilMs: 16 * MINUTE, failures: 10 },
    ]);
    expect([lockout.release('a'), lockout.release('c'), lockout.release('a')]).toEqual([true, true, false]);
    expect(lockout.check('a', 2 * MINUTE)).toEqual({});
    expect(lockout.list(15.5 * MINUTE)).toEqual([{ key: 'b', lockedUntilMs: 16 * MINUTE, failures: 10 }]);
    expect(lockout.list(16 * MINUTE)).toEqual([]);
  });

  it('forgets the oldest key when there are too many, locked ones last, the newest never', () => {
    const lockout = createLockout({ keys: 3 });
    fail(lockout, 'locked', 10, 0);
    fail(lockout, 'old', 9, 1);
    fail(lockout, 'young', 9, 2);
    fail(lockout, 'new', 9, 3);
    expect(lockout.check('locked', 4)).toHaveProperty('lockedUntilMs');
    expect(lockout.failed('young', 4)).toHaveProperty('lockedUntilMs');
    expect(lockout.failed('new', 4)).toHaveProperty('lockedUntilMs');
    fail(lockout, 'last', 10, 5);
    expect(lockout.list(6).map(({ key }) => key)).toEqual(['young', 'new', 'last']);
  });

  it('does as a model that remembers every failure', () => {
    const rule = { failures: 3, withinMs: 50, lockedMs: 100 };
    const steps = fc.array(
      fc.record({
        key: fc.constantFrom('a', 'b', 'c'),
        waitMs: fc.nat(40),
        act: fc.constantFrom('fail', 'check', 'release'),
      }),
      { maxLength: 60 },
    );
    fc.assert(
      fc.property(steps, (all) => {
        const lockout = createLockout(rule);
        const model = new Map<string, { times: number[]; until: number }>();
        let nowMs = 1000;
        for (const { key, waitMs, act } of all) {
          nowMs += waitMs;
          const state = model.get(key) ?? { times: [], until: 0 };
          if (act === 'release') {
            lockout.release(key);
            model.delete(key);
          } else if (act === 'fail') {
            if (state.until <= nowMs) {
              state.times = [...state.times, nowMs].filter((time) => nowMs - time < rule.withinMs);
              if (state.times.length === rule.failures)
                Object.assign(state, { times: [], until: nowMs + rule.lockedMs });
            }
            model.set(key, state);
            lockout.failed(key, nowMs);
          }
          for (const each of ['a', 'b', 'c']) {
            const until = model.get(each)?.until ?? 0;
            expect(lockout.check(each, nowMs)).toEqual(until > nowMs ? { lockedUntilMs: until } : {});
          }
          const expected = [...model].filter(([, { until }]) => until > nowMs).map(([each]) => each);
          expect(
            lockout
              .list(nowMs)
              .map((each) => each.key)
              .toSorted(),
          ).toEqual(expected.toSorted());
        }
      }),
    );
  });
});

describe('what counts as one address', () => {
  it.each([
    ['192.0.2.1', '192.0.2.1'],
    ['::ffff:192.0.2.1', '192.0.2.1'],
    ['::FFFF:c000:201', '192.0.2.1'],
    ['127.0.0.1', '127.0.0.1'],
    ['127.8.9.10', '127.8.9.10'],
    ['::ffff:127.8.9.10', '127.8.9.10'],
    ['2001:db8:0:1::5', '2001:db8:0:1::/64'],
    ['2001:0DB8::1:2:3:4:5', '2001:db8:0:1::/64'],
    ['2001:db8:0:1:2:3:4:5', '2001:db8:0:1::/64'],
    ['2001:db8::', '2001:db8:0:0::/64'],
    ['2001:db8:0:1::/64', '2001:db8:0:1::/64'],
    ['::1', '0:0:0:0::/64'],
    ['fe80::1%eth0', 'fe80:0:0:0::/64'],
    ['64:ff9b::192.0.2.1', '64:ff9b:0:0::/64'],
  ])('%s: %s', (address, expected) => {
    expect(lockoutAddress(address)).toBe(expected);
  });
});

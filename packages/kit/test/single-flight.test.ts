import { setTimeout as delay, setImmediate as turn } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { singleFlight } from '../concurrency.ts';

/** Work that takes `ms` and says which run it was. */
function counting(ms: number): { work: () => Promise<number>; begun: () => number } {
  let begun = 0;
  const work = async (): Promise<number> => {
    const number = ++begun;
    await delay(ms);
    return number;
  };
  return { work, begun: () => begun };
}

describe('callers of the same thing', () => {
  it('share one piece of work when they ask at once', async () => {
    const together = singleFlight();
    const { work, begun } = counting(20);
    const results = await Promise.all(Array.from({ length: 16 }, () => together('a', work)));
    expect([new Set(results).size, begun()]).toEqual([1, 1]);
  });

  it('who ask later share the next one, and never more than two are made', async () => {
    let nowMs = 0;
    const together = singleFlight(() => nowMs);
    const ends: (() => void)[] = [];
    const work = (): Promise<number> => {
      const number = ends.length + 1;
      return new Promise((resolve) => ends.push(() => resolve(number)));
    };
    const first = together('a', work);
    await expect.poll(() => ends).toHaveLength(1);
    nowMs = 25;
    const later = Array.from({ length: 60 }, () => together('a', work));
    await turn();
    nowMs = 35;
    later.push(together('a', work));
    for (let turns = 0; turns < 3; turns++) await turn();
    expect(ends).toHaveLength(1);
    ends[0]?.();
    expect(await first).toBe(1);
    await expect.poll(() => ends).toHaveLength(2);
    ends[1]?.();
    expect(new Set(await Promise.all(later))).toEqual(new Set([2]));
    expect(ends).toHaveLength(2);
  });

  it('get work of their own when nothing runs', async () => {
    const together = singleFlight();
    const { work } = counting(1);
    expect([await together('a', work), await together('a', work)]).toEqual([1, 2]);
  });

  it('are not held up by another thing', async () => {
    const together = singleFlight();
    void together('hanging', () => new Promise(() => undefined));
    expect(await together('a', async () => 'done')).toBe('done');
  });

  it('share a failure, and the next ones try again', async () => {
    const together = singleFlight();
    const failing = together('a', () => Promise.reject(new Error('away')));
    const alike = together('a', async () => 'never');
    await expect(failing).rejects.toThrow('away');
    await expect(alike).rejects.toThrow('away');
    expect(await together('a', async () => 'back')).toBe('back');
  });
});

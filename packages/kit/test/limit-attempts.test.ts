// How many sign-ins of one key are judged at once, with judgements that end when the test says so.

import { expect, it } from 'vitest';
import { limitAttempts } from '../concurrency.ts';

const tick = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

it('runs as many as may fail, and turns away whom too many wait before', async () => {
  let left = 2;
  const inTurn = limitAttempts(() => left, 4);
  const ends: (() => void)[] = [];
  const begun: number[] = [];
  const run = (name: number) => async (): Promise<number> => {
    begun.push(name);
    await new Promise<void>((end) => ends.push(end));
    left -= 1;
    return name;
  };
  const all = [1, 2, 3, 4, 5].map(async (name) => inTurn('a', run(name)));
  expect(await all[4]).toBeUndefined();
  const other = inTurn('b', run(9));
  expect(begun).toEqual([1, 2, 9]);
  ends.shift()?.();
  await tick();
  expect(begun).toEqual([1, 2, 9]);
  for (let turn = 0; turn < 8; turn++) {
    ends.shift()?.();
    await tick();
  }
  expect(await Promise.all([...all.slice(0, 4), other])).toEqual([1, 2, 3, 4, 9]);
  expect(await inTurn('a', async () => 'again')).toBe('again');
});

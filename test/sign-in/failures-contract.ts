// What every table of failed sign-ins must do.

import { describe, expect, it } from 'vitest';
import type { FailureTable } from '../../shared/sign-in/lockouts.ts';

const MINUTE = 60_000;
/** Longer than any of these tests takes. */
const SLACK = 20_000;

export function failuresContract(what: string, make: () => FailureTable): void {
  const fail = async (table: FailureTable, address: string, times: number) => {
    const all = [];
    for (let count = 0; count < times; count++) all.push(await table.failed(address));
    return all;
  };

  describe(`failed sign-ins ${what}`, () => {
    it('lock an address at the tenth, for fifteen minutes; further ones do not count', async () => {
      const all = await fail(make(), '192.0.2.1', 12);
      expect(
        all.map(({ failedMsAgo, lockedForMs, counted }) => [failedMsAgo.length, lockedForMs !== null, counted]),
      ).toEqual([
        ...Array.from({ length: 9 }, (_, index) => [index + 1, false, true]),
        [0, true, true],
        [0, true, false],
        [0, true, false],
      ]);
      expect(all.at(-1)?.lockedForMs).toBeLessThanOrEqual(15 * MINUTE);
      expect(all.at(-1)?.lockedForMs).toBeGreaterThan(15 * MINUTE - SLACK);
    });

    it('show what has changed, oldest change first, with the ages of failures', async () => {
      const table = make();
      await fail(table, '192.0.2.2', 2);
      await fail(table, '192.0.2.3', 10);
      for (const within of [undefined, SLACK]) {
        const found = (await table.changed(within)).filter(({ address }) => /^192\.0\.2\.[23]$/.test(address));
        expect(
          found.map(({ address, failedMsAgo, lockedForMs }) => [address, failedMsAgo.length, lockedForMs !== null]),
        ).toEqual([
          ['192.0.2.2', 2, false],
          ['192.0.2.3', 0, true],
        ]);
        for (const age of found.flatMap(({ failedMsAgo }) => failedMsAgo)) {
          expect(age).toBeGreaterThanOrEqual(0);
          expect(age).toBeLessThan(SLACK);
        }
      }
    });

    it('show a released address without failures, and say whether there were any', async () => {
      const table = make();
      await fail(table, '192.0.2.4', 3);
      await fail(table, '2001:db8:0:1::/64', 10);
      expect(await table.release('192.0.2.4')).toBe(true);
      expect(await table.release('192.0.2.4')).toBe(false);
      expect(await table.release('2001:db8:0:1::/64')).toBe(true);
      expect(await table.release('192.0.2.99')).toBe(false);
      const found = (await table.changed(undefined)).filter(({ address }) =>
        ['192.0.2.4', '2001:db8:0:1::/64'].includes(address),
      );
      expect(found.map(({ failedMsAgo, lockedForMs }) => [failedMsAgo, lockedForMs])).toEqual([
        [[], null],
        [[], null],
      ]);
      expect((await table.failed('2001:db8:0:1::/64')).failedMsAgo).toHaveLength(1);
    });

    it('are counted exactly when they come at the same moment', async () => {
      const table = make();
      const all = await Promise.all(Array.from({ length: 25 }, () => table.failed('192.0.2.5')));
      expect(all.filter(({ counted }) => counted)).toHaveLength(10);
    });
  });
}

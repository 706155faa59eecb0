// What every HealthResults must do, held against the fake and against the table.

import { describe, expect, it } from 'vitest';
import type { HealthResults, Measurement, PublishedResult } from '../../shared/health/port.ts';

const SINCE = '2026-06-15T12:34:56.789Z';

export function resultOf(module: string, rest: Partial<Measurement> = {}): PublishedResult {
  const measurement: Measurement = {
    module,
    status: 'warning',
    message: 'An odd \0 "text" \\ of a core.',
    details: ['one'],
    remedies: [],
    updated_at: '2026-06-15T12:40:00.000Z',
    data: { rows: [1, null, { deep: true }] },
    shouldAlert: true,
    failuresInRow: 2,
    pollsInRow: 3,
    figure: 25e12,
    ...rest,
  };
  return { measurement, since: SINCE, since_is_exact: false };
}

/** `make` gives the view of a process on a world that is empty at first. */
export function healthResultsContract(what: string, make: (runner: string) => HealthResults): void {
  describe(`shared measurements ${what}`, () => {
    it('reach every other process once, as they are, and not the one that measured', async () => {
      const [one, two, three] = ['one', 'two', 'three'].map(make) as [HealthResults, HealthResults, HealthResults];
      await one.publish(resultOf('disk'));
      await one.publish(resultOf('core', { status: 'ok' }));
      expect(await one.ofOthers()).toEqual([]);
      for (const other of [two, three]) {
        const seen = await other.ofOthers();
        expect(seen).toMatchObject([resultOf('disk'), resultOf('core', { status: 'ok' })]);
        expect(seen.every(({ ageMs }) => ageMs >= 0 && ageMs < 3000)).toBe(true);
        expect(await other.ofOthers()).toEqual([]);
      }
      await two.publish(resultOf('disk', { message: 'newer' }));
      expect(await one.ofOthers()).toMatchObject([{ measurement: { module: 'disk', message: 'newer' } }]);
      expect(await two.ofOthers()).toEqual([]);
    });
  });
}

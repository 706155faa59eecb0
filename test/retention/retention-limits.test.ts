// Limits of a run: exact to the second in either unit, whatever is shown.

import { describe, expect, it } from 'vitest';
import { asOfCutoff, cutoffAt, daysOf, inUnit, KEEP_ALL, limitsAt, toDaysView } from '@holdfast/kit/retention';

const AS_OF = new Date('2026-03-01T12:00:00.123Z');

describe('limits', () => {
  it.each([1, 59, 100, 86_399, 86_401, 1_000_003, 2_147_483_647])(
    'of %d seconds lie that many seconds back, to the millisecond, and their cutoff leads to the same moment',
    (seconds) => {
      const policy = { ...KEEP_ALL, cot: daysOf(seconds, 'seconds'), files: daysOf(2_147_483_647, 'seconds') };
      const limit = new Date(AS_OF.getTime() - seconds * 1000);
      expect(limitsAt(policy, AS_OF).cot).toBe(limit.toISOString());
      expect(cutoffAt(policy, AS_OF)).toEqual(limit);
      expect(asOfCutoff(policy, limit)).toEqual(AS_OF);
      expect(inUnit(policy.cot, 'seconds')).toBe(seconds);
    },
  );

  it('are shown to a ten-thousandth of a day', () => {
    expect([toDaysView(daysOf(100, 'seconds')), toDaysView(null), toDaysView(30)]).toEqual([0.0012, null, 30]);
  });
});

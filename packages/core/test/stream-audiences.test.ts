// Who hears whom: the lists that are kept ready are the same as those made anew, however clients
// come, go and change.

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Audiences } from '../stream/client.ts';

const ascending = (a: number, b: number): number => a - b;

describe('an audience', () => {
  it('is everybody who receives from one of its groups, after any coming, going and changing', () => {
    const place = fc.integer({ min: 2, max: 6 });
    const step = fc.record({
      who: fc.integer({ min: 0, max: 9 }),
      receives: fc.option(fc.uniqueArray(place), { nil: undefined }),
    });
    fc.assert(
      fc.property(fc.array(step), fc.array(fc.uniqueArray(place), { maxLength: 4 }), (steps, sets) => {
        const audiences = new Audiences<number>();
        const held = sets.map((places) => audiences.hold(places));
        const truth = new Map<number, number[]>();
        for (const { who, receives } of steps) {
          if (receives === undefined) {
            audiences.leave(who);
            truth.delete(who);
          } else {
            audiences.place(who, receives);
            truth.set(who, receives);
          }
          for (const [index, audience] of held.entries()) {
            const hearers = [...truth].filter(([, from]) => from.some((each) => sets[index]?.includes(each)));
            const expected = hearers.map(([member]) => member).toSorted(ascending);
            expect(audience.members.toSorted(ascending)).toEqual(expected);
            expect([...audiences.among(sets[index] ?? [])].toSorted(ascending)).toEqual(expected);
            for (let member = 0; member < 10; member++) expect(audience.has(member)).toBe(expected.includes(member));
          }
        }
      }),
      { numRuns: 200 },
    );
  });

  it('is one for the same set of groups, as long as somebody holds it', () => {
    const audiences = new Audiences<string>();
    const [first, second] = [audiences.hold([3, 2]), audiences.hold([2, 3, 3])];
    expect(second).toBe(first);
    expect(first.places).toEqual([2, 3]);
    audiences.release(first);
    audiences.place('ada', [3]);
    expect(second.members).toEqual(['ada']);
    audiences.release(second);
    expect(audiences.hold([2, 3])).not.toBe(first);
  });
});

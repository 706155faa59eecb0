import fc from 'fast-check';
import { expect, it } from 'vitest';
import { Allowance, eventsOf, FEED, type FeedEvent } from './flow-files.ts';

const NOW = Date.parse('2026-05-04T12:00:00Z');
const LIMITS = { events_per_minute: 2, megabytes_per_day: 1 };
const event = (uid: string, xml = uid, staleMs = NOW + 600_000): FeedEvent => ({ uid, xml, staleMs, lat: 1, lon: 1 });

it('lets so many events go in a minute, in the order of their uids, each as it was last', () => {
  const allowance = new Allowance();
  allowance.offer([event('A', 'A1'), event('B', 'B1'), event('C', 'C1')]);
  expect(allowance.take(LIMITS, NOW)).toEqual(['A1', 'B1']);
  allowance.offer([event('A', 'A2'), event('C', 'C2')]);
  expect(allowance.take(LIMITS, NOW + 59_999)).toEqual([]);
  expect(allowance.take(LIMITS, NOW + 60_000)).toEqual(['C2', 'A2']);
});

it('forgets what has become stale while it waited', () => {
  const allowance = new Allowance();
  allowance.offer([event('A', 'A', NOW + 1), event('B')]);
  expect(allowance.take(LIMITS, NOW + 1)).toEqual(['B']);
});

it('goes on when the clock is set back', () => {
  const allowance = new Allowance();
  allowance.offer([event('A'), event('B'), event('C')]);
  allowance.take(LIMITS, NOW);
  expect(allowance.take(LIMITS, NOW - 3_600_000)).toEqual(['C']);
});

it('holds back what the budget of the day has no room for, also after a restart, until the next day', () => {
  const large = 'x'.repeat(399_500);
  const many = { events_per_minute: 100, megabytes_per_day: 1 };
  const allowance = new Allowance();
  allowance.offer([event('A', large), event('B', large), event('C', large)]);
  expect(allowance.take(many, NOW)).toHaveLength(2);
  expect([allowance.refused, allowance.spent]).toEqual([1, { day: '2026-05-04', bytes: 800_000 }]);
  const next = new Allowance({ ...allowance.spent, refused: 1 });
  next.offer([event('D', large)]);
  expect(next.take(many, NOW)).toEqual([]);
  expect(next.refused).toBe(2);
  next.offer([event('E', large, NOW + 90_000_000)]);
  expect(next.take(many, NOW + 12 * 3_600_000)).toHaveLength(1);
  expect([next.refused, next.spent.bytes]).toEqual([0, 400_000]);
});

it('counts more for an event than its row takes in the history: 570 bytes and the detail', () => {
  const allowance = new Allowance();
  const events = eventsOf(FEED, JSON.stringify({ aircraft: [{ hex: 'a1b2c3', lat: 1, lon: 2 }] }), NOW);
  const [xml = ''] = (allowance.offer(events), allowance.take(LIMITS, NOW));
  const detail = /<detail>.*<\/detail>/.exec(xml)?.[0] ?? '';
  expect(allowance.spent.bytes - detail.length).toBeGreaterThan(570);
});

it('keeps at most 5,000 that wait', () => {
  const allowance = new Allowance();
  allowance.offer(Array.from({ length: 5_003 }, (_, at) => event(String(at))));
  expect(allowance.refused).toBe(3);
  expect(allowance.take({ megabytes_per_day: 10, events_per_minute: 10_000 }, NOW)).toHaveLength(5_000);
});

it('never passes rate or budget, whatever comes', () => {
  const step = fc.record({
    ms: fc.integer({ min: 0, max: 30_000 }),
    uids: fc.array(fc.constantFrom('A', 'B', 'C', 'D', 'E', 'F')),
  });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 30 }), fc.integer({ min: 1, max: 5 }), (steps, perMinute) => {
      const allowance = new Allowance();
      const sent: number[] = [];
      let now = NOW;
      for (const { ms, uids } of steps) {
        now += ms;
        allowance.offer(uids.map((uid) => event(uid, 'x'.repeat(100_000))));
        const taken = allowance.take({ events_per_minute: perMinute, megabytes_per_day: 1 }, now);
        sent.push(...taken.map(() => now));
        expect(sent.filter((at) => now - at < 60_000).length).toBeLessThanOrEqual(perMinute);
      }
      expect(sent.length).toBeLessThanOrEqual(9);
    }),
  );
});

// When the embedded core's retention runs by itself: the next firing, clocks that are set,
// schedules that change.

import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { Schedules } from '@holdfast/kit/cron';
import { NEVER } from '@holdfast/kit/retention';
import { DAY_MS } from '@holdfast/kit/time';
import { memoryLog } from '../../../test/http/fake-deps.ts';
import { PlannedFiring } from '../retention/planned-firing.ts';

const THREE = 3 * 3_600_000;
const START = Date.parse('2026-05-10T12:00:00Z');

/** Daily at three, every 60 days at midnight, or every two seconds; in UTC. */
const schedules: Pick<Schedules, 'next'> = {
  next(cron, _dialect, _zone, after) {
    const at = after.getTime();
    if (cron === 'daily') return [new Date(Math.floor((at - THREE) / DAY_MS + 1) * DAY_MS + THREE)];
    if (cron === 'rarely') return [new Date(Math.floor(at / (60 * DAY_MS) + 1) * 60 * DAY_MS)];
    if (cron === 'often') return [new Date(Math.floor(at / 2_000 + 1) * 2_000)];
    return [];
  },
};

let schedule: string;
let log: ReturnType<typeof memoryLog>;
let fired: string[];
let firing: PlannedFiring;

beforeEach(() => {
  vi.useFakeTimers({ now: START });
  schedule = 'daily';
  log = memoryLog();
  fired = [];
  firing = new PlannedFiring({
    schedule: () => schedule,
    schedules,
    timeZone: 'UTC',
    now: () => new Date(),
    steadyMs: () => performance.now(),
    log,
    fire: () => void fired.push(new Date().toISOString()),
  });
  firing.look();
});
afterEach(() => {
  firing.stop();
  vi.useRealTimers();
});

describe('a schedule', () => {
  it('fires when it is due, again and again, and says when the next time is', () => {
    expect(log.events).toEqual([
      {
        level: 'info',
        event: 'retention.scheduled',
        fields: { schedule: 'daily', next: '2026-05-11T03:00:00.000Z', time_zone: 'UTC' },
      },
    ]);
    vi.advanceTimersByTime(2 * DAY_MS);
    expect(fired).toEqual(['2026-05-11T03:00:00.000Z', '2026-05-12T03:00:00.000Z']);
    expect(firing.next()?.toISOString()).toBe('2026-05-13T03:00:00.000Z');
  });

  it('that fires beyond what a timer can hold is waited for', () => {
    schedule = 'rarely';
    firing.look();
    const next = firing.next()?.getTime() ?? 0;
    expect(next - START).toBeGreaterThan(25 * DAY_MS);
    vi.advanceTimersByTime(next - START - 1);
    expect(fired).toEqual([]);
    vi.advanceTimersByTime(1);
    expect(fired).toEqual([new Date(next).toISOString()]);
  });

  it('of a hyphen, or one that never comes, fires never', () => {
    for (const none of [NEVER, 'nonsense']) {
      schedule = none;
      firing.look();
      vi.advanceTimersByTime(3 * DAY_MS);
    }
    expect([fired, firing.next()]).toEqual([[], undefined]);
    expect(log.events.at(-1)?.fields).toMatchObject({ schedule: 'nonsense', next: 'never' });
  });

  it('that has changed counts from the next look, without a look within half a minute', () => {
    schedule = 'often';
    vi.advanceTimersByTime(30_000);
    expect(fired).toEqual([]);
    vi.advanceTimersByTime(4_000);
    expect(fired).toHaveLength(2);
    schedule = NEVER;
    firing.look();
    vi.advanceTimersByTime(60_000);
    expect(fired).toHaveLength(2);
  });

  it('is caught up once when the machine slept over it', () => {
    vi.setSystemTime(START + 0.9 * DAY_MS);
    vi.advanceTimersByTime(30_000);
    expect(fired).toHaveLength(1);
    expect(firing.next()?.toISOString()).toBe('2026-05-12T03:00:00.000Z');
  });

  it('is caught up once, an hour later, when the clock has leapt ahead by more than a day', () => {
    vi.setSystemTime(START + 5 * DAY_MS);
    vi.advanceTimersByTime(3_600_000);
    expect(fired).toEqual([]);
    vi.advanceTimersByTime(30_000);
    expect(fired).toHaveLength(1);
    expect(firing.next()?.toISOString()).toBe('2026-05-16T03:00:00.000Z');
    expect(log.events.filter(({ level }) => level === 'warn')).toMatchObject([
      { event: 'retention.clock_leapt', fields: { days: 5 } },
    ]);
  });

  it('never fires by a clock that leapt ahead and was put right within the hour, and then as if nothing had been', () => {
    vi.setSystemTime(Date.parse('2099-01-01T02:59:00Z'));
    vi.advanceTimersByTime(20 * 60_000);
    vi.setSystemTime(START + 20 * 60_000);
    vi.advanceTimersByTime(DAY_MS - 20 * 60_000);
    expect(fired).toEqual(['2026-05-11T03:00:00.000Z']);
  });

  it('is planned anew when the clock was set back', () => {
    vi.setSystemTime(START - 30 * DAY_MS);
    vi.advanceTimersByTime(DAY_MS);
    expect(fired).toEqual(['2026-04-11T03:00:00.000Z']);
  });

  it('does not fire twice when the clock is corrected a little', () => {
    vi.advanceTimersByTime(THREE + DAY_MS / 2);
    expect(fired).toHaveLength(1);
    vi.setSystemTime(START + DAY_MS / 2 + THREE - 5_000);
    firing.look();
    vi.advanceTimersByTime(60_000);
    expect(fired).toHaveLength(1);
    expect(firing.next()?.toISOString()).toBe('2026-05-12T03:00:00.000Z');
  });

  it('fires no more after a stop', () => {
    firing.stop();
    firing.look();
    vi.advanceTimersByTime(2 * DAY_MS);
    expect(fired).toEqual([]);
  });
});

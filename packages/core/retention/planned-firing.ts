// When the schedule fires next. Timers are short, whatever the schedule: a clock that was set, a machine that slept and a month
// without a firing are all seen by the next look. A clock that leaps ahead makes everything old: nothing fires by it until it has
// stood for an hour, in which it can be put right.

import type { Schedules } from '@holdfast/kit/cron';
import type { Log } from '@holdfast/kit/log';
import { NEVER } from '@holdfast/kit/retention';
import { DAY_MS, HOUR_MS } from '@holdfast/kit/time';

export interface FiringOptions {
  /** What is in force now. */
  schedule: () => string;
  schedules: Pick<Schedules, 'next'>;
  timeZone: string;
  now: () => Date;
  /** Which nobody sets. */
  steadyMs: () => number;
  log: Log;
  fire: () => void;
}

export interface PlannedFiring {
  /** Plans anew when the schedule has changed; fires what is due. */
  look(): void;
  /** The next firing. */
  next(): Date | undefined;
  stop(): void;
}

export const LOOK_EVERY_MS = 30_000;
/** Clocks that are corrected by less do not make the same firing come twice. */
const CORRECTED_MS = HOUR_MS;

/** Ahead of the steady clock between two looks: set, or a machine that slept. */
const LEAP_MS = DAY_MS;
const TRUSTED_AFTER_MS = HOUR_MS;

/** Nothing is planned before the first look. */
export function plannedFiring({
  schedule,
  schedules,
  timeZone,
  now,
  steadyMs,
  log,
  fire,
}: FiringOptions): PlannedFiring {
  let plannedFor: string | undefined;
  let planned: Date | undefined;
  let lastLook = Number.NEGATIVE_INFINITY;
  let lastSteadyMs = Number.NEGATIVE_INFINITY;
  let trustedFromMs = Number.NEGATIVE_INFINITY;
  let lastFired: Date | undefined;
  let timer: NodeJS.Timeout | undefined;
  let isStopped = false;

  function plan(cron: string, at: Date): void {
    plannedFor = cron;
    const after = lastFired !== undefined && isJustBefore(at, lastFired) ? lastFired : at;
    [planned] = cron === NEVER ? [] : schedules.next(cron, 'quartz', timeZone, after, 1);
    if (cron !== NEVER)
      log.info('retention.scheduled', { schedule: cron, next: planned?.toISOString() ?? 'never', time_zone: timeZone });
  }

  function trust(at: Date, steady: number): boolean {
    const leapMs = at.getTime() - lastLook - (steady - lastSteadyMs);
    if (leapMs > LEAP_MS) {
      trustedFromMs = steady + TRUSTED_AFTER_MS;
      const reason = 'the clock has leapt ahead; the schedule goes on in an hour, unless it is set back';
      log.warn('retention.clock_leapt', { days: Math.round(leapMs / LEAP_MS), reason });
    } else if (at.getTime() < lastLook) trustedFromMs = Number.NEGATIVE_INFINITY;
    lastSteadyMs = steady;
    return steady >= trustedFromMs;
  }

  function look(): void {
    if (isStopped) return;
    const at = now();
    const isTrusted = trust(at, steadyMs());
    const cron = schedule();
    if (cron !== plannedFor || at.getTime() < lastLook) plan(cron, at);
    lastLook = at.getTime();
    if (isTrusted && planned !== undefined && at >= planned) {
      lastFired = planned;
      plan(cron, at);
      fire();
    }
    wake(isTrusted ? at : undefined);
  }

  function wake(at: Date | undefined): void {
    clearTimeout(timer);
    const untilMs = planned === undefined || at === undefined ? LOOK_EVERY_MS : planned.getTime() - at.getTime();
    timer = setTimeout(look, Math.min(Math.max(untilMs, 1), LOOK_EVERY_MS));
    timer.unref();
  }

  return {
    look,
    next: () => planned,
    stop() {
      isStopped = true;
      clearTimeout(timer);
    },
  };
}

function isJustBefore(at: Date, fired: Date): boolean {
  const beforeMs = fired.getTime() - at.getTime();
  return beforeMs > 0 && beforeMs < CORRECTED_MS;
}

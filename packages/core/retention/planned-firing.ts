// Fires the schedule with short timers, so that clock changes, sleep and long pauses are noticed.
// After a clock jump forward, waits an hour so that it can be corrected: a wrong clock makes
// everything look expired.

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

export const LOOK_EVERY_MS = 30_000;
/** Clocks that are corrected by less do not make the same firing come twice. */
const CORRECTED_MS = HOUR_MS;

/** Ahead of the steady clock between two looks: set, or a machine that slept. */
const LEAP_MS = DAY_MS;
const TRUSTED_AFTER_MS = HOUR_MS;

/** Nothing is planned before the first look. */
export class PlannedFiring {
  readonly #options: FiringOptions;
  #plannedFor: string | undefined;
  #planned: Date | undefined;
  #lastLook = Number.NEGATIVE_INFINITY;
  #lastSteadyMs = Number.NEGATIVE_INFINITY;
  #trustedFromMs = Number.NEGATIVE_INFINITY;
  #lastFired: Date | undefined;
  #timer: NodeJS.Timeout | undefined;
  #isStopped = false;

  constructor(options: FiringOptions) {
    this.#options = options;
  }

  /** Plans anew when the schedule has changed; fires what is due. */
  look(): void {
    if (this.#isStopped) return;
    const at = this.#options.now();
    const isTrusted = this.#trust(at, this.#options.steadyMs());
    const cron = this.#options.schedule();
    if (cron !== this.#plannedFor || at.getTime() < this.#lastLook) this.#plan(cron, at);
    this.#lastLook = at.getTime();
    if (isTrusted && this.#planned !== undefined && at >= this.#planned) {
      this.#lastFired = this.#planned;
      this.#plan(cron, at);
      this.#options.fire();
    }
    this.#wake(isTrusted ? at : undefined);
  }

  /** The next firing. */
  next(): Date | undefined {
    return this.#planned;
  }

  stop(): void {
    this.#isStopped = true;
    clearTimeout(this.#timer);
  }

  #plan(cron: string, at: Date): void {
    this.#plannedFor = cron;
    const after = this.#lastFired !== undefined && isJustBefore(at, this.#lastFired) ? this.#lastFired : at;
    [this.#planned] =
      cron === NEVER ? [] : this.#options.schedules.next(cron, 'quartz', this.#options.timeZone, after, 1);
    if (cron !== NEVER)
      this.#options.log.info('retention.scheduled', {
        schedule: cron,
        next: this.#planned?.toISOString() ?? 'never',
        time_zone: this.#options.timeZone,
      });
  }

  #trust(at: Date, steady: number): boolean {
    const leapMs = at.getTime() - this.#lastLook - (steady - this.#lastSteadyMs);
    if (leapMs > LEAP_MS) {
      this.#trustedFromMs = steady + TRUSTED_AFTER_MS;
      const reason = 'the clock has leapt ahead; the schedule goes on in an hour, unless it is set back';
      this.#options.log.warn('retention.clock_leapt', { days: Math.round(leapMs / LEAP_MS), reason });
    } else if (at.getTime() < this.#lastLook) this.#trustedFromMs = Number.NEGATIVE_INFINITY;
    this.#lastSteadyMs = steady;
    return steady >= this.#trustedFromMs;
  }

  #wake(at: Date | undefined): void {
    clearTimeout(this.#timer);
    const untilMs =
      this.#planned === undefined || at === undefined ? LOOK_EVERY_MS : this.#planned.getTime() - at.getTime();
    this.#timer = setTimeout(() => this.look(), Math.min(Math.max(untilMs, 1), LOOK_EVERY_MS));
    this.#timer.unref();
  }
}

function isJustBefore(at: Date, fired: Date): boolean {
  const beforeMs = fired.getTime() - at.getTime();
  return beforeMs > 0 && beforeMs < CORRECTED_MS;
}

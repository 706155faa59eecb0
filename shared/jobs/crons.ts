// Computes when jobs run from their crons, in UTC, with croner.

import { Cron } from 'croner';
import { slotStart } from '@holdfast/kit/time';
import type { Thresholds } from '../settings/status.ts';
import type { Job } from './port.ts';

const OPTIONS = { timezone: 'UTC', mode: '5-or-6-parts' } as const;

type Timed = Pick<Job<never>, 'cron' | 'everySeconds'>;

/** The same cron for a host with minute precision. */
export function minuteCron(cron: string): string {
  return cron.split(' ').slice(-5).join(' ');
}

/** Seconds between two times of a cron. */
export function cronSeconds(cron: string): number {
  const [first, second] = read(cron).nextRuns(2, new Date(0));
  if (first === undefined || second === undefined) throw new Error(`${cron} never fires twice`);
  return (second.getTime() - first.getTime()) / 1000;
}

/** True when the cron fires in that second. */
export function firesAt(cron: string, now: Date): boolean {
  return read(cron).match(now);
}

/** The interval of a job on a host with second precision. */
export function intervalSeconds(job: Timed, thresholds: Thresholds): number {
  return job.everySeconds?.(thresholds) ?? cronSeconds(job.cron);
}

/** The slot of a run now, on which all processes agree. */
export function slotOf(job: Timed, thresholds: Thresholds, now: Date): Date {
  const seconds = job.everySeconds?.(thresholds);
  if (seconds !== undefined) return new Date(slotStart(now.getTime(), seconds));
  // croner searches strictly before the given time.
  return read(job.cron).previousRuns(1, new Date(now.getTime() + 1))[0] ?? now;
}

/** Calls `fire` at the times of each cron until it is stopped; `fire` must not throw. */
export function startCrons(
  crons: readonly string[],
  fire: (cron: string, now: Date) => void,
  stopped?: AbortSignal,
): void {
  for (const cron of crons) {
    const started = new Cron(cron, OPTIONS, () => fire(cron, new Date()));
    stopped?.addEventListener('abort', () => started.stop());
  }
}

function read(cron: string): Cron {
  return new Cron(cron, { ...OPTIONS, paused: true });
}

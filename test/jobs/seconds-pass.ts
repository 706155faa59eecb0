// Crons without waiting: what fires in one second.

import { firesAt } from '../../shared/jobs/crons.ts';

interface Fired {
  crons: readonly string[];
  fired(cron: string, now: Date): void;
}

/** Tells each runner which of its crons fire in the second of `now`. */
export function secondsPass(runners: readonly Fired[], now: Date): void {
  for (const runner of runners) for (const cron of runner.crons) if (firesAt(cron, now)) runner.fired(cron, now);
}

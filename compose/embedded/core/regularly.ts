// Work that is due once a day: looked at often, tried again within a minute of a failure. A machine that slept, or whose clock
// was set, catches up.

import { messageOf } from '../../../shared/domain/thrown.ts';
import type { Log } from '../../../shared/ports/log.ts';

const DAY_MS = 86_400_000;
const RETRY_MS = 50_000;

/** Begins a day after `now`; the function that comes back is called often, never rejects, and logs `event` at a failure. */
export function onceADay(work: () => Promise<void>, event: string, now: () => Date, log: Log): () => Promise<void> {
  let nextAt = now().getTime() + DAY_MS;
  let running = false;

  return async function look() {
    const at = now().getTime();
    if (running || (at < nextAt && nextAt - at <= DAY_MS)) return;
    running = true;
    try {
      await work();
      nextAt = at + DAY_MS;
    } catch (error) {
      nextAt = at + RETRY_MS;
      log.error(event, { error: messageOf(error) });
    } finally {
      running = false;
    }
  };
}

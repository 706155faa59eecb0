// When a repeated thing is due again. Time is cut into slots of `intervalSeconds` from an origin: a thing is due once in
// each slot, so that a late tick does not push all later ones back, and two processes agree on the slot.

/** True when `lastMs` (undefined: never) lies in an earlier slot than `nowMs`, or in the future (the clock was set back). */
export function due(lastMs: number | undefined, intervalSeconds: number, nowMs: number, originMs = 0): boolean {
  if (lastMs === undefined || lastMs > nowMs) return true;
  return slotStart(lastMs, intervalSeconds, originMs) < slotStart(nowMs, intervalSeconds, originMs);
}

/** The beginning, in milliseconds, of the slot that `nowMs` lies in. */
export function slotStart(nowMs: number, intervalSeconds: number, originMs = 0): number {
  const length = intervalSeconds * 1000;
  return originMs + Math.floor((nowMs - originMs) / length) * length;
}

/** How often a cron of ours fires: with a minute named, once an hour, else each minute. */
export function cronSeconds(cron: string): number {
  return /^\d/.test(cron) ? 3600 : 60;
}

// Keeps a flood of notes out of the audit log. Each kind of action may come in a burst; when that is used up, so many a
// minute are kept and the rest is a count. The first of a kind in a minute is always kept. A note that is left out costs
// next to nothing.

const BURST = 1_000;
const A_MINUTE = 60;
/** Kinds are told apart up to here. */
const MOST_KINDS = 100;

export interface AuditThrottle {
  /** False when this note is only counted. */
  lets(action: string, nowMs: number): boolean;
  /** What was left out in the minute before, once it is over; undefined when nothing was, or it is not. */
  takeOmitted(nowMs: number): Record<string, number> | undefined;
  /** True when something was left out that was not taken yet. */
  hasOmitted(): boolean;
}

interface Kind {
  /** How many may still come. */
  left: number;
  keptThisMinute: boolean;
  omitted: number;
}

/** `minuteMs`: how long a minute is. */
export function auditThrottle(minuteMs = 60_000): AuditThrottle {
  const kinds = new Map<string, Kind>();
  let begunMs = -Infinity;
  let omitted: Record<string, number> | undefined;

  function turn(nowMs: number): void {
    if (nowMs - begunMs < minuteMs) return;
    const minutes = Math.floor((nowMs - begunMs) / minuteMs);
    begunMs = nowMs;
    for (const [action, kind] of kinds) {
      if (kind.omitted > 0) omitted = { ...omitted, [action]: (omitted?.[action] ?? 0) + kind.omitted };
      const left = Math.min(BURST, kind.left + A_MINUTE * minutes);
      if (left === BURST) kinds.delete(action);
      else Object.assign(kind, { left, keptThisMinute: false, omitted: 0 });
    }
  }

  function kindOf(action: string): Kind {
    const name = kinds.has(action) || kinds.size < MOST_KINDS ? action : 'other';
    const kind = kinds.get(name) ?? { left: BURST, keptThisMinute: false, omitted: 0 };
    kinds.set(name, kind);
    return kind;
  }

  return {
    lets(action, nowMs) {
      turn(nowMs);
      const kind = kindOf(action);
      if (kind.left <= 0 && kind.keptThisMinute) {
        kind.omitted += 1;
        return false;
      }
      kind.left = Math.max(0, kind.left - 1);
      kind.keptThisMinute = true;
      return true;
    },
    takeOmitted(nowMs) {
      turn(nowMs);
      const taken = omitted;
      omitted = undefined;
      return taken;
    },
    hasOmitted: () => omitted !== undefined || [...kinds.values()].some((kind) => kind.omitted > 0),
  };
}

// The pace of one run: what inserts take while a batch is on its way, against what they take in the pauses between. A machine
// that is slow with other work is slow in both, and does not hold the run up.

import type { Latencies } from './insert-latencies.ts';
import { FIRST_PACE, nextPace, type Pace } from './pace.ts';

export interface Pacer {
  readonly pace: Pace;
  /** A batch begins. */
  begins(): void;
  ended(batch: { batchMs: number; rows: number; commitMs: number }): void;
  /** After something went wrong. */
  halve(): void;
}

const KEPT = 15;
/** While none was ever seen. */
const USUAL_MS = 3;

export function createPacer(latencies: Latencies): Pacer {
  const inPauses = [latencies.usual() ?? USUAL_MS];
  const commits = [USUAL_MS];
  let pace = FIRST_PACE;

  return {
    get pace() {
      return pace;
    },
    begins() {
      const inPause = latencies.slowest();
      if (inPause !== undefined) keep(inPauses, inPause);
    },
    ended({ batchMs, rows, commitMs }) {
      const insertMs = latencies.slowest();
      const seen = insertMs === undefined ? ([commitMs, commits] as const) : ([insertMs, inPauses] as const);
      pace = nextPace(pace, { batchMs, rows, reactionMs: seen[0], usualMs: median(seen[1]) });
      keep(commits, commitMs);
    },
    halve() {
      pace = { ...pace, rows: Math.max(1, Math.round(pace.rows / 2)) };
    },
  };
}

function keep(values: number[], value: number): void {
  values.push(value);
  if (values.length > KEPT) values.shift();
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? USUAL_MS;
}

// What the archive's own writes take, measured as they happen: by it a run of retention sees whether it is in their way.

import type { CotWriter } from '../store/cot-events.ts';

/** What a run asks; milliseconds of a write of few rows. Undefined: there was none. */
export interface Latencies {
  /** The slowest since the last call. */
  slowest(): number | undefined;
  /** The median of the last ones. */
  usual(): number | undefined;
}

export interface InsertLatencies extends Latencies {
  timed(writer: CotWriter): CotWriter;
}

const KEPT = 64;
/** A write of so many rows takes about twice as long as one of a single row. */
const ROWS_OF_TWICE = 100;

export function insertLatencies(steadyMs: () => number): InsertLatencies {
  const last: number[] = [];
  let slowest: number | undefined;

  function took(ms: number, rows: number): void {
    const cost = ms / (1 + rows / ROWS_OF_TWICE);
    slowest = Math.max(slowest ?? 0, cost);
    last.push(cost);
    if (last.length > KEPT) last.shift();
  }

  return {
    timed: (writer) => ({
      ids: (count) => writer.ids(count),
      async write(rows, again) {
        const begunMs = steadyMs();
        await writer.write(rows, again);
        took(steadyMs() - begunMs, rows.length);
      },
    }),
    slowest() {
      const found = slowest;
      slowest = undefined;
      return found;
    },
    usual: () => last.toSorted((a, b) => a - b)[Math.floor(last.length / 2)],
  };
}

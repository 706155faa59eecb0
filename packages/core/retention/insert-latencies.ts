// What the archive's own writes take, measured as they happen: by it a run of retention sees whether it is in their way.

import type { CotWriter } from '../store/cot-events.ts';

/** What a run asks; milliseconds of a write of few rows. Undefined: there was none. */
export interface Latencies {
  /** The slowest since the last call. */
  slowest(): number | undefined;
  /** The median of the last ones. */
  usual(): number | undefined;
}

const KEPT = 64;
/** A write of so many rows takes about twice as long as one of a single row. */
const ROWS_OF_TWICE = 100;

export class InsertLatencies implements Latencies {
  readonly #steadyMs: () => number;
  readonly #last: number[] = [];
  #slowest: number | undefined;

  constructor(steadyMs: () => number) {
    this.#steadyMs = steadyMs;
  }

  timed(writer: CotWriter): CotWriter {
    return {
      ids: (count) => writer.ids(count),
      write: async (rows, again) => {
        const begunMs = this.#steadyMs();
        await writer.write(rows, again);
        this.#took(this.#steadyMs() - begunMs, rows.length);
      },
    };
  }

  slowest(): number | undefined {
    const found = this.#slowest;
    this.#slowest = undefined;
    return found;
  }

  usual(): number | undefined {
    return this.#last.toSorted((a, b) => a - b)[Math.floor(this.#last.length / 2)];
  }

  #took(ms: number, rows: number): void {
    const cost = ms / (1 + rows / ROWS_OF_TWICE);
    this.#slowest = Math.max(this.#slowest ?? 0, cost);
    this.#last.push(cost);
    if (this.#last.length > KEPT) this.#last.shift();
  }
}

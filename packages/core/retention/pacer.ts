// Paces a retention run by how long the archive's inserts take meanwhile.

import type { CotWriter } from '../store/cot-events.ts';

export interface Pace {
  pauseMs: number;
  /** Rows that a batch looks at, at most. */
  rows: number;
}

/** What was seen of the last batch. */
export interface PaceSeen {
  batchMs: number;
  /** Rows that it looked at. */
  rows: number;
  /** What an insert has cost meanwhile, else the commit of the batch. */
  reactionMs: number;
  /** What it costs while nothing is deleted. */
  usualMs: number;
}

export const FIRST_PACE: Pace = { pauseMs: 20, rows: 1_000 };
export const PACE_BOUNDS = { minPauseMs: 5, maxPauseMs: 2_000, minRows: 200, maxRows: 5_000 } as const;

/** Noise of a machine with other work: less is never slow. */
const MIN_SLOW_MS = 8;
const SLOW_FACTOR = 3;
const MAX_BATCH_MS = 100;
/** Fewer rows say nothing of what a whole batch takes. */
const TELLING_ROWS = 100;

/** The pace of the next batch, and the pause before it. */
export function nextPace(pace: Pace, seen: PaceSeen): Pace {
  const isSlow = seen.reactionMs > Math.max(MIN_SLOW_MS, SLOW_FACTOR * seen.usualMs);
  const requested: Pace = isSlow
    ? { pauseMs: pace.pauseMs * 2, rows: pace.rows / 2 }
    : { pauseMs: pace.pauseMs * 0.8, rows: pace.rows * 1.2 };
  return {
    pauseMs: within(requested.pauseMs, PACE_BOUNDS.minPauseMs, PACE_BOUNDS.maxPauseMs),
    rows: Math.round(within(Math.min(requested.rows, rowsInTime(seen)), PACE_BOUNDS.minRows, PACE_BOUNDS.maxRows)),
  };
}

/** How many rows a batch has time for, as the last one went. */
function rowsInTime({ batchMs, rows }: PaceSeen): number {
  return rows < TELLING_ROWS || batchMs <= 0 ? Number.POSITIVE_INFINITY : (rows * MAX_BATCH_MS) / batchMs;
}

function within(value: number, least: number, most: number): number {
  return Math.min(Math.max(value, least), most);
}

const KEPT = 15;
/** While none was ever seen. */
const USUAL_MS = 3;

/**
 * How fast a run of retention may go: inserts come first. A slow reaction doubles the pause and
 * halves the batch, a good one takes both back slowly; a batch that took long makes the next one
 * smaller, whatever the inserts say.
 */
export class Pacer {
  readonly #latencies: Latencies;
  readonly #inPauses;
  readonly #commits = [USUAL_MS];
  #pace = FIRST_PACE;

  constructor(latencies: Latencies) {
    this.#latencies = latencies;
    this.#inPauses = [latencies.usual() ?? USUAL_MS];
  }

  get pace(): Pace {
    return this.#pace;
  }

  /** A batch begins. */
  begins(): void {
    const inPause = this.#latencies.slowest();
    if (inPause !== undefined) keep(this.#inPauses, inPause);
  }

  ended({ batchMs, rows, commitMs }: { batchMs: number; rows: number; commitMs: number }): void {
    const insertMs = this.#latencies.slowest();
    const seen = insertMs === undefined ? ([commitMs, this.#commits] as const) : ([insertMs, this.#inPauses] as const);
    this.#pace = nextPace(this.#pace, { batchMs, rows, reactionMs: seen[0], usualMs: median(seen[1]) });
    keep(this.#commits, commitMs);
  }

  /** After something went wrong. */
  halve(): void {
    this.#pace = { ...this.#pace, rows: Math.max(1, Math.round(this.#pace.rows / 2)) };
  }
}

function keep(values: number[], value: number): void {
  values.push(value);
  if (values.length > KEPT) values.shift();
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? USUAL_MS;
}

/** What a run asks; milliseconds of a write of few rows. Undefined: there was none. */
export interface Latencies {
  /** The slowest since the last call. */
  slowest(): number | undefined;
  /** The median of the last ones. */
  usual(): number | undefined;
}

const MAX_KEPT = 64;
/** A write of so many rows takes about twice as long as one of a single row. */
const ROWS_OF_TWICE = 100;

/**
 * What the archive's own writes take, measured as they happen: by it a run of retention sees
 * whether it is in their way.
 */
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
    if (this.#last.length > MAX_KEPT) this.#last.shift();
  }
}

// How fast a run of retention goes: inserts come first.

import { describe, expect, it } from 'vitest';
import { FIRST_PACE, InsertLatencies, nextPace, PACE_BOUNDS, Pacer, type PaceSeen } from '../retention/pacer.ts';

const GOOD: PaceSeen = { batchMs: 20, rows: 1_000, reactionMs: 3, usualMs: 3 };
const SLOW: PaceSeen = { ...GOOD, reactionMs: 40 };

describe('the pace', () => {
  it('gives way at once when an insert is slow, and comes back slowly', () => {
    const slowed = nextPace(FIRST_PACE, SLOW);
    expect(slowed).toEqual({ pauseMs: FIRST_PACE.pauseMs * 2, rows: FIRST_PACE.rows / 2 });
    const better = nextPace(slowed, GOOD);
    expect(better.pauseMs).toBeLessThan(slowed.pauseMs);
    expect(better.pauseMs).toBeGreaterThan(FIRST_PACE.pauseMs);
    expect(better.rows).toBeGreaterThan(slowed.rows);
    expect(better.rows).toBeLessThan(FIRST_PACE.rows);
  });

  it('stays within its bounds', () => {
    let pace = FIRST_PACE;
    for (let n = 0; n < 50; n++) pace = nextPace(pace, SLOW);
    expect(pace).toEqual({ pauseMs: PACE_BOUNDS.maxPauseMs, rows: PACE_BOUNDS.minRows });
    for (let n = 0; n < 100; n++) pace = nextPace(pace, GOOD);
    expect(pace).toEqual({ pauseMs: PACE_BOUNDS.minPauseMs, rows: PACE_BOUNDS.maxRows });
  });

  it('is slow by what an insert usually takes, and never by less than the noise of a machine', () => {
    expect(nextPace(FIRST_PACE, { ...GOOD, reactionMs: 7, usualMs: 0.5 }).pauseMs).toBeLessThan(FIRST_PACE.pauseMs);
    expect(nextPace(FIRST_PACE, { ...GOOD, reactionMs: 40, usualMs: 20 }).pauseMs).toBeLessThan(FIRST_PACE.pauseMs);
    expect(nextPace(FIRST_PACE, { ...GOOD, reactionMs: 61, usualMs: 20 }).pauseMs).toBeGreaterThan(FIRST_PACE.pauseMs);
  });

  it('makes a batch that took long smaller, however fast the inserts are', () => {
    const pace = nextPace({ pauseMs: 5, rows: 4_000 }, { ...GOOD, batchMs: 400, rows: 4_000 });
    expect(pace.rows).toBe(1_000);
  });

  it('learns nothing of rows from the few at the end of a type', () => {
    expect(nextPace(FIRST_PACE, { ...GOOD, batchMs: 90, rows: 3 }).rows).toBe(1_200);
  });
});

describe('the pace of a run', () => {
  /** What inserts take in a pause, and in the batch after it. */
  function paced(usual: number | undefined, rounds: readonly (readonly [number | undefined, number | undefined])[]) {
    const looks = rounds.flat();
    const pacer = new Pacer({ slowest: () => looks.shift(), usual: () => usual });
    for (const _ of rounds) {
      pacer.begins();
      pacer.ended({ batchMs: 20, rows: 1_000, commitMs: 1 });
    }
    return pacer.pace;
  }
  const times = <T>(count: number, round: T): T[] => Array.from({ length: count }, () => round);

  it('gives way when inserts are slower in its batches than in its pauses', () => {
    expect(paced(2, times(5, [2, 60])).pauseMs).toBe(FIRST_PACE.pauseMs * 32);
  });

  it('does not stand still on a machine that is slow anyway', () => {
    expect(paced(2, times(40, [90, 90])).pauseMs).toBeLessThanOrEqual(FIRST_PACE.pauseMs);
  });

  it('goes by its own commits while nothing is inserted', () => {
    expect(paced(undefined, times(20, [undefined, undefined])).pauseMs).toBe(PACE_BOUNDS.minPauseMs);
    const pacer = new Pacer({ slowest: () => undefined, usual: () => undefined });
    pacer.ended({ batchMs: 20, rows: 1_000, commitMs: 80 });
    expect(pacer.pace.pauseMs).toBe(FIRST_PACE.pauseMs * 2);
  });
});

describe('what inserts take', () => {
  const writer = { ids: async () => [], write: async () => undefined };
  const rowsOf = (count: number) => Array.from({ length: count }, () => ({}) as never);

  it('is the slowest since the last look, and the median of the last ones', async () => {
    let nowMs = 0;
    const takes = [2, 9, 4];
    const latencies = new InsertLatencies(() => nowMs);
    const timed = latencies.timed({ ...writer, write: async () => void (nowMs += takes.shift() ?? 1) });
    expect([latencies.slowest(), latencies.usual()]).toEqual([undefined, undefined]);
    for (let n = 0; n < 3; n++) await timed.write([], false);
    expect([latencies.slowest(), latencies.slowest(), latencies.usual()]).toEqual([9, undefined, 4]);
  });

  it('counts for a write of many rows by its share', async () => {
    let nowMs = 0;
    const latencies = new InsertLatencies(() => nowMs);
    await latencies.timed({ ...writer, write: async () => void (nowMs += 18) }).write(rowsOf(500), false);
    expect(latencies.slowest()).toBe(3);
  });

  it('does not know of a write that failed, and hands its error on', async () => {
    const latencies = new InsertLatencies(() => 0);
    const timed = latencies.timed({ ...writer, write: () => Promise.reject(new Error('away')) });
    await expect(timed.write([], false)).rejects.toThrow('away');
    expect(latencies.slowest()).toBeUndefined();
  });
});

// How far the unpacking of a release is said to be, on a terminal and into a log.

import { describe, expect, it } from 'vitest';
import { percentProgress } from '../archive/program.ts';

function recorded(isTTY: boolean) {
  const written: string[] = [];
  const clock = { ms: 0 };
  const progress = percentProgress(200, { write: (text) => written.push(text), isTTY }, () => clock.ms);
  return { written, clock, progress };
}

describe('the progress of unpacking', () => {
  it('is shown on a terminal once for each percent, and wiped at the end', () => {
    const { written, progress } = recorded(true);
    for (const bytes of [1, 2, 3, 4, 200]) progress.to(bytes);
    progress.end();
    expect(written.map((text) => text.trim())).toEqual(['0 %', '1 %', '2 %', '100 %', '']);
    expect(written.every((text) => text.startsWith('\r'))).toBe(true);
  });

  it('is a line every ten seconds elsewhere', () => {
    const { written, clock, progress } = recorded(false);
    for (const [ms, bytes] of [
      [0, 10],
      [9_999, 50],
      [10_000, 60],
      [15_000, 90],
      [20_000, 100],
    ] as const) {
      clock.ms = ms;
      progress.to(bytes);
    }
    progress.end();
    expect(written).toEqual(['  30 %\n', '  50 %\n']);
  });
});

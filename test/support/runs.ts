// How often a test with random input runs, and any character for it.

import fc from 'fast-check';

const share = Number(process.env['HOLDFAST_TEST_RUNS'] ?? 1);
if (!(share > 0 && share <= 1)) throw new Error('HOLDFAST_TEST_RUNS must be a number above 0 and at most 1');

/** All of its runs, or the share of them that HOLDFAST_TEST_RUNS gives. */
export function runs(all: number): number {
  return Math.ceil(all * share);
}

/** The unit `binary` of fast-check, which takes most of a second to be made. */
export const anyCharacter = fc
  .integer({ min: 0, max: 0x10_ffff - 0x800 })
  .map((code) => String.fromCodePoint(code < 0xd800 ? code : code + 0x800));

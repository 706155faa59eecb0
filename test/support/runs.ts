// How often a test with random input runs: as often as it says, or the share of it that HOLDFAST_TEST_RUNS gives.

const share = Number(process.env['HOLDFAST_TEST_RUNS'] ?? 1);
if (!(share > 0 && share <= 1)) throw new Error('HOLDFAST_TEST_RUNS must be a number above 0 and at most 1');

export function runs(all: number): number {
  return Math.ceil(all * share);
}

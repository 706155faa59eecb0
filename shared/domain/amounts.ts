// Amounts as people read them.

const STEPS = ['bytes', 'kB', 'MB', 'GB', 'TB'];

/** `25 GB`, `1.5 MB`; powers of 1000, as disks are sold and thresholds are written. */
export function bytesInWords(bytes: number): string {
  let amount = bytes;
  let step = 0;
  while (amount >= 1000 && step < STEPS.length - 1) {
    amount /= 1000;
    step++;
  }
  return `${amount < 10 && step > 0 ? rounded(amount, 1) : Math.round(amount)} ${STEPS[step]}`;
}

/** `1 table`, `2 tables`. */
export function counted(count: number, thing: string): string {
  return `${count} ${thing}${count === 1 ? '' : 's'}`;
}

/** The number with at most `digits` decimals. */
export function rounded(value: number, digits: number): number {
  return Math.round(value * 10 ** digits) / 10 ** digits;
}

/** What `part` is of `whole`, 0..100; 0 of nothing. */
export function percentageOf(part: number, whole: number): number {
  return whole === 0 ? 0 : (part / whole) * 100;
}

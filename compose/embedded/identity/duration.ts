// Lengths of time as the provider writes them in attributes: `days=7;hours=12`.

const UNIT_MS: Readonly<Record<string, number>> = {
  milliseconds: 1,
  seconds: 1000,
  minutes: 60_000,
  hours: 3_600_000,
  days: 86_400_000,
  weeks: 604_800_000,
};
/** A hundred years: times that far from now are still dates. */
const LONGEST_MS = 36_525 * 86_400_000;

/** Milliseconds, at most a hundred years; undefined for anything that is not of this form, or is not above zero. */
export function readDuration(text: unknown): number | undefined {
  if (typeof text !== 'string' || text.length > 200) return undefined;
  let total = 0;
  for (const part of text.split(';')) {
    const [, unit = '', amount = ''] = /^\s*([a-z]+)\s*=\s*(\d{1,12}(?:\.\d{1,6})?)\s*$/.exec(part) ?? [];
    const unitMs = Object.hasOwn(UNIT_MS, unit) ? UNIT_MS[unit] : undefined;
    if (unitMs === undefined) return undefined;
    total += Number(amount) * unitMs;
  }
  const ms = Math.round(total);
  return ms > 0 ? Math.min(ms, LONGEST_MS) : undefined;
}

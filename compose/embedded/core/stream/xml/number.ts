// Numbers as events write them: decimal, with or without exponent.

const PLUS = 0x2b;
const MINUS = 0x2d;
const DOT = 0x2e;
const DECIMAL = /^[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?$/;
/** Longer than any number that a double needs, and no work for whoever sends a million digits. */
const MOST_LENGTH = 400;

/** NaN for what is no finite decimal number. */
export function numberOf(text: string): number {
  const trimmed = text.length > MOST_LENGTH ? '' : text.trim();
  const value = DECIMAL.test(trimmed) ? Number(trimmed) : Number.NaN;
  return Number.isFinite(value) ? value : Number.NaN;
}

/** Powers of ten that a double holds exactly: one division of exact numbers is rounded as `Number` rounds. */
const POWERS = Array.from({ length: 16 }, (_, power) => 10 ** power);

/** The same from bytes, without a string in the usual case; undefined where it takes the string. */
export function plainNumber(frame: Buffer, from: number, to: number): number | undefined {
  let i = from;
  const isNegative = frame[i] === MINUS;
  if (isNegative || frame[i] === PLUS) i++;
  let digits = 0;
  let fraction = -1;
  let value = 0;
  if (to - i > 16) return undefined;
  for (; i < to; i++) {
    const byte = frame[i] as number;
    if (byte >= 0x30 && byte <= 0x39) {
      value = value * 10 + (byte - 0x30);
      digits++;
      if (fraction >= 0) fraction++;
    } else if (byte === DOT && fraction < 0) {
      fraction = 0;
    } else {
      return undefined;
    }
  }
  if (digits === 0 || digits > 15) return undefined;
  const size = fraction > 0 ? value / (POWERS[fraction] as number) : value;
  return isNegative ? -size : size;
}

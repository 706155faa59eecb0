// Amounts as people read them.

const STEPS = ['bytes', 'kB', 'MB', 'GB', 'TB'];

/** `25 GB`, `1.5 MB`; powers of 1000, as disks are sold and thresholds are written. */
export function formatBytes(bytes: number): string {
  let amount = bytes;
  let step = 0;
  while (amount >= 1000 && step < STEPS.length - 1) {
    amount /= 1000;
    step++;
  }
  return `${amount < 10 && step > 0 ? rounded(amount, 1) : Math.round(amount)} ${STEPS[step]}`;
}

/** `1 table`, `2 tables`. */
export function counted(count: number, item: string): string {
  return `${count} ${item}${count === 1 ? '' : 's'}`;
}

/** The number with at most `digits` decimals. */
export function rounded(value: number, digits: number): number {
  return Math.round(value * 10 ** digits) / 10 ** digits;
}

/** What `part` is of `whole`, 0..100; 0 of nothing. */
export function percentageOf(part: number, whole: number): number {
  return whole === 0 ? 0 : (part / whole) * 100;
}

const UNITS = [
  ['day', 86_400],
  ['hour', 3600],
  ['minute', 60],
] as const;

/** `3 days 4 hours`, `5 minutes`, `less than a minute`: the largest unit and the next one. */
export function formatDuration(ms: number): string {
  let rest = Math.floor(ms / 1000);
  const counts = UNITS.map(([unit, size]) => {
    const count = Math.max(0, Math.floor(rest / size));
    rest -= count * size;
    return { unit, count };
  });
  const first = counts.findIndex(({ count }) => count > 0);
  if (first === -1) return 'less than a minute';
  const shown = counts.slice(first, first + 2).filter(({ count }) => count > 0);
  return shown.map(({ unit, count }) => counted(count, unit)).join(' ');
}

/** `12 seconds`, from a minute on as `durationInWords`. */
export function formatSeconds(seconds: number): string {
  const whole = Math.ceil(seconds);
  return whole < 60 ? counted(whole, 'second') : formatDuration(whole * 1000);
}

/** `1,234,567`, `1,234.5`. */
export function grouped(count: number): string {
  return String(count).replaceAll(/\B(?<!\.\d*)(?=(?:\d{3})+(?:\.|$))/g, ',');
}

/** `2026-01-02 03:04:05 UTC`; the text itself when it is no time. */
export function formatUtc(iso: string): string {
  const ms = Date.parse(iso);
  return Number.isNaN(ms) ? iso : `${new Date(ms).toISOString().slice(0, 19).replace('T', ' ')} UTC`;
}

const IN_WORDS = {
  bytes: formatBytes,
  percent: (value: number) => `${rounded(value, 1)} %`,
  days: (value: number) => counted(Math.floor(value), 'day'),
  seconds: (value: number) => `${rounded(value, 3)} s`,
  milliseconds: (value: number) => `${Math.round(value)} ms`,
  count: (value: number) => String(rounded(value, 1)),
};

/** One figure with its unit, as people read it. */
export type FigureUnit = keyof typeof IN_WORDS;

/** `25 GB`, `41.5 %`, `1 day`, `0.032 s`, `120 ms`, `3`. */
export function formatFigure(value: number, unit: FigureUnit): string {
  return IN_WORDS[unit](value);
}

const UNIT_BYTES: Record<string, number> = { B: 1, kB: 1024, MB: 1024 ** 2, GB: 1024 ** 3, TB: 1024 ** 4 };

/**
 * PostgreSQL's memory sizes: `256MB`, `1GB`, `65536kB`; a number alone counts kilobytes, as
 * maintenance_work_mem does. Bytes of a PostgreSQL size, or undefined when the text is none. Units
 * are case-sensitive, as in PostgreSQL.
 */
export function parseDatabaseSize(text: string): number | undefined {
  const match = /^(\d{1,12})\s*(B|kB|MB|GB|TB)?$/.exec(text);
  if (!match) return undefined;
  return Number(match[1]) * (UNIT_BYTES[match[2] ?? 'kB'] ?? 0);
}

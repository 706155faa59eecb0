// Days as people name them, in the zone of the stack, as the instants at which they begin. Where a clock is put forward at
// midnight, a day begins later; where it is put back, a day begins with the first of its two midnights.

const DAY = /^(\d{4})-(\d{2})-(\d{2})$/;
const DAY_MS = 86_400_000;

/** `2026-03-29` there really is; not `2026-02-30`. */
export function isDay(text: string): boolean {
  const ms = DAY.test(text) ? Date.parse(`${text}T00:00:00Z`) : Number.NaN;
  return !Number.isNaN(ms) && new Date(ms).toISOString().startsWith(text) && !text.startsWith('0000');
}

/** When that day begins in a zone of the IANA database, ISO 8601; undefined when it is no day. */
export function beginOfDay(day: string, timeZone: string): string | undefined {
  if (!isDay(day)) return undefined;
  const utcMs = Date.parse(`${day}T00:00:00Z`);
  const candidates = [utcMs - DAY_MS, utcMs + DAY_MS].map((near) => utcMs - offsetMs(near, timeZone));
  const begins = candidates.filter((ms) => localTime(ms, timeZone).slice(0, 10) >= day);
  return new Date(Math.min(...(begins.length > 0 ? begins : candidates))).toISOString();
}

/** When that day is over: the next one begins. */
export function endOfDay(day: string, timeZone: string): string | undefined {
  if (!isDay(day)) return undefined;
  const next = new Date(Date.parse(`${day}T00:00:00Z`) + DAY_MS).toISOString().slice(0, 10);
  return beginOfDay(next, timeZone);
}

/** How far the clocks of the zone are ahead of UTC at that instant. */
function offsetMs(atMs: number, timeZone: string): number {
  const wholeSecond = Math.floor(atMs / 1000) * 1000;
  return Date.parse(`${localTime(wholeSecond, timeZone)}Z`) - wholeSecond;
}

/** `2026-03-29T01:00:00` on the clocks of the zone. */
function localTime(atMs: number, timeZone: string): string {
  const format = new Intl.DateTimeFormat('en-US', {
    timeZone,
    calendar: 'iso8601',
    hourCycle: 'h23',
    year: 'numeric',
    month: '2-digit',
    day: '2-digit',
    hour: '2-digit',
    minute: '2-digit',
    second: '2-digit',
  });
  const parts = Object.fromEntries(format.formatToParts(atMs).map(({ type, value }) => [type, value]));
  const { year = '', month, day, hour, minute, second } = parts;
  return `${year.padStart(4, '0')}-${month}-${day}T${hour}:${minute}:${second}`;
}

// The dates of the core: `yyyy-MM-dd'T'HH:mm:ss.S'Z'`, whose milliseconds are a count without padding: `.7Z` is 7 ms.

const DATE = /^([1-9]\d{3}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,3}))?Z$/;

/** ISO 8601 in UTC; undefined for what is no such date. */
export function coreDate(text: string): string | undefined {
  const [, seconds, milliseconds = ''] = DATE.exec(text) ?? [];
  if (seconds === undefined) return undefined;
  const iso = `${seconds}.${milliseconds.padStart(3, '0')}Z`;
  const date = new Date(iso);
  // What overflows is another date than the text: 30 February.
  return !Number.isNaN(date.getTime()) && date.toISOString() === iso ? iso : undefined;
}

// A time as statements give it (milliseconds since 1970) as ISO 8601.

export function isoOf(ms: number | null): string | null {
  return ms === null ? null : new Date(ms).toISOString();
}

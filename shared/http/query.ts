// Query parameters: text that must be exactly what the document says.

import { z } from '@hono/zod-openapi';

/** A whole number in plain decimal digits within bounds; `initial` when it is absent. */
export function integerQuery(least: number, most: number, initial: number) {
  return z
    .string()
    .regex(/^\d{1,9}$/, `must be a whole number from ${least} to ${most}`)
    .transform(Number)
    .refine((value) => value >= least && value <= most, `must be a whole number from ${least} to ${most}`)
    .default(initial)
    .openapi({ type: 'integer', minimum: least, maximum: most, default: initial });
}

/** A time or a day (its beginning, UTC) as ISO 8601; becomes an ISO 8601 time in UTC. */
export function timeText() {
  return z
    .union([z.iso.datetime({ offset: true }), z.iso.datetime({ offset: true, precision: -1 }), z.iso.date()], {
      error: 'must be a time as ISO 8601, such as 2026-01-02T03:04:05Z (a + is %2B)',
    })
    .refine(isUsual, 'must be a time that exists, from the year 1 to 9999')
    .transform((text) => new Date(text).toISOString())
    .openapi({ type: 'string', format: 'date-time' });
}

/** The same as a query parameter that may be absent. */
export function timeQuery() {
  return timeText().optional();
}

/** Years of four digits, also after the conversion to UTC. */
function isUsual(text: string): boolean {
  const year = new Date(text).getUTCFullYear();
  return year >= 1 && year <= 9999;
}

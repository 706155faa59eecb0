// What lists have in common that can be had as pages, and some as CSV.

import { z } from '@hono/zod-openapi';
import type { Context } from 'hono';
import type { AppEnv } from './context.ts';

/**
 * Query parameters: text that must be exactly what the document says.
 * A whole number in plain decimal digits within bounds; `initial` when it is absent.
 */
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
      error: 'must be a time in ISO 8601, such as 2026-01-02T03:04:05Z (write + as %2B)',
    })
    .refine(isUsual, 'must be a valid time, from the year 1 to 9999')
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

const MAX_CSV_ROWS = 10_000;

/** The query parameters that choose a page. */
export function pagingQuery(maxPages = 999_999_999) {
  return { page: integerQuery(1, maxPages, 1), page_size: integerQuery(1, 200, 50) };
}

/** A page of such things; `name` is that of the schema in the API document. */
export function pageOf<const S extends z.ZodType>(item: S, name: string) {
  return z.object({ results: z.array(item), count: z.int(), page: z.int(), page_size: z.int() }).openapi(name);
}

/** The query parameters of a list that can be had as CSV too, besides its own filters. */
export function listingQuery() {
  return {
    since: timeQuery(),
    until: timeQuery(),
    ...pagingQuery(),
    format: z.enum(['json', 'csv']).default('json'),
  };
}

interface Listing {
  page: number;
  page_size: number;
  format: 'json' | 'csv';
}

/**
 * Which part of the list is wanted: a page, or as CSV without page and page_size everything up to a
 * bound.
 */
export function wantedPart(
  c: Context<AppEnv>,
  { page, page_size, format }: Listing,
): { offset: number; limit: number } {
  const everything = format === 'csv' && c.req.query('page') === undefined && c.req.query('page_size') === undefined;
  const limit = everything ? MAX_CSV_ROWS : page_size;
  return { offset: (page - 1) * limit, limit };
}

/** What such a list can answer. */
export function listingAnswer<const S extends z.ZodType>(description: string, page: S) {
  return {
    description,
    content: { 'application/json': { schema: page }, 'text/csv': { schema: z.string() } },
  };
}

/** A CSV to be saved as `<name>.csv`; `count` is of everything that matches. */
export function csvAnswer(
  c: Context<AppEnv>,
  name: string,
  text: string,
  count: number,
  headers: Record<string, string> = {},
) {
  return c.newResponse(text, 200, {
    'Content-Type': 'text/csv; charset=utf-8',
    'Content-Disposition': `attachment; filename=${name}.csv`,
    'X-Total-Count': String(count),
    ...headers,
  });
}

/** A body that has these members and no others. */
export function bodyOf<const S extends z.core.$ZodLooseShape>(shape: S) {
  const schema = z.strictObject(shape, {
    error: (issue) =>
      issue.code === 'unrecognized_keys'
        ? `unknown member ${issue.keys.map((key) => JSON.stringify(key)).join(', ')}`
        : undefined,
  });
  return { body: { content: { 'application/json': { schema } }, required: true } };
}

/** `?include=certs,hidden`, also named several times; becomes the set of what is named. */
export function includeQuery<const W extends string>(words: readonly W[]) {
  const message = `must be of: ${words.join(', ')}`;
  return z
    .union([z.string(), z.array(z.string())])
    .transform((given) => [given].flat().flatMap((text) => text.split(',')))
    .pipe(z.array(z.enum(words, { error: message })))
    .transform((given): ReadonlySet<W> => new Set(given))
    .optional()
    .openapi({ type: 'array', items: { type: 'string', enum: [...words] } });
}

// What lists have in common that can be had as pages, and some as CSV.

import { z } from '@hono/zod-openapi';
import type { Context } from 'hono';
import type { AppEnv } from './env.ts';
import { integerQuery, timeQuery } from './query.ts';

const MOST_CSV_ROWS = 10_000;

/** The query parameters that choose a page. */
export function pagingQuery(mostPages = 999_999_999) {
  return { page: integerQuery(1, mostPages, 1), page_size: integerQuery(1, 200, 50) };
}

/** A page of such things; `name` is that of the schema in the API document. */
export function pageOf<const S extends z.ZodType>(thing: S, name: string) {
  return z.object({ results: z.array(thing), count: z.int(), page: z.int(), page_size: z.int() }).openapi(name);
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

/** Which part of the list is wanted: a page, or as CSV without page and page_size everything up to a bound. */
export function wantedPart(
  c: Context<AppEnv>,
  { page, page_size, format }: Listing,
): { offset: number; limit: number } {
  const everything = format === 'csv' && c.req.query('page') === undefined && c.req.query('page_size') === undefined;
  const limit = everything ? MOST_CSV_ROWS : page_size;
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

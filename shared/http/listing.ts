// What lists that can be had as pages or as CSV have in common.

import { z } from '@hono/zod-openapi';
import type { Context } from 'hono';
import type { AppEnv } from './env.ts';
import { integerQuery, timeQuery } from './query.ts';

export const MOST_CSV_ROWS = 10_000;

/** The query parameters of each such list, besides its own filters. */
export function listingQuery() {
  return {
    since: timeQuery(),
    until: timeQuery(),
    page: integerQuery(1, 999_999_999, 1),
    page_size: integerQuery(1, 200, 50),
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

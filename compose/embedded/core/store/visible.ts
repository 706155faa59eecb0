// Which rows somebody may see: those whose vector of groups has a bit at one of their places.

import type postgres from 'postgres';

/**
 * A condition on a column of vectors; `all` sees rows of no group too. The rightmost bit of a vector is place 0. A stored
 * vector is unpacked once, not for each place.
 */
export function visible(
  sql: postgres.ISql,
  groups: readonly number[] | 'all',
  column: postgres.Fragment,
): postgres.Fragment {
  if (groups === 'all') return sql`true`;
  return sql`EXISTS (SELECT FROM (SELECT ${column} || B'' AS bits OFFSET 0) plain
    CROSS JOIN unnest(${`{${groups.join()}}`}::text::int[]) AS place
    WHERE CASE WHEN place < length(plain.bits) THEN get_bit(plain.bits, length(plain.bits) - 1 - place) = 1 ELSE false END)`;
}

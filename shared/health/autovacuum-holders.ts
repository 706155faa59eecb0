// What holds up the cleaning of a table with many dead rows, and the command that ends it.

import { utcInWords } from '../domain/amounts.ts';
import { asciiLine, shortened } from '../domain/plain-text.ts';
import type { TableStatistics, VacuumHolder } from '../ports/core-database.ts';

/** Whatever is younger is ordinary work, unless a vacuum came after it and had to leave rows. */
const LONG_SECONDS = 60;
const MOST_NAME = 60;

/** The oldest that holds up this table; undefined when nothing does. */
export function holderOf(
  table: Pick<TableStatistics, 'last_vacuum' | 'last_autovacuum'>,
  holders: readonly VacuumHolder[],
): VacuumHolder | undefined {
  const vacuumed = Math.max(
    ...[table.last_vacuum, table.last_autovacuum].map((at) => (at === null ? 0 : Date.parse(at))),
  );
  return holders.find(
    ({ since, seconds }) => since === null || (seconds ?? 0) >= LONG_SECONDS || Date.parse(since) <= vacuumed,
  );
}

/** `the transaction of pid 12 (martiuser, psql), open since 2026-01-02 03:04:05 UTC`. */
export function holderInWords({ kind, name, user, application, since }: VacuumHolder): string {
  const who = [user, application].flatMap((each) => (each ? shortened(asciiLine(each), MOST_NAME) : [])).join(', ');
  const which = kind === 'transaction' ? `transaction of pid ${name}` : `${kind} ${name}`;
  return `the ${which}${who === '' ? '' : ` (${who})`}${since === null ? '' : `, open since ${utcInWords(since)}`}`;
}

export function holderRemedy({ kind, name }: VacuumHolder): string {
  if (kind === 'transaction') return `If nobody needs that transaction, end it: SELECT pg_terminate_backend(${name});`;
  if (kind === 'prepared transaction') return `If nobody will finish that transaction: ROLLBACK PREPARED ${name};`;
  return `If nothing uses that slot any more: SELECT pg_drop_replication_slot(${name});`;
}

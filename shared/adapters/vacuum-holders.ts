// What keeps dead rows from being removed: the oldest transactions, prepared ones, and replication slots.

import type { VacuumHolder } from '../ports/core-database.ts';
import { isoOf } from './epoch-time.ts';
import type { Sql } from './postgres.ts';

interface HolderRow extends Omit<VacuumHolder, 'since'> {
  since_ms: number | null;
}

/**
 * Transactions of another database hold nothing up here; what a standby reads does (walsender), whatever its database. A vacuum
 * holds up no other one. The statement that asks has a transaction too and is left out.
 */
export async function readVacuumHolders(sql: Sql): Promise<VacuumHolder[]> {
  const rows = await sql<HolderRow[]>`
    SELECT kind, name, "user", application, (extract(epoch FROM since) * 1000)::float8 AS since_ms,
      extract(epoch FROM clock_timestamp() - since)::float8 AS seconds
    FROM (
      SELECT 'transaction' AS kind, pid::text AS name, usename::text AS "user", application_name AS application,
        coalesce(xact_start, backend_start) AS since,
        greatest(age(backend_xmin), age(backend_xid)) AS age
      FROM pg_stat_activity
      WHERE (datname = current_database() OR backend_type = 'walsender') AND pid <> pg_backend_pid()
        AND (backend_xmin IS NOT NULL OR backend_xid IS NOT NULL)
        AND pid NOT IN (SELECT pid FROM pg_stat_progress_vacuum)
      UNION ALL
      SELECT 'prepared transaction', quote_literal(gid), owner::text, NULL, prepared, age(transaction)
      FROM pg_prepared_xacts WHERE database = current_database()
      UNION ALL
      SELECT 'replication slot', quote_literal(slot_name), NULL, NULL, NULL, age(xmin)
      FROM pg_replication_slots WHERE xmin IS NOT NULL
    ) AS each
    ORDER BY age DESC, since LIMIT 5`;
  return rows.map(({ since_ms: since, ...row }) => ({ ...row, since: isoOf(since) }));
}

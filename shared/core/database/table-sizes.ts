// Measures the tables of a database with SQL that waits for no lock: for exclusively locked tables
// (VACUUM FULL, REINDEX, TRUNCATE) it uses the catalog, because measuring their files would wait. A
// waiting exclusive lock blocks us too, so those count.

import { codeOf } from '@holdfast/kit/app-error';
import type { Sql } from '@holdfast/kit/postgres';

const LOCK_NOT_AVAILABLE = '55P03';

/**
 * The tables of pg_stat_user_tables without that view's index statistics, which take longer than
 * everything else.
 */
export const fromUserTables = (sql: Sql) => sql`
  FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
  WHERE c.relkind IN ('r', 't', 'm', 'p')
    AND n.nspname NOT IN ('pg_catalog', 'information_schema') AND n.nspname !~ '^pg_toast'`;

/**
 * Two parts of a WITH: `own`, every user table with its `is_locked`, and `locked`, which it needs.
 */
export const withOwnTables = (sql: Sql) => sql`
  locked AS MATERIALIZED (
    SELECT coalesce(i.indrelid, l.relation) AS relation
    FROM pg_locks l LEFT JOIN pg_index i ON i.indexrelid = l.relation
    WHERE l.locktype = 'relation' AND l.mode = 'AccessExclusiveLock'
      AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
  ), own AS MATERIALIZED (
    SELECT c.oid, n.nspname, c.relname, c.reltoastrelid,
      EXISTS (SELECT FROM locked WHERE relation IN (c.oid, c.reltoastrelid)) AS is_locked
    ${fromUserTables(sql)}
  )`;

/** Of a row of `own`: its rows, TOAST and indexes. */
export const bytesOfOwn = (sql: Sql) => sql`
  (CASE WHEN own.is_locked THEN (
    SELECT coalesce(sum(p.relpages), 0) * current_setting('block_size')::int8
    FROM pg_class p LEFT JOIN pg_index i ON i.indexrelid = p.oid
    WHERE p.oid IN (own.oid, own.reltoastrelid) OR i.indrelid IN (own.oid, own.reltoastrelid)
  ) ELSE pg_total_relation_size(own.oid) END)`;

/** A lock taken between the check and the measurement is seen the second time. */
export async function seeingLocks<T>(measure: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries++) {
    try {
      return await measure();
    } catch (error) {
      if (codeOf(error) !== LOCK_NOT_AVAILABLE || tries === 3) throw error;
    }
  }
}

// Stores the growth history in our own database. Rows that are too old, or from the future because
// of a wrong clock, are removed.

import type { RunSql } from '@holdfast/kit/kept-database';
import { DAY_MS } from '@holdfast/kit/time';
import type { GrowthHistory, GrowthSample, TableDay } from '../port.ts';

const FINE_DAYS = 2;
const HOURLY_DAYS = 60;
const KEPT_DAYS = 400;

type SampleRow = Omit<GrowthSample, 'at'> & { at: Date };

export function growthHistoryTable(run: RunSql): GrowthHistory {
  return {
    async keepSample({ at, database_bytes, wal_bytes, max_wal_bytes, mounts }) {
      await run(
        (sql) => sql`
          INSERT INTO growth_sample (at, database_bytes, wal_bytes, max_wal_bytes, mounts)
          VALUES (${at}, ${database_bytes}::float8::bigint, ${wal_bytes}::float8::bigint, ${max_wal_bytes}::float8::bigint,
            ${JSON.stringify(mounts)}::text::jsonb)
          ON CONFLICT (at) DO UPDATE SET database_bytes = excluded.database_bytes, wal_bytes = excluded.wal_bytes,
            max_wal_bytes = excluded.max_wal_bytes, mounts = excluded.mounts`,
      );
    },

    async samples(since) {
      const rows = await run(
        (sql) => sql<SampleRow[]>`
          SELECT at, database_bytes::float8 AS database_bytes, wal_bytes::float8 AS wal_bytes,
            max_wal_bytes::float8 AS max_wal_bytes, mounts
          FROM growth_sample WHERE at >= ${since} ORDER BY at`,
      );
      return rows.map((row) => ({ ...row, at: row.at.toISOString() }));
    },

    async keepTables(day, tables) {
      await run(
        (sql) => sql`
          WITH given AS (
            SELECT * FROM json_to_recordset(${JSON.stringify(tables)}::text::json)
              AS size (schema text, "table" text, bytes float8, rows float8)
          ), removed AS (
            DELETE FROM growth_table
            WHERE day = ${day}::text::date AND (schema_name, table_name) NOT IN (SELECT schema, "table" FROM given)
          )
          INSERT INTO growth_table (day, schema_name, table_name, bytes, rows)
          SELECT ${day}::text::date, schema, "table", bytes::bigint, rows::bigint FROM given
          ON CONFLICT (day, schema_name, table_name) DO UPDATE SET bytes = excluded.bytes, rows = excluded.rows`,
      );
    },

    async tables(sinceDay) {
      const rows = await run(
        (sql) => sql<TableDay[]>`
          SELECT to_char(day, 'YYYY-MM-DD') AS day, schema_name AS schema, table_name AS table,
            bytes::float8 AS bytes, rows::float8 AS rows
          FROM growth_table WHERE day >= ${sinceDay}::text::date
          ORDER BY growth_table.day, schema_name COLLATE "C", table_name COLLATE "C"`,
      );
      return rows.map((row) => ({ ...row }));
    },

    async thin(now) {
      const before = (days: number): string => new Date(Date.parse(now) - days * DAY_MS).toISOString();
      const [oldest, hourly, fine] = [before(KEPT_DAYS), before(HOURLY_DAYS), before(FINE_DAYS)];
      return run(async (sql) => {
        const { count } = await sql`
          DELETE FROM growth_sample WHERE at IN (
            SELECT at FROM (
              SELECT at, at < ${oldest} OR at > ${now} AS is_gone,
                row_number() OVER (PARTITION BY at < ${oldest}, at < ${hourly}, at < ${fine}, ${sql`
                  CASE WHEN at < ${hourly} THEN date_trunc('day', at, 'UTC')
                    WHEN at < ${fine} THEN date_trunc('hour', at, 'UTC') ELSE at END`} ORDER BY at) AS place
              FROM growth_sample
            ) placed WHERE is_gone OR place > 1)`;
        await sql`
          DELETE FROM growth_table
          WHERE day < ${oldest.slice(0, 10)}::text::date OR day > ${now.slice(0, 10)}::text::date`;
        return count;
      });
    },
  };
}

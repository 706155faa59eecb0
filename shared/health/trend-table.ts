// Stores health over time in our own database, one row per sample with all modules.
// Rows that are too old, or from the future because of a wrong clock, are removed.

import type { RunSql } from '@holdfast/kit/kept-database';
import { DAY_MS } from '@holdfast/kit/time';
import type { HealthSample, HealthTrend } from './port.ts';

const FINE_DAYS = 2;
const KEPT_DAYS = 14;

type SampleRow = Omit<HealthSample, 'at'> & { at: Date };

export function healthTrendTable(run: RunSql): HealthTrend {
  return {
    async keep({ at, modules }) {
      await run(
        (sql) => sql`
          INSERT INTO health_sample (at, modules) VALUES (${at}, ${JSON.stringify(modules)}::text::jsonb)
          ON CONFLICT (at) DO NOTHING`,
      );
    },

    async read(since) {
      const rows = await run(
        (sql) => sql<SampleRow[]>`SELECT at, modules FROM health_sample WHERE at >= ${since} ORDER BY at`,
      );
      return rows.map(({ at, modules }) => ({ at: at.toISOString(), modules }));
    },

    async thin(now) {
      const before = (days: number): string => new Date(Date.parse(now) - days * DAY_MS).toISOString();
      const [oldest, fine] = [before(KEPT_DAYS), before(FINE_DAYS)];
      return run(async (sql) => {
        const { count } = await sql`
          DELETE FROM health_sample WHERE at IN (
            SELECT at FROM (
              SELECT at, at < ${oldest} OR at > ${now} AS is_gone,
                row_number() OVER (PARTITION BY at < ${oldest}, at < ${fine},
                  CASE WHEN at < ${fine} THEN date_trunc('hour', at, 'UTC') ELSE at END ORDER BY at) AS place
              FROM health_sample
            ) placed WHERE is_gone OR place > 1)`;
        return count;
      });
    },
  };
}

// Dead rows per table, and whether autovacuum runs with the settings that were asked for. Small tables are listed and
// do not count.

import { counted, percentageOf, rounded } from '../domain/amounts.ts';
import { tuningDifferences, wantedSettings } from '../domain/database-tuning.ts';
import { type Finding, limitsOf } from '../domain/evaluate.ts';
import type { TableStatistics } from '../ports/core-database.ts';
import { healthModule } from './module.ts';

interface Table extends TableStatistics {
  /** Of dead and live rows together, 0..100. */
  dead_pct: number;
}

interface AutovacuumData {
  table_count: number;
  dead_tuples: number;
  live_tuples: number;
  tables: Table[];
  settings: Record<string, string | number>;
  settings_wanted: Record<string, string | number>;
  /** What differs, in words. */
  settings_differ: string[];
}

export const autovacuum = healthModule<AutovacuumData>({
  name: 'autovacuum',

  remedy: [
    'After a large deletion wait ten minutes: autovacuum starts by itself.',
    "Look for an old transaction that holds it up: SELECT pid, usename, xact_start FROM pg_stat_activity WHERE xact_start < now() - interval '1 hour'; and end a forgotten one with SELECT pg_terminate_backend(PID);",
    "Clean the table that the alert names by hand, which stops nobody's work: VACUUM (ANALYZE) SCHEMA.TABLE;",
    'If settings differ, restart the stack; if they still differ, take back what ALTER SYSTEM, ALTER DATABASE or ALTER ROLE has set (ALTER SYSTEM RESET NAME; SELECT pg_reload_conf();).',
  ],

  async read({ coreDatabase, wanted }) {
    const { tables, settings } = await coreDatabase.vacuumStatistics();
    const sum = (of: (table: TableStatistics) => number): number =>
      tables.reduce((total, table) => total + of(table), 0);
    return {
      table_count: tables.length,
      dead_tuples: sum((table) => table.dead_tuples),
      live_tuples: sum((table) => table.live_tuples),
      tables: tables.map((table) => ({ ...table, dead_pct: rounded(deadPercentage(table), 2) })),
      settings: Object.fromEntries(Object.entries(settings).map(([name, value]) => [name, numberIfOne(value)])),
      settings_wanted: wantedSettings(wanted.tuning),
      settings_differ: tuningDifferences(settings, wanted.tuning),
    };
  },

  findings({ tables, settings_differ }, thresholds, { AUTOVACUUM_MIN_DEAD_TUPLES: least }) {
    const large = tables.filter((table) => table.dead_tuples >= least);
    return [
      ...large.map((table): Finding => ({
        kind: 'figure',
        subject: `${table.schema}.${table.table}`,
        value: deadPercentage(table),
        limits: limitsOf(thresholds),
        says: `${table.dead_pct} % of its rows are dead (${table.dead_tuples} of ${table.dead_tuples + table.live_tuples})`,
        inWords: (limit) => `${limit} %`,
      })),
      ...settings_differ.map((says): Finding => ({ kind: 'fact', status: 'warning', says })),
    ];
  },

  well: ({ table_count, dead_tuples }) =>
    `${counted(table_count, 'table')} with ${counted(dead_tuples, 'dead row')} in all; none needs attention.`,
});

function deadPercentage({ dead_tuples, live_tuples }: TableStatistics): number {
  return percentageOf(dead_tuples, dead_tuples + live_tuples);
}

function numberIfOne(text: string): string | number {
  return text !== '' && Number.isFinite(Number(text)) ? Number(text) : text;
}

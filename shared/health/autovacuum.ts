// Dead rows per table with what holds up their removal, and whether autovacuum runs with the settings that were asked for.
// Small tables are listed and do not count.

import { counted, percentageOf, rounded } from '../domain/amounts.ts';
import {
  type DatabaseTuning,
  settingsAtStock,
  TUNING_VARIABLES,
  tuningDifferences,
  wantedSettings,
} from '../domain/database-tuning.ts';
import { type Fact, type Finding, limitsOf } from '../domain/evaluate.ts';
import type { SettingOrigin } from '../domain/setting-origin.ts';
import type { TableStatistics, VacuumHolder } from '../ports/core-database.ts';
import { holderInWords, holderOf, holderRemedy } from './autovacuum-holders.ts';
import {
  type OwnSettings,
  settingFacts,
  type SettingDiffers,
  stockInWords,
  stockRemedy,
  tableFacts,
} from './autovacuum-settings.ts';
import { AS_SUPERUSER, healthModule } from './module.ts';

interface Table extends Omit<TableStatistics, 'options'> {
  /** Of dead and live rows together, 0..100. */
  dead_pct: number;
}

interface AutovacuumData {
  table_count: number;
  dead_tuples: number;
  live_tuples: number;
  tables: Table[];
  /** Large tables with settings of their own. */
  own_settings: OwnSettings[];
  settings: Record<string, string | number>;
  settings_wanted: Record<string, string | number>;
  settings_differ: SettingDiffers[];
  /** True when all three variables ask for PostgreSQL's own values. */
  settings_stock: boolean;
  tuning: DatabaseTuning;
  /** The oldest first; empty where no table has many dead rows. */
  holders: VacuumHolder[];
  transaction_age: number;
}

const NO_ORIGINS: Readonly<Record<string, SettingOrigin>> = {};

/** Long before the server stops at two thousand million, and long after autovacuum should have prevented it. */
const OLD_TRANSACTIONS = 1_000_000_000;

export const autovacuum = healthModule<AutovacuumData>({
  name: 'autovacuum',

  remedy: [
    'After a large deletion wait ten minutes: autovacuum starts by itself.',
    "Look for an old transaction that holds it up: SELECT pid, usename, xact_start FROM pg_stat_activity WHERE xact_start < now() - interval '1 hour'; and end a forgotten one with SELECT pg_terminate_backend(PID);",
    'Clean the table that the alert names by hand, which stops nobody\'s work: POST /api/ops/database/vacuum with {"mode": "standard", "tables": ["SCHEMA.TABLE"]} (docs/database.md).',
    AS_SUPERUSER,
  ],

  async read({ coreDatabase, wanted: { tuning } }, { AUTOVACUUM_MIN_DEAD_TUPLES: least, modules }) {
    const { tables, settings, transaction_age } = await coreDatabase.vacuumStatistics();
    const sum = (of: (table: TableStatistics) => number): number =>
      tables.reduce((total, table) => total + of(table), 0);
    const differ = tuningDifferences(settings, tuning);
    const from = Number(modules['autovacuum']?.['warning']);
    // Asked for only where there is something to explain: they take longer than all the rest.
    const [origins, holders] = await Promise.all([
      differ.length === 0 ? NO_ORIGINS : coreDatabase.settingOrigins(differ.map(({ name }) => name)),
      tables.some((table) => table.dead_tuples >= least && deadPercentage(table) >= from)
        ? coreDatabase.vacuumHolders()
        : [],
    ]);
    return {
      table_count: tables.length,
      dead_tuples: sum((table) => table.dead_tuples),
      live_tuples: sum((table) => table.live_tuples),
      tables: tables.map(shownOf),
      own_settings: tables
        .filter(({ dead_tuples, live_tuples }) => dead_tuples + live_tuples >= least)
        .filter(({ options }) => Object.keys(options).length > 0)
        .map(({ schema, table, options }) => ({ schema, table, options })),
      settings: Object.fromEntries(Object.entries(settings).map(([name, value]) => [name, numberIfOne(value)])),
      settings_wanted: wantedSettings(tuning),
      settings_differ: differ.map((each) => ({ ...each, origin: origins[each.name] })),
      settings_stock: settingsAtStock(tuning).length === Object.keys(TUNING_VARIABLES).length,
      tuning,
      holders,
      transaction_age,
    };
  },

  findings(data, thresholds, { AUTOVACUUM_MIN_DEAD_TUPLES: least }) {
    const { tables, tuning } = data;
    return [
      ...tables
        .filter(({ dead_tuples }) => dead_tuples >= least)
        .map((table): Finding => ({
          kind: 'figure',
          subject: `${table.schema}.${table.table}`,
          value: deadPercentage(table),
          limits: limitsOf(thresholds),
          ...explained(table, data),
          inWords: (limit) => `${limit} %`,
        })),
      ...settingFacts(data.settings_differ),
      ...tableFacts(data.own_settings, tuning),
      ...ageFacts(data.transaction_age),
    ];
  },

  well({ table_count, dead_tuples, tuning }) {
    const stock = stockInWords(tuning);
    const dead = `${counted(table_count, 'table')} with ${counted(dead_tuples, 'dead row')} in all`;
    return `${dead}; none needs attention${stock === '' ? '' : ` (${stock})`}.`;
  },

  trend: {
    name: 'dead rows of the worst table',
    unit: 'percent',
    limits: limitsOf,
    figureOf: ({ tables }, { AUTOVACUUM_MIN_DEAD_TUPLES: least }) =>
      Math.max(0, ...tables.filter(({ dead_tuples }) => dead_tuples >= least).map(({ dead_pct }) => dead_pct)),
  },
});

function shownOf(table: TableStatistics): Table {
  const { schema, table: name, dead_tuples, live_tuples, last_autovacuum, last_vacuum } = table;
  const dead_pct = rounded(deadPercentage(table), 2);
  return { schema, table: name, dead_tuples, live_tuples, last_autovacuum, last_vacuum, dead_pct };
}

function explained(table: Table, { holders, tuning }: AutovacuumData): { says: string; remedy: string | undefined } {
  const { dead_pct, dead_tuples, live_tuples } = table;
  const holder = holderOf(table, holders);
  const stock = stockInWords(tuning);
  const says = [
    `${dead_pct} % of its rows are dead (${dead_tuples} of ${dead_tuples + live_tuples})`,
    ...(holder === undefined ? [] : [`held up by ${holderInWords(holder)}`]),
    ...(stock === '' ? [] : [stock]),
  ].join('; ');
  const remedy = [...(holder === undefined ? [] : [holderRemedy(holder)]), stockRemedy(tuning)].join(' ').trim();
  return { says, remedy: remedy === '' ? undefined : remedy };
}

function ageFacts(age: number): Fact[] {
  if (age < OLD_TRANSACTIONS) return [];
  const says = `the oldest row is ${age} transactions old: at 2,000,000,000 the server stops taking writes`;
  const remedy =
    'As the owner or a superuser, in the core database: VACUUM (FREEZE, VERBOSE); and end what holds it up.';
  return [{ kind: 'fact', status: 'warning', says, remedy }];
}

function deadPercentage({ dead_tuples, live_tuples }: Pick<TableStatistics, 'dead_tuples' | 'live_tuples'>): number {
  return percentageOf(dead_tuples, dead_tuples + live_tuples);
}

function numberIfOne(text: string): string | number {
  return text !== '' && Number.isFinite(Number(text)) ? Number(text) : text;
}

// Checks dead rows per table, what blocks their removal, and the autovacuum settings.
// Small tables are listed but do not count.

import { counted, percentageOf, rounded, formatUtc } from '@holdfast/kit/format';
import { asciiLine, shortened } from '@holdfast/kit/text';
import type { SettingOrigin, TableStatistics, VacuumHolder } from '../../core/database/port.ts';
import { formatOrigin, takenBack } from '../../core/database/server-settings.ts';
import {
  type DatabaseTuning,
  settingsAtStock,
  TUNED,
  TUNING_VARIABLES,
  type TuningDifference,
  tuningDifferences,
  wantedSettings,
} from '../../settings/tuning.ts';
import { type Fact, type Finding, limitsOf } from '../evaluate.ts';
import { AS_SUPERUSER, healthModule } from '../module.ts';

/**
 * A younger transaction is ordinary work, unless a vacuum ran after it began and had to leave rows.
 */
const LONG_SECONDS = 60;
const MAX_NAME = 60;

/** The oldest holder that blocks the cleanup of this table; undefined if there is none. */
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
export function formatHolder({ kind, name, user, application, since }: VacuumHolder): string {
  const who = [user, application].flatMap((each) => (each ? shortened(asciiLine(each), MAX_NAME) : [])).join(', ');
  const which = kind === 'transaction' ? `transaction of pid ${name}` : `${kind} ${name}`;
  return `the ${which}${who === '' ? '' : ` (${who})`}${since === null ? '' : `, open since ${formatUtc(since)}`}`;
}

export function holderRemedy({ kind, name }: VacuumHolder): string {
  if (kind === 'transaction') return `If that transaction is not needed, end it: SELECT pg_terminate_backend(${name});`;
  if (kind === 'prepared transaction')
    return `If that transaction will never be finished, end it: ROLLBACK PREPARED ${name};`;
  return `If nothing uses that slot any more, drop it: SELECT pg_drop_replication_slot(${name});`;
}

/** A server setting that differs from the requested one. */
export interface SettingDiffers extends TuningDifference {
  /** Where it comes from; undefined if the server does not know the setting. */
  origin?: SettingOrigin | undefined;
}

export function settingFacts(differ: readonly SettingDiffers[]): Fact[] {
  return differ.map(({ name, is, wanted, origin }) => ({
    kind: 'fact',
    status: 'warning',
    says: `${name} is ${is}, not ${wanted} (${formatOrigin(origin)})`,
    remedy: takenBack(name, origin, { wanted, variable: TUNING_VARIABLES[name] }),
  }));
}

/** The options of one table that ALTER TABLE ... SET has set. */
export type OwnSettings = Pick<TableStatistics, 'schema' | 'table' | 'options'>;

/** Large tables whose own options turn autovacuum off, delay it or slow it down. */
export function tableFacts(tables: readonly OwnSettings[], tuning: DatabaseTuning): Fact[] {
  return tables.flatMap((table) => {
    const worse = Object.entries(table.options).filter(([name, value]) => isWorse(name, value, tuning));
    if (worse.length === 0) return [];
    const name = `${quoted(table.schema)}.${quoted(table.table)}`;
    const says = `${table.schema}.${table.table} overrides autovacuum settings: ${worse.map(([option, value]) => `${option}=${value}`).join(', ')}`;
    const remedy = `ALTER TABLE ${name} RESET (${worse.map(([option]) => option).join(', ')});`;
    return [{ kind: 'fact', status: 'warning', says, remedy }];
  });
}

function isWorse(name: string, value: string, { scaleFactor, costLimit }: DatabaseTuning): boolean {
  if (name === 'autovacuum_enabled') return /^(off|false|no|0|f|n)$/i.test(value);
  if (name === 'autovacuum_vacuum_scale_factor') return Number(value) > scaleFactor;
  return name === 'autovacuum_vacuum_cost_limit' && Number(value) < costLimit && Number(value) > 0;
}

function quoted(name: string): string {
  return /^[a-z_][a-z0-9_]*$/.test(name) ? name : `"${name.replaceAll('"', '""')}"`;
}

/** Names the settings that use PostgreSQL's stock values; empty if none does. */
export function formatStock(tuning: DatabaseTuning): string {
  const names = settingsAtStock(tuning);
  if (names.length === 0) return '';
  const waits = names.includes('autovacuum_vacuum_scale_factor') ? ': autovacuum waits for 20 % dead rows' : '';
  if (names.length === 3) return `stock settings${waits}`;
  const wanted = wantedSettings(tuning);
  return `stock value of ${names.map((name) => `${TUNING_VARIABLES[name]} (${wanted[name]})`).join(' and ')}${waits}`;
}

/** The remedy for a table with too many dead rows under stock values. */
export function stockRemedy(tuning: DatabaseTuning): string {
  const names = settingsAtStock(tuning);
  if (names.length === 0) return '';
  const tuned = wantedSettings(TUNED);
  const better = names.map((name) => `${TUNING_VARIABLES[name]}=${tuned[name]}`);
  const reason = names.includes('autovacuum_vacuum_scale_factor')
    ? 'allow that many dead rows'
    : 'make autovacuum slower';
  return `Stock settings ${reason}: set ${better.join(' ')} (the tuned defaults) and restart the stack.`;
}

interface Table extends Omit<TableStatistics, 'options'> {
  /** Percentage of all rows, 0 to 100. */
  dead_pct: number;
}

interface AutovacuumData {
  table_count: number;
  dead_tuples: number;
  live_tuples: number;
  tables: Table[];
  /** Large tables with options of their own. */
  own_settings: OwnSettings[];
  settings: Record<string, string | number>;
  settings_wanted: Record<string, string | number>;
  settings_differ: SettingDiffers[];
  /** True if all three variables request PostgreSQL's stock values. */
  settings_stock: boolean;
  tuning: DatabaseTuning;
  /** Oldest first; empty if no table has many dead rows. */
  holders: VacuumHolder[];
  transaction_age: number;
}

const NO_ORIGINS: Readonly<Record<string, SettingOrigin>> = {};

/**
 * Far above what autovacuum should allow, and far below the two billion at which the server stops.
 */
const OLD_TRANSACTIONS = 1_000_000_000;

export const autovacuum = healthModule<AutovacuumData>({
  name: 'autovacuum',

  remedy: [
    'After a large deletion, wait ten minutes. Autovacuum starts by itself.',
    "Look for an old transaction that blocks it: SELECT pid, usename, xact_start FROM pg_stat_activity WHERE xact_start < now() - interval '1 hour'; and end a forgotten one with SELECT pg_terminate_backend(PID);",
    'Vacuum the table that the alert names; clients are not affected: POST /api/ops/database/vacuum with {"mode": "standard", "tables": ["SCHEMA.TABLE"]} (docs/database.md).',
    AS_SUPERUSER,
  ],

  async read({ coreDatabase, wanted: { tuning } }, { AUTOVACUUM_MIN_DEAD_TUPLES: least, modules }) {
    const { tables, settings, transaction_age } = await coreDatabase.vacuumStatistics();
    const sum = (of: (table: TableStatistics) => number): number =>
      tables.reduce((total, table) => total + of(table), 0);
    const differ = tuningDifferences(settings, tuning);
    const from = Number(modules['autovacuum']?.['warning']);
    // Requested only when needed: they take longer than everything else.
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
      tables: tables.map(viewOf),
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
          format: (limit) => `${limit} %`,
        })),
      ...settingFacts(data.settings_differ),
      ...tableFacts(data.own_settings, tuning),
      ...ageFacts(data.transaction_age),
    ];
  },

  well({ table_count, dead_tuples, tuning }) {
    const stock = formatStock(tuning);
    const dead = `${counted(dead_tuples, 'dead row')} in ${counted(table_count, 'table')}`;
    return `${dead}. No table needs attention${stock === '' ? '' : ` (${stock})`}.`;
  },

  trend: {
    name: 'dead rows in the worst table',
    unit: 'percent',
    limits: limitsOf,
    figureOf: ({ tables }, { AUTOVACUUM_MIN_DEAD_TUPLES: least }) =>
      Math.max(0, ...tables.filter(({ dead_tuples }) => dead_tuples >= least).map(({ dead_pct }) => dead_pct)),
  },
});

function viewOf(table: TableStatistics): Table {
  const { schema, table: name, dead_tuples, live_tuples, last_autovacuum, last_vacuum } = table;
  const dead_pct = rounded(deadPercentage(table), 2);
  return { schema, table: name, dead_tuples, live_tuples, last_autovacuum, last_vacuum, dead_pct };
}

function explained(table: Table, { holders, tuning }: AutovacuumData): { says: string; remedy: string | undefined } {
  const { dead_pct, dead_tuples, live_tuples } = table;
  const holder = holderOf(table, holders);
  const stock = formatStock(tuning);
  const says = [
    `${dead_pct} % of its rows are dead (${dead_tuples} of ${dead_tuples + live_tuples})`,
    ...(holder === undefined ? [] : [`cleanup blocked by ${formatHolder(holder)}`]),
    ...(stock === '' ? [] : [stock]),
  ].join('; ');
  const remedy = [...(holder === undefined ? [] : [holderRemedy(holder)]), stockRemedy(tuning)].join(' ').trim();
  return { says, remedy: remedy === '' ? undefined : remedy };
}

function ageFacts(age: number): Fact[] {
  if (age < OLD_TRANSACTIONS) return [];
  const says = `the oldest row is ${age} transactions old; at 2,000,000,000 the server stops accepting writes`;
  const remedy =
    'As the owner or a superuser, run in the core database: VACUUM (FREEZE, VERBOSE); and end what blocks it.';
  return [{ kind: 'fact', status: 'warning', says, remedy }];
}

function deadPercentage({ dead_tuples, live_tuples }: Pick<TableStatistics, 'dead_tuples' | 'live_tuples'>): number {
  return percentageOf(dead_tuples, dead_tuples + live_tuples);
}

function numberIfOne(text: string): string | number {
  return text !== '' && Number.isFinite(Number(text)) ? Number(text) : text;
}

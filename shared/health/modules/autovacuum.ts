// Dead rows per table with what holds up their removal, and whether autovacuum runs with the settings that were asked for.
// Small tables are listed and do not count.

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

/** Whatever is younger is ordinary work, unless a vacuum came after it and had to leave rows. */
const LONG_SECONDS = 60;
const MAX_NAME = 60;

/**
 * What holds up the cleaning of a table with many dead rows, and the command that ends it.
 * The oldest that holds up this table; undefined when nothing does.
 */
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
  if (kind === 'transaction') return `If nobody needs that transaction, end it: SELECT pg_terminate_backend(${name});`;
  if (kind === 'prepared transaction') return `If nobody will finish that transaction: ROLLBACK PREPARED ${name};`;
  return `If nothing uses that slot any more: SELECT pg_drop_replication_slot(${name});`;
}

/**
 * What differs from the settings that autovacuum was asked to have, for the server and for single tables, each with the
 * command that takes it back; and whether it was asked to have PostgreSQL's own.
 */
export interface SettingDiffers extends TuningDifference {
  /** Where it comes from; undefined when the server does not know the setting. */
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

/** Of a table that is large enough to count: autovacuum is off for it, or waits longer or works slower than was asked for. */
/** What ALTER TABLE ... SET has set. */
export type OwnSettings = Pick<TableStatistics, 'schema' | 'table' | 'options'>;

export function tableFacts(tables: readonly OwnSettings[], tuning: DatabaseTuning): Fact[] {
  return tables.flatMap((table) => {
    const worse = Object.entries(table.options).filter(([name, value]) => isWorse(name, value, tuning));
    if (worse.length === 0) return [];
    const name = `${quoted(table.schema)}.${quoted(table.table)}`;
    const says = `${table.schema}.${table.table} has settings of its own: ${worse.map(([option, value]) => `${option}=${value}`).join(', ')}`;
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

/** What to say where PostgreSQL's own values were asked for; empty where none was. */
export function formatStock(tuning: DatabaseTuning): string {
  const names = settingsAtStock(tuning);
  if (names.length === 0) return '';
  const waits = names.includes('autovacuum_vacuum_scale_factor') ? ': autovacuum waits for 20 % dead rows' : '';
  if (names.length === 3) return `stock settings${waits}`;
  const wanted = wantedSettings(tuning);
  return `stock value of ${names.map((name) => `${TUNING_VARIABLES[name]} (${wanted[name]})`).join(' and ')}${waits}`;
}

/** For a table with too many dead rows. */
export function stockRemedy(tuning: DatabaseTuning): string {
  const names = settingsAtStock(tuning);
  if (names.length === 0) return '';
  const tuned = wantedSettings(TUNED);
  const better = names.map((name) => `${TUNING_VARIABLES[name]}=${tuned[name]}`);
  const reason = names.includes('autovacuum_vacuum_scale_factor') ? 'let it come to that' : 'make autovacuum slower';
  return `Stock settings ${reason}: set ${better.join(' ')} (the tuned defaults) and restart the stack.`;
}

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
    ...(holder === undefined ? [] : [`held up by ${formatHolder(holder)}`]),
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

// What differs from the settings that autovacuum was asked to have, for the server and for single tables, each with the
// command that takes it back; and whether it was asked to have PostgreSQL's own.

import {
  type DatabaseTuning,
  settingsAtStock,
  TUNED,
  TUNING_VARIABLES,
  type TuningDifference,
  wantedSettings,
} from '../domain/database-tuning.ts';
import type { Fact } from '../domain/evaluate.ts';
import { originInWords, type SettingOrigin, takenBack } from '../domain/setting-origin.ts';
import type { TableStatistics } from '../ports/core-database.ts';

export interface SettingDiffers extends TuningDifference {
  /** Where it comes from; undefined when the server does not know the setting. */
  origin?: SettingOrigin | undefined;
}

export function settingFacts(differ: readonly SettingDiffers[]): Fact[] {
  return differ.map(({ name, is, wanted, origin }) => ({
    kind: 'fact',
    status: 'warning',
    says: `${name} is ${is}, not ${wanted} (${originInWords(origin)})`,
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
export function stockInWords(tuning: DatabaseTuning): string {
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

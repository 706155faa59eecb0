// Defines the specification's three autovacuum settings and compares the server's values with the
// requested ones.

import { parseDatabaseSize } from '@holdfast/kit/format';

export interface DatabaseTuning {
  /** Fraction of dead rows that starts an autovacuum. */
  scaleFactor: number;
  costLimit: number;
  /** With its unit, such as 256MB. */
  maintenanceWorkMem: string;
}

/** The server settings that this tuning requests, by their PostgreSQL names. */
export function wantedSettings(tuning: DatabaseTuning): Record<string, string | number> {
  return {
    autovacuum: 'on',
    track_counts: 'on',
    autovacuum_vacuum_scale_factor: tuning.scaleFactor,
    autovacuum_vacuum_cost_limit: tuning.costLimit,
    maintenance_work_mem: tuning.maintenanceWorkMem,
    // Any other value replaces maintenance_work_mem in autovacuum's workers.
    autovacuum_work_mem: -1,
  };
}

/** The variable of Holdfast that becomes a setting of the server. */
export const TUNING_VARIABLES: Readonly<Record<string, string>> = {
  autovacuum_vacuum_scale_factor: 'DB_AUTOVACUUM_SCALE_FACTOR',
  autovacuum_vacuum_cost_limit: 'DB_AUTOVACUUM_COST_LIMIT',
  maintenance_work_mem: 'DB_MAINTENANCE_WORK_MEM',
};

/** PostgreSQL's own values, and those that retention needs. */
export const STOCK: DatabaseTuning = { scaleFactor: 0.2, costLimit: 200, maintenanceWorkMem: '64MB' };
export const TUNED: DatabaseTuning = { scaleFactor: 0.05, costLimit: 1000, maintenanceWorkMem: '256MB' };

/** True when all three settings have PostgreSQL's own values. */
export function isStock(tuning: DatabaseTuning): boolean {
  return settingsAtStock(tuning).length === Object.keys(TUNING_VARIABLES).length;
}

/** The names of those of the three settings that are requested with PostgreSQL's own value. */
export function settingsAtStock(tuning: DatabaseTuning): string[] {
  const [requested, stock] = [wantedSettings(tuning), wantedSettings(STOCK)];
  return Object.keys(TUNING_VARIABLES).filter((name) => same(name, String(requested[name]), stock[name] ?? ''));
}

export interface TuningDifference {
  name: string;
  is: string;
  wanted: string;
}

/** Each setting that differs from the requested value; `inForce` as `SHOW` prints them. */
export function tuningDifferences(
  inForce: Readonly<Record<string, string>>,
  tuning: DatabaseTuning,
): TuningDifference[] {
  return Object.entries(wantedSettings(tuning))
    .filter(([name, wanted]) => !same(name, inForce[name] ?? '', wanted))
    .map(([name, wanted]) => ({ name, is: inForce[name] ?? 'unknown', wanted: String(wanted) }));
}

function same(name: string, inForce: string, wanted: string | number): boolean {
  if (typeof wanted === 'number') return inForce !== '' && Number(inForce) === wanted;
  return name === 'maintenance_work_mem' ? kilobytes(inForce) === kilobytes(wanted) : inForce === wanted;
}

/** Whole kilobytes, the unit that the server stores. */
function kilobytes(text: string): number {
  return Math.floor((parseDatabaseSize(text) ?? -1) / 1024);
}

// The specification's three autovacuum settings, and what differs between those in force and those asked for.

import { parseDatabaseSize } from './database-size.ts';

export interface DatabaseTuning {
  /** Fraction of dead rows that starts an autovacuum. */
  scaleFactor: number;
  costLimit: number;
  /** With its unit, such as 256MB. */
  maintenanceWorkMem: string;
}

/** The settings of the server that this tuning asks for, by their names there. */
export function wantedSettings(tuning: DatabaseTuning): Record<string, string | number> {
  return {
    autovacuum: 'on',
    track_counts: 'on',
    autovacuum_vacuum_scale_factor: tuning.scaleFactor,
    autovacuum_vacuum_cost_limit: tuning.costLimit,
    maintenance_work_mem: tuning.maintenanceWorkMem,
    // Any other value takes the place of maintenance_work_mem in autovacuum's workers.
    autovacuum_work_mem: -1,
  };
}

/** One sentence for each setting that is not as wanted; `inForce` as `SHOW` prints them. */
export function tuningDifferences(inForce: Readonly<Record<string, string>>, tuning: DatabaseTuning): string[] {
  return Object.entries(wantedSettings(tuning))
    .filter(([name, wanted]) => !same(name, inForce[name] ?? '', wanted))
    .map(
      ([name, wanted]) =>
        `${name} is ${inForce[name] ?? 'unknown'}, not ${wanted}: something overrides the start flags (ALTER SYSTEM, ALTER DATABASE or ALTER ROLE ... SET); remove it with RESET`,
    );
}

function same(name: string, inForce: string, wanted: string | number): boolean {
  if (typeof wanted === 'number') return inForce !== '' && Number(inForce) === wanted;
  return name === 'maintenance_work_mem' ? kilobytes(inForce) === kilobytes(wanted) : inForce === wanted;
}

/** Whole kilobytes, the unit that the server keeps. */
function kilobytes(text: string): number {
  return Math.floor((parseDatabaseSize(text) ?? -1) / 1024);
}

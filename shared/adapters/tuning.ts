// Reads the autovacuum settings back from the running server and compares them with what was asked for.

import { parseDatabaseSize } from '../domain/database-size.ts';
import type { DatabaseTuning } from '../domain/database-tuning.ts';
import type { Sql } from './postgres.ts';

export interface TuningInForce {
  /** The three values as SHOW prints them. */
  inForce: string;
  /** What differs and how to mend it; undefined when all are as wanted. */
  mismatch: string | undefined;
}

/** Asks the server as any role that may connect; changes nothing. */
export async function readTuning(sql: Sql, wanted: DatabaseTuning): Promise<TuningInForce> {
  const scaleFactor = await show(sql, 'autovacuum_vacuum_scale_factor');
  const costLimit = await show(sql, 'autovacuum_vacuum_cost_limit');
  const memory = await show(sql, 'maintenance_work_mem');
  const wrong = [
    Number(scaleFactor) === wanted.scaleFactor
      ? ''
      : `autovacuum_vacuum_scale_factor is ${scaleFactor}, not ${wanted.scaleFactor}`,
    Number(costLimit) === wanted.costLimit
      ? ''
      : `autovacuum_vacuum_cost_limit is ${costLimit}, not ${wanted.costLimit}`,
    sameSize(memory, wanted.maintenanceWorkMem)
      ? ''
      : `maintenance_work_mem is ${memory}, not ${wanted.maintenanceWorkMem}`,
  ].filter((part) => part !== '');
  const mismatch =
    wrong.length === 0
      ? undefined
      : `${wrong.join('; ')}: something overrides the start flags (ALTER ROLE or ALTER DATABASE ... SET). Remove it with RESET.`;
  return { inForce: `${scaleFactor} / ${costLimit} / ${memory}`, mismatch };
}

async function show(sql: Sql, name: string): Promise<string> {
  const [row] = await sql<Record<string, string>[]>`SELECT current_setting(${name}) AS value`;
  return row?.['value'] ?? '';
}

/** Equal in whole kilobytes, the unit that the server keeps. */
function sameSize(shown: string, wanted: string): boolean {
  const kilobytes = (text: string): number => Math.floor((parseDatabaseSize(text) ?? -1) / 1024);
  return kilobytes(shown) === kilobytes(wanted);
}

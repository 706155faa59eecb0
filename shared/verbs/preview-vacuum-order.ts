// What one order of a vacuum would do before it is given: of just these tables what it would give back, for how long it would
// lock clients out, and whether there is room for it.

import { inOrder, lockSeconds, nameOf, type RoomVerdict, type WriteRate } from '../domain/vacuum.ts';
import type { VacuumMode } from '../ports/vacuum-facts.ts';
import type { PreviewVacuumDeps } from './preview-vacuum.ts';
import { chosenTables } from './start-vacuum.ts';
import { vacuumRate } from './vacuum-rate.ts';
import { databasePlace, roomForAll } from './vacuum-room.ts';

export interface VacuumOrderPreview {
  /** As people call them, in the order in which they come. */
  tables: string[];
  bytes: number;
  /** What FULL would give back, an estimate; a table that was never analysed counts as nothing. */
  reclaimable_bytes: number;
  dead_tuples: number;
  /** All of them together, and the one that takes longest. */
  lock_seconds: number;
  longest_lock: { table: string; seconds: number };
  rate_from: WriteRate['from'];
  /** Undefined without tables. */
  room: RoomVerdict | undefined;
}

/** Rejects with `invalid` for names that cannot be vacuumed, and with `unavailable` when the database does not answer. */
export async function previewVacuumOrder(
  deps: Pick<PreviewVacuumDeps, 'vacuumFacts' | 'monitored'> & { opsJobs: Pick<PreviewVacuumDeps['opsJobs'], 'list'> },
  { mode, names }: { mode: VacuumMode; names: readonly string[] | undefined },
): Promise<VacuumOrderPreview> {
  const [known, place, rate] = await Promise.all([
    deps.vacuumFacts.tables(),
    databasePlace(deps),
    vacuumRate(deps.opsJobs),
  ]);
  const tables = inOrder(chosenTables(known, names));
  const locks = tables.map((table) => ({ table: nameOf(table), seconds: lockSeconds(mode, table, rate) }));
  const [longest = { table: '', seconds: 0 }] = locks.toSorted((a, b) => b.seconds - a.seconds);
  const sum = (of: (table: (typeof tables)[number]) => number): number =>
    tables.reduce((total, table) => total + of(table), 0);
  return {
    tables: tables.map(nameOf),
    bytes: sum(({ bytes }) => bytes),
    reclaimable_bytes: sum(({ reclaimable_bytes }) => reclaimable_bytes ?? 0),
    dead_tuples: sum(({ dead_tuples }) => dead_tuples),
    lock_seconds: locks.reduce((total, { seconds }) => total + seconds, 0),
    longest_lock: longest,
    rate_from: rate.from,
    room: roomForAll(mode, tables, place),
  };
}

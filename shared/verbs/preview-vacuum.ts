// What a vacuum would find: each table with what FULL would give back and how long it would lock clients out, and whether there is
// room for FULL of all of them.

import { lockSeconds, type WriteRate } from '../domain/vacuum.ts';
import type { OpsJobs } from '../ports/ops-jobs.ts';
import type { VacuumFacts, VacuumTable } from '../ports/vacuum-facts.ts';
import { openVacuumJob } from './vacuum-jobs.ts';
import { vacuumRate } from './vacuum-rate.ts';
import { databasePlace, roomForAll, type RoomDeps } from './vacuum-room.ts';

export interface PreviewVacuumDeps extends RoomDeps {
  vacuumFacts: Pick<VacuumFacts, 'tables' | 'server'>;
  opsJobs: Pick<OpsJobs, 'open' | 'list'>;
}

interface Total {
  bytes: number;
  reclaimable_bytes: number;
  dead_tuples: number;
  live_tuples: number;
  lock_seconds: number;
}

type PreviewedTable = Omit<VacuumTable, 'elsewhere'> & {
  /** Of FULL; standard locks nobody out. */
  lock_seconds: number;
};

export interface VacuumPreview {
  /** The largest first. */
  tables: PreviewedTable[];
  /** Of those that may be vacuumed. */
  total: Total;
  rate_from: WriteRate['from'];
  bytes_per_second: number;
  free_bytes: number | null;
  needed_bytes: number;
  mount: string | null;
  /** Null: not known; then the reason says why. */
  enough_disk: boolean | null;
  reason: string | null;
  running: string | null;
}

export async function previewVacuum(deps: PreviewVacuumDeps): Promise<VacuumPreview> {
  const [tables, place, rate, job] = await Promise.all([
    deps.vacuumFacts.tables(),
    databasePlace(deps),
    vacuumRate(deps.opsJobs),
    openVacuumJob(deps.opsJobs),
  ]);
  const shown = tables.map((table) => shownOf(table, rate));
  const room = roomForAll(
    'full',
    tables.filter(({ allowed }) => allowed),
    place,
  );
  return {
    tables: shown,
    total: totalOf(shown.filter(({ allowed }) => allowed)),
    rate_from: rate.from,
    bytes_per_second: Math.round(rate.bytesPerSecond),
    free_bytes: room?.figures.free_bytes ?? null,
    needed_bytes: room?.figures.needed_bytes ?? 0,
    mount: room?.figures.mount ?? null,
    enough_disk: room === undefined ? true : room.isEnough,
    reason: room === undefined || room.isEnough === true ? null : room.figures.reason,
    running: job?.id ?? null,
  };
}

function shownOf(table: VacuumTable, rate: WriteRate): PreviewedTable {
  const { schema, table: name, bytes, reclaimable_bytes, dead_tuples, live_tuples, allowed } = table;
  const lock_seconds = lockSeconds('full', table, rate);
  return { schema, table: name, bytes, reclaimable_bytes, dead_tuples, live_tuples, lock_seconds, allowed };
}

function totalOf(tables: readonly PreviewedTable[]): Total {
  const sum = (of: (table: PreviewedTable) => number): number => tables.reduce((total, each) => total + of(each), 0);
  return {
    bytes: sum(({ bytes }) => bytes),
    reclaimable_bytes: sum(({ reclaimable_bytes }) => reclaimable_bytes ?? 0),
    dead_tuples: sum(({ dead_tuples }) => dead_tuples),
    live_tuples: sum(({ live_tuples }) => live_tuples),
    lock_seconds: sum(({ lock_seconds }) => lock_seconds),
  };
}

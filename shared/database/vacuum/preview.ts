// What a vacuum would find: each table with what FULL would give back and how long it would lock clients out, and whether there is
// room for FULL of all of them.

import { AppError, type FieldError, messageOf } from '@holdfast/kit/app-error';
import { nearestName } from '@holdfast/kit/text';
import type { Disks } from '../../host/port.ts';
import type { OpsJobs } from '../../jobs/port.ts';
import type { VacuumFacts, VacuumMode, VacuumTable } from '../port.ts';
import { openVacuumJob, readResult, VACUUM_JOB } from './jobs.ts';
import {
  type DatabasePlace,
  inOrder,
  lockSeconds,
  mostDemanding,
  nameOf,
  rateOf,
  roomFor,
  type RoomVerdict,
  type WriteRate,
} from './rules.ts';

export interface RoomDeps {
  vacuumFacts: Pick<VacuumFacts, 'server'>;
  monitored: { disks: Disks; wanted: { databaseDirectory: string | undefined } };
}

/** Rejects only as `VacuumFacts` does. */
export async function databasePlace({ vacuumFacts, monitored }: RoomDeps): Promise<DatabasePlace> {
  const [{ max_wal_bytes: maxWalBytes }, mounts] = await Promise.all([
    vacuumFacts.server(),
    monitored.disks.use().catch(messageOf),
  ]);
  return { directory: monitored.wanted.databaseDirectory, mounts, maxWalBytes };
}

/** One table after the other: what the most demanding one needs is enough for all. Undefined without tables. */
export function roomForAll(
  mode: VacuumMode,
  tables: readonly VacuumTable[],
  place: DatabasePlace,
): RoomVerdict | undefined {
  const most = mostDemanding(mode, tables);
  return most && roomFor(mode, most, place);
}

export function refuseWithoutRoom(mode: VacuumMode, tables: readonly VacuumTable[], place: DatabasePlace): void {
  const verdict = roomForAll(mode, tables, place);
  if (verdict === undefined || verdict.isEnough === true) return;
  const { figures } = verdict;
  throw new AppError('not_enough_disk', `Nothing was started. ${figures.reason}`, { figures: { ...figures } });
}

const LAST_JOBS = 20;

/** How fast FULL writes here: by what the last jobs have measured. */
export async function vacuumRate({ list }: Pick<OpsJobs, 'list'>): Promise<WriteRate> {
  const { results } = await list({ kind: VACUUM_JOB, state: 'succeeded' }, 0, LAST_JOBS);
  const full = results.flatMap((job) => readResult(job) ?? []).filter(({ mode }) => mode === 'full');
  const tables = full.flatMap((result) => result.tables);
  return rateOf(
    tables.flatMap(({ bytes_after, seconds }) =>
      bytes_after === null || seconds === null ? [] : [{ bytes_after, seconds }],
    ),
  );
}

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
  const shown = tables.map((table) => viewOf(table, rate));
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

function viewOf(table: VacuumTable, rate: WriteRate): PreviewedTable {
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

/**
 * What one order of a vacuum would do before it is given: of just these tables what it would give back, for how long it would
 * lock clients out, and whether there is room for it.
 */
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

/** Without names all that may be vacuumed; rejects names with `invalid` that are none, several, or somebody else's. */
export function chosenTables(known: readonly VacuumTable[], names: readonly string[] | undefined): VacuumTable[] {
  return names === undefined ? known.filter(({ allowed }) => allowed) : namedTables(known, names);
}

/** Each once, in no order. */
export function namedTables(known: readonly VacuumTable[], names: readonly string[]): VacuumTable[] {
  const fields: FieldError[] = [];
  const found = new Set<VacuumTable>();
  for (const [index, name] of names.entries()) {
    const table = namedTable(known, name);
    if (typeof table === 'string') fields.push({ path: `tables.${index}`, message: table });
    else found.add(table);
  }
  if (fields.length === 0) return [...found];
  const detail = fields.map(({ path, message }) => `${path}: ${message}`).join('; ');
  throw new AppError('invalid', detail, { fields });
}

/** A text: what is wrong with the name. */
export function namedTable(known: readonly VacuumTable[], name: string): VacuumTable | string {
  const qualified = ({ schema, table }: VacuumTable): string => `${schema}.${table}`;
  const exact = known.filter((each) => qualified(each) === name);
  const found = exact.length > 0 ? exact : known.filter(({ table }) => table === name);
  const [first, ...others] = found;
  if (first === undefined) {
    const nearest = nearestName(
      name,
      known.flatMap((each) => [each.table, qualified(each)]),
    );
    return `there is no table ${JSON.stringify(name)}${nearest === undefined ? '' : `; did you mean ${nearest}?`}`;
  }
  if (others.length > 0)
    return `${JSON.stringify(name)} is several tables; name the one that is meant: ${found.map(qualified).join(' or ')}`;
  return first.allowed
    ? first
    : `${nameOf(first)} belongs to somebody else: the owner of the database may not vacuum it`;
}

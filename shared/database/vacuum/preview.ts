// Previews a vacuum: for each table the space that FULL would free and its lock time, and the disk
// space needed for all.

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

/** Rejects only like `VacuumFacts`. */
export async function databasePlace({ vacuumFacts, monitored }: RoomDeps): Promise<DatabasePlace> {
  const [{ max_wal_bytes: maxWalBytes }, mounts] = await Promise.all([
    vacuumFacts.server(),
    monitored.disks.use().catch(messageOf),
  ]);
  return { directory: monitored.wanted.databaseDirectory, mounts, maxWalBytes };
}

/**
 * Tables run one after the other, so the largest need is enough for all. Undefined without tables.
 */
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

/** The write rate of FULL here, measured by the last jobs. */
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
  /** Of FULL; standard blocks no one. */
  lock_seconds: number;
};

export interface VacuumPreview {
  /** Largest first. */
  tables: PreviewedTable[];
  /** Totals of the tables that may be vacuumed. */
  total: Total;
  rate_from: WriteRate['from'];
  bytes_per_second: number;
  free_bytes: number | null;
  needed_bytes: number;
  mount: string | null;
  /** Null if unknown; then `reason` says why. */
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
 * The preview of one vacuum of selected tables: the space it would free, its lock time, and the
 * disk space needed.
 */
export interface VacuumOrderPreview {
  /** Display names, in the order of the vacuum. */
  tables: string[];
  bytes: number;
  /** Estimate of the space that FULL would free; a table that was never analyzed counts as 0. */
  reclaimable_bytes: number;
  dead_tuples: number;
  /** The total, and the table that takes longest. */
  lock_seconds: number;
  longest_lock: { table: string; seconds: number };
  rate_from: WriteRate['from'];
  /** Undefined without tables. */
  room: RoomVerdict | undefined;
}

/**
 * Rejects with `invalid` for names that can't be vacuumed, and with `unavailable` if the database
 * is unavailable.
 */
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

/**
 * All allowed tables if no names are given; rejects unknown, ambiguous and foreign names with
 * `invalid`.
 */
export function chosenTables(known: readonly VacuumTable[], names: readonly string[] | undefined): VacuumTable[] {
  return names === undefined ? known.filter(({ allowed }) => allowed) : namedTables(known, names);
}

/** The named tables, each once, in no particular order. */
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

/** Returns a text if the name is not valid. */
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
    return `no table is named ${JSON.stringify(name)}${nearest === undefined ? '' : `; did you mean ${nearest}?`}`;
  }
  if (others.length > 0)
    return `${JSON.stringify(name)} matches several tables; name one of them: ${found.map(qualified).join(' or ')}`;
  return first.allowed ? first : `${nameOf(first)} has another owner: the owner of the database may not vacuum it`;
}

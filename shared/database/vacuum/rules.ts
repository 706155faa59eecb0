// Defines the rules of a vacuum: the disk space needed, the order of tables, lock and wait times,
// and notices to clients.

import { formatBytes, formatDuration } from '@holdfast/kit/format';
import { MINUTE_MS } from '@holdfast/kit/time';

export type Mode = 'full' | 'standard';

interface Named {
  schema: string;
  table: string;
}

/** The display name of a table: those of the core are in `public`. */
export function nameOf({ schema, table }: Named): string {
  return schema === 'public' ? table : `${schema}.${table}`;
}

const SPARE_BYTES = 1024 ** 3;

/**
 * FULL writes a copy of the table before it deletes the old files; standard works inside the files.
 * Both write WAL, at most as much as the table has bytes, of which a checkpoint leaves about twice
 * max_wal_size.
 */
export function roomNeeded(mode: Mode, bytes: number, maxWalBytes: number): { copy: number; wal: number } {
  return { copy: mode === 'full' ? bytes : 0, wal: Math.min(bytes, 2 * maxWalBytes) + SPARE_BYTES };
}

interface Mount {
  mount: string;
  paths: readonly string[];
  free_bytes: number;
}

/** The location of the database, as far as it is known. */
export interface DatabasePlace {
  /** CORE_DATABASE_DIR. */
  directory: string | undefined;
  /** A text: why the disks can't be read. */
  mounts: readonly Mount[] | string;
  maxWalBytes: number;
}

export interface RoomFigures {
  free_bytes: number | null;
  needed_bytes: number;
  table: string;
  table_bytes: number;
  max_wal_bytes: number;
  mount: string | null;
  reason: string;
}

/** `isEnough` is null if unknown; then the reason says why, and what would help. */
export interface RoomVerdict {
  isEnough: boolean | null;
  figures: RoomFigures;
}

interface Measured extends Named {
  bytes: number;
  elsewhere: boolean;
}

/** The disk space for vacuuming this one table. */
export function roomFor(mode: Mode, table: Measured, place: DatabasePlace): RoomVerdict {
  const { copy, wal } = roomNeeded(mode, table.bytes, place.maxWalBytes);
  const found = tightest(copy, wal, mode === 'full' && table.elsewhere, place);
  const name = nameOf(table);
  const shared = { table: name, table_bytes: table.bytes, max_wal_bytes: place.maxWalBytes };
  if (typeof found === 'string') {
    const reason = `The free space for ${name} is unknown: ${found}`;
    return { isEnough: null, figures: { ...shared, free_bytes: null, needed_bytes: copy + wal, mount: null, reason } };
  }
  const { mount, free, needed, what } = found;
  const isEnough = free >= needed;
  const words = `${name} needs ${formatBytes(needed)} on ${mount} for ${what}, but ${formatBytes(free)} are free`;
  const reason = isEnough ? `${words}.` : `${words}: ${formatBytes(needed - free)} missing. Remedy: ${helps()}.`;
  return { isEnough, figures: { ...shared, free_bytes: free, needed_bytes: needed, mount, reason } };

  /** Names only remedies that would be accepted. */
  function helps(): string {
    const smaller = free > SPARE_BYTES ? ['select smaller tables'] : [];
    const standard = mode === 'full' && roomFor('standard', table, place).isEnough ? ['use standard mode'] : [];
    return ['free space there', ...smaller, ...standard].join(', or ');
  }
}

interface Demand {
  mount: string;
  free: number;
  needed: number;
  what: string;
}

/** The mount with the least space left beyond its need; a text if that is unknown. */
function tightest(copy: number, wal: number, isElsewhere: boolean, place: DatabasePlace): Demand | string {
  const { directory, mounts } = place;
  if (isElsewhere)
    return 'it is at least partly in its own tablespace. Remedy: select the other tables, or use standard mode.';
  if (directory === undefined)
    return 'CORE_DATABASE_DIR is not set. Remedy: set it to the data directory of the database as this machine sees it.';
  if (typeof mounts === 'string') return `couldn't read the disks: ${mounts}. Remedy: check GET /api/health/disk.`;
  const data = mounts.find(({ paths }) => paths.includes(directory));
  if (data === undefined)
    return `no known file system contains ${directory}. Remedy: set CORE_DATABASE_DIR to the data directory of the database.`;
  const walDirectory = `${directory.replace(/\/+$/, '')}/pg_wal`;
  const log = mounts.find(({ paths }) => paths.includes(walDirectory)) ?? data;
  const both = { mount: data.mount, free: data.free_bytes, needed: copy + wal, what: wordsOf(copy, true) };
  if (log.mount === data.mount) return both;
  const logOnly = { mount: log.mount, free: log.free_bytes, needed: wal, what: wordsOf(0, true) };
  if (copy === 0) return logOnly;
  const copyOnly = { mount: data.mount, free: data.free_bytes, needed: copy, what: wordsOf(copy, false) };
  return copyOnly.free - copyOnly.needed < logOnly.free - logOnly.needed ? copyOnly : logOnly;
}

function wordsOf(copy: number, withWal: boolean): string {
  const parts = [...(copy > 0 ? ['its copy'] : []), ...(withWal ? ['WAL', '1 GiB to spare'] : [])];
  return parts.length === 3 ? `${parts[0]}, ${parts[1]} and ${parts[2]}` : parts.join(' and ');
}

/** The table that needs the most space, or one whose need is unknown. */
export function mostDemanding<T extends Measured>(mode: Mode, tables: readonly T[]): T | undefined {
  const unknown = mode === 'full' ? tables.find(({ elsewhere }) => elsewhere) : undefined;
  return unknown ?? tables.toSorted((a, b) => b.bytes - a.bytes)[0];
}

/** Smallest first: the space that it frees is available to larger ones. */
export function inOrder<T extends Named & { bytes: number }>(tables: readonly T[]): T[] {
  return tables.toSorted((a, b) => a.bytes - b.bytes || nameOf(a).localeCompare(nameOf(b)));
}

/** The rate at which FULL writes a table with its indexes. */
export interface WriteRate {
  bytesPerSecond: number;
  from: 'runs' | 'default';
}

/**
 * Half of the slowest measured rate of the core's event table with its eleven indexes, on two cores
 * and a server disk.
 */
const DEFAULT_BYTES_PER_SECOND = 70e6;
/** A shorter duration is too imprecise, as jobs run every two seconds. */
const SHORTEST_TELLING_SECONDS = 10;

/** The rate of earlier FULL vacuums. */
export function rateOf(done: readonly { bytes_after: number; seconds: number }[]): WriteRate {
  const telling = done.filter(({ seconds }) => seconds >= SHORTEST_TELLING_SECONDS);
  const seconds = telling.reduce((sum, each) => sum + each.seconds, 0);
  const bytes = telling.reduce((sum, each) => sum + each.bytes_after, 0);
  if (seconds === 0 || bytes === 0) return { bytesPerSecond: DEFAULT_BYTES_PER_SECOND, from: 'default' };
  return { bytesPerSecond: bytes / seconds, from: 'runs' };
}

/** How long the table is locked; standard locks no one out. */
export function lockSeconds(
  mode: Mode,
  { bytes, reclaimable_bytes: reclaimable }: { bytes: number; reclaimable_bytes: number | null },
  { bytesPerSecond }: WriteRate,
): number {
  return mode === 'full' ? Math.ceil(Math.max(0, bytes - (reclaimable ?? 0)) / bytesPerSecond) : 0;
}

const MAX_PAUSE_SECONDS = 30;
/** How long to wait for lock holders without finishing a table. */
export const LOCK_PATIENCE_MS = 10 * MINUTE_MS;
/**
 * A longer hold will likely last: a statement would queue behind it, and all others behind that
 * statement.
 */
const LONG_HOLD_MS = 5_000;

/** Seconds until the next try after failed ones: 2, 4, 8, 16, 30. */
export function pauseSeconds(tries: number): number {
  return Math.min(2 ** Math.min(tries, 10), MAX_PAUSE_SECONDS);
}

/**
 * A holder that has held for so long that a lock request is useless; holders with an unknown time
 * do not count.
 */
export function longHolder<T extends { since: string | null }>(holders: readonly T[], now: Date): T | undefined {
  return holders.find(({ since }) => since !== null && now.getTime() - Date.parse(since) > LONG_HOLD_MS);
}

interface Marks {
  oid: number;
  filenode: number;
  vacuums: number;
}

/**
 * True if a vacuum ran between the marks. The count falls only when statistics are lost, which
 * proves nothing.
 */
export function isVacuumed(mode: Mode, before: Marks, after: Marks): boolean {
  return mode === 'full' ? after.filenode !== before.filenode : after.vacuums > before.vacuums;
}

/** A few dead rows are normal: rows that changed meanwhile. */
const FEW_DEAD_ROWS = 1000;

/** Dead rows that a standard vacuum had to leave; 0 if negligible. */
export function deadRowsLeft(before: number, after: number): number {
  return after >= FEW_DEAD_ROWS && after > before / 10 ? after : 0;
}

/** `stopped`: it was canceled by a person, so it is not retried. */
export type FailureKind = 'lock' | 'disk' | 'connection' | 'stopped' | 'table';

/** Classifies an error of the statement by its SQLSTATE. */
export function failureKind(sqlState: string): FailureKind {
  if (sqlState === '55P03') return 'lock';
  if (sqlState === '53100') return 'disk';
  if (sqlState === '57014') return 'stopped';
  return /^(08|57P)/.test(sqlState) ? 'connection' : 'table';
}

export function noticeBefore(seconds: number): string {
  const minutes = Math.ceil(seconds / 60);
  const about = seconds < 60 ? 'less than a minute' : `about ${formatDuration(minutes * MINUTE_MS)}`;
  return `Holdfast: maintenance starts now, for ${about}. You stay connected and see each other. The server stores what you send later and shows no history.`;
}

export const NOTICE_AFTER =
  'Holdfast: maintenance is over. Data sent meanwhile is being stored, and history is available again.';

// Rules of a vacuum: how much room it must find, in which order tables come, how long it locks clients out, how long it waits for
// others, and what clients are told.

import { formatBytes, formatDuration } from '@holdfast/kit/format';
import { MINUTE_MS } from '@holdfast/kit/time';

export type Mode = 'full' | 'standard';

interface Named {
  schema: string;
  table: string;
}

/** As people call it: those of the core are in `public`. */
export function nameOf({ schema, table }: Named): string {
  return schema === 'public' ? table : `${schema}.${table}`;
}

const SPARE_BYTES = 1024 ** 3;

/**
 * FULL writes the table anew before the old files go, so a copy of it. Standard needs none: it works inside the files. Both write
 * WAL, at most as much as the table has bytes, of which a checkpoint leaves about twice max_wal_size.
 */
export function roomNeeded(mode: Mode, bytes: number, maxWalBytes: number): { copy: number; wal: number } {
  return { copy: mode === 'full' ? bytes : 0, wal: Math.min(bytes, 2 * maxWalBytes) + SPARE_BYTES };
}

interface Mount {
  mount: string;
  paths: readonly string[];
  free_bytes: number;
}

/** Where the database lies, as far as it is known. */
export interface DatabasePlace {
  /** CORE_DATABASE_DIR. */
  directory: string | undefined;
  /** A text: why the disks cannot be looked at. */
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

/** `isEnough` is null when nobody knows; then the reason says why, and what would help. */
export interface RoomVerdict {
  isEnough: boolean | null;
  figures: RoomFigures;
}

interface Measured extends Named {
  bytes: number;
  elsewhere: boolean;
}

/** For vacuuming this one table. */
export function roomFor(mode: Mode, table: Measured, place: DatabasePlace): RoomVerdict {
  const { copy, wal } = roomNeeded(mode, table.bytes, place.maxWalBytes);
  const found = tightest(copy, wal, mode === 'full' && table.elsewhere, place);
  const name = nameOf(table);
  const shared = { table: name, table_bytes: table.bytes, max_wal_bytes: place.maxWalBytes };
  if (typeof found === 'string') {
    const reason = `It is not known how much room there is for ${name}: ${found}`;
    return { isEnough: null, figures: { ...shared, free_bytes: null, needed_bytes: copy + wal, mount: null, reason } };
  }
  const { mount, free, needed, what } = found;
  const isEnough = free >= needed;
  const words = `${name} needs ${formatBytes(needed)} on ${mount} for ${what}, and ${formatBytes(free)} are free`;
  const reason = isEnough ? `${words}.` : `${words}: ${formatBytes(needed - free)} too few. Remedy: ${helps()}.`;
  return { isEnough, figures: { ...shared, free_bytes: free, needed_bytes: needed, mount, reason } };

  /** What would be refused just as well is no remedy. */
  function helps(): string {
    const smaller = free > SPARE_BYTES ? ['name smaller tables'] : [];
    const standard = mode === 'full' && roomFor('standard', table, place).isEnough ? ['choose the mode standard'] : [];
    return ['free room there', ...smaller, ...standard].join(', or ');
  }
}

interface Demand {
  mount: string;
  free: number;
  needed: number;
  what: string;
}

/** The mount that has least left beyond what it needs; a text: why that is not known. */
function tightest(copy: number, wal: number, isElsewhere: boolean, place: DatabasePlace): Demand | string {
  const { directory, mounts } = place;
  if (isElsewhere)
    return 'it lies, in part at least, in a tablespace of its own. Remedy: name the other tables, or choose the mode standard.';
  if (directory === undefined)
    return 'CORE_DATABASE_DIR is not set. Remedy: set it to the data directory of the database as this machine sees it.';
  if (typeof mounts === 'string')
    return `the disks cannot be looked at: ${mounts}. Remedy: see what GET /api/health/disk says of them.`;
  const data = mounts.find(({ paths }) => paths.includes(directory));
  if (data === undefined)
    return `no file system is known to hold ${directory}. Remedy: let CORE_DATABASE_DIR name the data directory of the database.`;
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

/** The one that needs most room; with one whose room is not known, that one. */
export function mostDemanding<T extends Measured>(mode: Mode, tables: readonly T[]): T | undefined {
  const unknown = mode === 'full' ? tables.find(({ elsewhere }) => elsewhere) : undefined;
  return unknown ?? tables.toSorted((a, b) => b.bytes - a.bytes)[0];
}

/** The smallest first: what it gives back is room that larger ones find. */
export function inOrder<T extends Named & { bytes: number }>(tables: readonly T[]): T[] {
  return tables.toSorted((a, b) => a.bytes - b.bytes || nameOf(a).localeCompare(nameOf(b)));
}

/** What FULL has written each second of a table with its indexes, as far as it is known. */
export interface WriteRate {
  bytesPerSecond: number;
  from: 'runs' | 'default';
}

/** Half of the slowest that was measured of the core's table of events with its eleven indexes, on two cores and a disk of a server. */
const DEFAULT_BYTES_PER_SECOND = 70e6;
/** The end of a shorter one is not seen exactly enough: somebody looks every two seconds. */
const SHORTEST_TELLING_SECONDS = 10;

/** By the tables that FULL has done before. */
export function rateOf(done: readonly { bytes_after: number; seconds: number }[]): WriteRate {
  const telling = done.filter(({ seconds }) => seconds >= SHORTEST_TELLING_SECONDS);
  const seconds = telling.reduce((sum, each) => sum + each.seconds, 0);
  const bytes = telling.reduce((sum, each) => sum + each.bytes_after, 0);
  if (seconds === 0 || bytes === 0) return { bytesPerSecond: DEFAULT_BYTES_PER_SECOND, from: 'default' };
  return { bytesPerSecond: bytes / seconds, from: 'runs' };
}

/** How long nobody else can use the table; standard locks nobody out. */
export function lockSeconds(
  mode: Mode,
  { bytes, reclaimable_bytes: reclaimable }: { bytes: number; reclaimable_bytes: number | null },
  { bytesPerSecond }: WriteRate,
): number {
  return mode === 'full' ? Math.ceil(Math.max(0, bytes - (reclaimable ?? 0)) / bytesPerSecond) : 0;
}

const MAX_PAUSE_SECONDS = 30;
/** So long those who hold tables are waited for, without a table done meanwhile. */
export const LOCK_PATIENCE_MS = 10 * MINUTE_MS;
/** Whoever has held a table for longer will hold it for longer: a statement would queue behind it, and everybody behind that. */
const LONG_HOLD_MS = 5_000;

/** Seconds until the next try, after so many vain ones: 2, 4, 8, 16, 30. */
export function pauseSeconds(tries: number): number {
  return Math.min(2 ** Math.min(tries, 10), MAX_PAUSE_SECONDS);
}

/** The one that has held for so long that asking is of no use yet; of one that cannot be seen nobody knows. */
export function longHolder<T extends { since: string | null }>(holders: readonly T[], now: Date): T | undefined {
  return holders.find(({ since }) => since !== null && now.getTime() - Date.parse(since) > LONG_HOLD_MS);
}

interface Marks {
  oid: number;
  filenode: number;
  vacuums: number;
}

/** Whether a vacuum has done its work between the two. The count only falls when statistics are lost, which says nothing. */
export function isVacuumed(mode: Mode, before: Marks, after: Marks): boolean {
  return mode === 'full' ? after.filenode !== before.filenode : after.vacuums > before.vacuums;
}

/** Few enough are always there: rows that changed while it went on. */
const FEW_DEAD_ROWS = 1000;

/** Rows that a standard vacuum has found dead and had to leave; 0 when they are not worth a word. */
export function deadRowsLeft(before: number, after: number): number {
  return after >= FEW_DEAD_ROWS && after > before / 10 ? after : 0;
}

/** `stopped`: somebody has cancelled it, and wants no other one. */
export type FailureKind = 'lock' | 'disk' | 'connection' | 'stopped' | 'table';

/** What an error of the statement, by its SQLSTATE, is about. */
export function failureKind(sqlState: string): FailureKind {
  if (sqlState === '55P03') return 'lock';
  if (sqlState === '53100') return 'disk';
  if (sqlState === '57014') return 'stopped';
  return /^(08|57P)/.test(sqlState) ? 'connection' : 'table';
}

export function noticeBefore(seconds: number): string {
  const minutes = Math.ceil(seconds / 60);
  const about = seconds < 60 ? 'less than a minute' : `about ${formatDuration(minutes * MINUTE_MS)}`;
  return `Holdfast: maintenance begins, for ${about}: you stay connected and see each other; the server stores what you send later, and shows no history.`;
}

export const NOTICE_AFTER =
  'Holdfast: maintenance is over: what was sent meanwhile is being stored, and history can be read again.';

// Holds the state of one step of a vacuum job, saves it, and ends the job.

import { AppError, messageOf } from '@holdfast/kit/app-error';
import { formatBytes, counted, rounded } from '@holdfast/kit/format';
import type { Log } from '@holdfast/kit/log';
import type { Audit } from '../../audit/port.ts';
import type { CoreNotices } from '../../core/port.ts';
import { isUnavailable } from '../../devices/certificates/while-core-is-unavailable.ts';
import { jobSubject, stated } from '../../jobs/ordered-jobs.ts';
import type { HealthMemory, OpsJob, OpsJobChange, OpsJobs } from '../../jobs/port.ts';
import type { CoreVacuum, VacuumFacts } from '../port.ts';
import { conclusionOf, type ReadVacuumJob, resultOf, VACUUM_RUN, type VacuumedTable, type VacuumTurn } from './jobs.ts';
import type { RoomDeps } from './preview.ts';
import { nameOf, NOTICE_AFTER } from './rules.ts';

export interface VacuumDeps extends RoomDeps {
  vacuumFacts: VacuumFacts;
  coreVacuum: CoreVacuum;
  coreNotices: CoreNotices;
  opsJobs: Pick<OpsJobs, 'open' | 'change'>;
  audit: Pick<Audit, 'conclude'>;
  health: HealthMemory;
  log: Log;
  now: () => Date;
}

/** The state of the job after the step; `none`: nothing to do. */
export type Step = 'none' | 'waits' | 'running' | 'ended';

/** `memory` and `lines` change during the step, and are written by `save`. */
export interface VacuumWork extends ReadVacuumJob {
  deps: VacuumDeps;
  job: OpsJob;
  /** When the step began. */
  now: Date;
  lines: string[];
  /** The gap before this step; 0 if there was none. */
  aloneSeconds: number;
  /** Aborts if another process takes over the step. */
  signal: AbortSignal | undefined;
}

/** The core's database is unavailable. */
export class DatabaseUnavailable extends Error {}

export async function request<T>(answer: Promise<T>): Promise<T> {
  try {
    return await answer;
  } catch (error) {
    throw isUnavailable(error) ? new DatabaseUnavailable(error.message) : error;
  }
}

/** False if the job was ended elsewhere. */
export async function save(work: VacuumWork, change: OpsJobChange = {}): Promise<boolean> {
  const { deps, job, memory, now } = work;
  const begun: OpsJobChange = job.startedAt === null ? { startedAt: now.toISOString() } : {};
  const isOurs = await deps.opsJobs.change(job.id, {
    state: 'running',
    ...begun,
    progress: progressOf(work),
    eta: etaOf(work),
    ...change,
    memory,
    log: work.lines.map((text) => stated(deps.now(), text)),
  });
  work.lines = [];
  job.startedAt ??= now.toISOString();
  return isOurs;
}

/** By whole tables: progress within one is unknown. */
function progressOf({ memory }: VacuumWork): number {
  const sum = (tables: VacuumedTable[]): number => tables.reduce((total, { bytes_before }) => total + bytes_before, 0);
  const all = sum(memory.tables);
  return all === 0 ? 0 : rounded(sum(memory.tables.filter(({ state }) => state === 'done')) / all, 3);
}

function etaOf({ input, memory, now, deps }: VacuumWork): string | null {
  if (input.mode === 'standard') return null;
  const begun = memory.turn?.statement?.begun_at;
  const passedMs = begun === undefined ? 0 : now.getTime() - Date.parse(begun);
  const leftMs = input.tables
    .filter((_, index) => memory.tables[index]?.state === 'not_begun')
    .reduce((sum, { lock_seconds }, place) => {
      return sum + Math.max(0, lock_seconds * 1000 - (place === 0 ? passedMs : 0));
    }, 0);
  return new Date(deps.now().getTime() + leftMs).toISOString();
}

/** The first table that is not finished. */
export function currentTable({ memory, job }: VacuumWork): VacuumedTable {
  const table = memory.tables.find(({ state }) => state === 'not_begun');
  if (table === undefined) throw new Error(`every table of the job ${job.id} has ended`);
  return table;
}

/** The progress of the current table. */
export function turnOf({ memory }: VacuumWork): VacuumTurn {
  return (memory.turn ??= { tries: 0, next_try_at: null, said: null, statement: null });
}

/** Notifies all connected clients; the vacuum continues even if that fails. */
export async function tell(work: VacuumWork, text: string): Promise<boolean> {
  try {
    const clients = await work.deps.coreNotices.announce(text);
    work.lines.push(
      clients === undefined
        ? 'Clients were not notified: this core has no call for it.'
        : `${counted(clients, 'client')} notified: ${text}`,
    );
    return clients !== undefined;
  } catch (error) {
    work.lines.push(`Couldn't notify clients: ${messageOf(error)}`);
    return false;
  }
}

const ENDINGS = { failed: 'failed', interrupted: 'interrupted' } as const;

/**
 * Ends the job: every table is finished, or nothing more is started. `error`: a reason beyond
 * single tables.
 */
export async function end(work: VacuumWork, state?: keyof typeof ENDINGS, error?: string): Promise<Step> {
  const { deps, job, input, memory } = work;
  const unfinished = memory.tables.filter((table) => table.state !== 'done');
  memory.turn = null;
  if (memory.notice === 'begun') {
    memory.notice = 'over';
    if (!(await save(work))) return 'ended';
    await tell(work, NOTICE_AFTER);
  }
  const seconds = rounded((deps.now().getTime() - Date.parse(job.startedAt ?? job.createdAt)) / 1000, 1);
  const result = resultOf(input, memory, seconds);
  const { bytes_given_back: given, bytes_before: before, bytes_after: after } = result;
  work.lines.push(
    given === 0 && input.mode === 'standard'
      ? 'No space was returned to the disk: in standard mode new rows reuse the space of dead ones.'
      : `${formatBytes(given)} returned to the disk: ${formatBytes(before)} before, ${formatBytes(after)} after.`,
  );
  if (unfinished.length === 0) return endAs(work, { state: 'succeeded', progress: 1, result });
  const why = [error, wordsOf(unfinished, memory.tables.length)].filter((text) => text !== undefined).join(' ');
  return endAs(work, { state: ENDINGS[state ?? 'failed'], error: why, result });
}

/** The most tables named in the error; the result has all. */
const MAX_NAMED = 5;

function wordsOf(unfinished: readonly VacuumedTable[], all: number): string {
  const ended = unfinished.filter((table) => table.error !== null);
  const named = ended.slice(0, MAX_NAMED).map((table) => `${nameOf(table)}: ${table.error}`);
  const left = unfinished.length - ended.length;
  const more = ended.length > MAX_NAMED ? [`And ${ended.length - MAX_NAMED} more.`] : [];
  const rest = left > 0 ? [`Not started: ${counted(left, 'table')}.`] : [];
  return [`Not vacuumed: ${unfinished.length} of ${counted(all, 'table')}.`, ...named, ...more, ...rest].join(' ');
}

/** Marks health for a new measurement before the end is visible. */
async function endAs(work: VacuumWork, change: OpsJobChange & { state: OpsJob['state'] }): Promise<Step> {
  const { deps, job, input } = work;
  for (const module of ['database', 'autovacuum', 'disk']) await deps.health.forget(module);
  const { state, error = null, result } = change;
  if (error !== null) work.lines.push(error);
  const isOurs = await save(work, {
    ...change,
    phase: null,
    phasePercent: null,
    finishedAt: deps.now().toISOString(),
    eta: null,
  });
  if (!isOurs) return 'ended';
  const { detail = {}, ...conclusion } = conclusionOf({ state, result, error });
  await deps.audit.conclude(input.intent, jobSubject(job, VACUUM_RUN), { ...conclusion, detail });
  const level = state === 'succeeded' ? 'info' : 'warn';
  deps.log[level]('vacuum.job', { job: job.id, mode: input.mode, error, ...detail });
  return 'ended';
}

export function isRefusal(error: unknown, code: AppError['code']): error is AppError {
  return error instanceof AppError && error.code === code;
}

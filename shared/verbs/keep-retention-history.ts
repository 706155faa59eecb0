// Brings the runs that the core tells of, or the log of a release, into our own book, and says in the log what was new. What is in
// the book already is not written again.

import { AppError } from '../domain/app-error.ts';
import { RETAINED } from '../domain/retention.ts';
import { retentionRunsIn } from '../domain/retention-log.ts';
import type { CoreRetention } from '../ports/core-retention.ts';
import type { Log } from '../ports/log.ts';
import type { RetentionBook, RetentionRun } from '../ports/retention-book.ts';
import type { RetentionFiles } from '../ports/retention-files.ts';

export interface RetentionHistoryDeps {
  coreRetention: Pick<CoreRetention, 'runs'>;
  retentionFiles: Pick<RetentionFiles, 'log'>;
  retentionBook: Pick<RetentionBook, 'keepRuns' | 'runs'>;
  /** That of the core. */
  timeZone: string;
  log: Log;
}

export interface KeptHistory {
  /** Runs that were new or had changed. */
  kept: number;
  /** False: the core was away, or a release has no log that can be read. */
  upToDate: boolean;
}

/** Runs of the log may stand between those of the core. */
const MORE = 200;

/** Rejects when our own database is away. With `withinMs` the core is not waited for longer than that. */
export async function keepRetentionHistory(deps: RetentionHistoryDeps, withinMs?: number): Promise<KeptHistory> {
  const told = await soon(toldRuns(deps), withinMs);
  if (told === undefined) return { kept: 0, upToDate: false };
  return { kept: await keepTold(deps, told), upToDate: true };
}

/** Undefined when it cannot be known now. */
async function toldRuns(deps: RetentionHistoryDeps): Promise<RetentionRun[] | undefined> {
  try {
    const runs = await deps.coreRetention.runs();
    return runs === undefined ? await loggedRuns(deps) : runs.map((run) => ({ ...run, source: 'core' }));
  } catch (error) {
    if (error instanceof AppError) return undefined;
    throw error;
  }
}

async function loggedRuns({ retentionFiles, timeZone }: RetentionHistoryDeps): Promise<RetentionRun[] | undefined> {
  const lines = await retentionFiles.log();
  if (lines === undefined) return undefined;
  return retentionRunsIn(lines, timeZone).map((run) => ({
    ...run,
    source: 'log',
    trigger: 'schedule',
    limits: {},
    included: { cot: 0, files: 0 },
    expected: null,
    bytes: null,
  }));
}

/** Undefined when it takes longer; what it rejects with afterwards is of no use to anybody. */
async function soon<T>(work: Promise<T | undefined>, ms: number | undefined): Promise<T | undefined> {
  if (ms === undefined) return work;
  const { promise: late, resolve } = Promise.withResolvers<undefined>();
  const timer = setTimeout(() => resolve(undefined), ms);
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
    void work.catch(() => undefined);
  }
}

async function keepTold({ retentionBook, log }: RetentionHistoryDeps, told: readonly RetentionRun[]): Promise<number> {
  if (told.length === 0) return 0;
  const { results } = await retentionBook.runs(0, told.length + MORE);
  const known = new Map(results.map((run) => [run.id, run]));
  const changed = told.filter((run) => isNews(run, known.get(run.id)));
  if (changed.length === 0) return 0;
  await retentionBook.keepRuns(changed);
  for (const run of changed) if (run.state !== known.get(run.id)?.state) logEnd(log, run);
  return changed.length;
}

/** Of a run on demand its job speaks. */
function logEnd(
  log: Log,
  { id, source, trigger, state, startedAt, finishedAt, rows, included, error }: RetentionRun,
): void {
  if (trigger === 'order' || state === 'running') return;
  const fields = { id, source, trigger, state, started_at: startedAt, finished_at: finishedAt, rows, included, error };
  if (state === 'done') log.info('retention.run', fields);
  else log.warn('retention.run', fields);
}

/** What had ended when the core was asked is not running: then somebody else was told later. */
function isNews(told: RetentionRun, known: RetentionRun | undefined): boolean {
  if (known === undefined) return true;
  if (told.state === 'running' && known.state !== 'running') return false;
  return JSON.stringify(plain(told)) !== JSON.stringify(plain(known));
}

/** The database gives back members in an order of its own. */
function plain(run: RetentionRun): unknown[] {
  const { source, trigger, state, startedAt, finishedAt, limits, rows, included, expected, bytes, error } = run;
  const times = [startedAt, finishedAt].map((time) => (time === null ? null : Date.parse(time)));
  const byType = RETAINED.map((type) => [limits[type] ?? null, rows[type] ?? null]);
  return [source, trigger, state, ...times, byType, included.cot, included.files, expected, bytes, error];
}

// The runs of retention, as the core tells of them and as Holdfast remembers them, and since when what is in force is in force.

import { utcInWords } from '../domain/amounts.ts';
import type { Finding } from '../domain/evaluate.ts';
import { limitsAt, type Retained, type RetentionPolicy } from '../domain/retention.ts';
import { messageOf } from '../domain/thrown.ts';
import type { CoreRetention } from '../ports/core-retention.ts';
import type { InForce, RetentionBook, RetentionRun } from '../ports/retention-book.ts';

export interface SeenRuns {
  last: RetentionRun | undefined;
  lastDone: RetentionRun | undefined;
  /** Those that are known to be done. */
  done: readonly RetentionRun[];
  /** It answers, and has no such call. */
  isRelease: boolean;
  /** As the core tells; a release does not. */
  isGoingOn: boolean;
  /** Null when it could not be found out. */
  inForceSince: string | null;
  /** Why the core does not tell of its runs. */
  coreProblem: string | null;
  /** Why our own memory could not be asked. */
  bookProblem: string | null;
}

export interface RunsDeps {
  coreRetention: Pick<CoreRetention, 'runs'>;
  retentionBook: Pick<RetentionBook, 'runs' | 'lastDone' | 'seenInForce'>;
}

/** `inForce` is undefined while the core does not say what it has in force. */
export async function readRuns(deps: RunsDeps, inForce: InForce | undefined, now: Date): Promise<SeenRuns> {
  const [told, kept] = await Promise.all([
    inForce === undefined ? undefined : attempt(deps.coreRetention.runs()),
    attempt(readBook(deps.retentionBook, inForce, now)),
  ]);
  const ofCore = told?.value?.map((run): RetentionRun => ({ ...run, source: 'core' }));
  const { last, lastDone, inForceSince } = kept.value ?? {};
  const ofBook = [last, lastDone].flatMap((run) => (run === undefined ? [] : [run]));
  const all = newestFirst(ofCore ?? [], ofBook);
  const done = all.filter(({ state }) => state === 'done');
  return {
    last: all[0],
    lastDone: done[0],
    done,
    isRelease: told?.problem === null && told.value === undefined,
    isGoingOn: ofCore?.some(({ state }) => state === 'running') ?? false,
    inForceSince: inForceSince ?? null,
    coreProblem: told?.problem ?? null,
    bookProblem: kept.problem,
  };
}

/** As far as it can be known: none that began since the policy is in force has deleted what it says. */
export function isFirstAhead(runs: SeenRuns, policy: RetentionPolicy): boolean {
  if (runs.isGoingOn || runs.bookProblem !== null || runs.coreProblem !== null) return false;
  const since = runs.inForceSince === null ? -Infinity : Date.parse(runs.inForceSince);
  return !runs.done.some((run) => Date.parse(run.startedAt) >= since && !isOfOlderCutoff(run, policy));
}

const CLOCKS_MS = 3_600_000;
/** As the limit of a type that the run left out. */
const NEVER_DELETED = new Date(0).toISOString();

/** An order may leave rows that the next scheduled run deletes. */
function isOfOlderCutoff({ trigger, startedAt, limits }: RetentionRun, policy: RetentionPolicy): boolean {
  if (trigger !== 'order') return false;
  const latest = Object.entries(limitsAt(policy, new Date(Date.parse(startedAt) - CLOCKS_MS)));
  return latest.some(([type, limit]) => Date.parse(limits[type as Retained] ?? NEVER_DELETED) < Date.parse(limit));
}

async function readBook(
  book: RunsDeps['retentionBook'],
  inForce: InForce | undefined,
  now: Date,
): Promise<{ last: RetentionRun | undefined; lastDone: RetentionRun | undefined; inForceSince: string | undefined }> {
  const [page, lastDone, inForceSince] = await Promise.all([
    book.runs(0, 1),
    book.lastDone(),
    inForce === undefined ? undefined : book.seenInForce(now.toISOString(), inForce),
  ]);
  return { last: page.results[0], lastDone, inForceSince };
}

/** What the core tells is newer than what was written down of the same run. */
function newestFirst(ofCore: readonly RetentionRun[], ofBook: readonly RetentionRun[]): RetentionRun[] {
  const byId = new Map([...ofBook, ...ofCore].map((run) => [run.id, run]));
  return [...byId.values()].toSorted((a, b) => Date.parse(b.startedAt) - Date.parse(a.startedAt));
}

async function attempt<T>(work: Promise<T>): Promise<{ value: T | undefined; problem: string | null }> {
  return work.then(
    (value) => ({ value, problem: null }),
    (error: unknown) => ({ value: undefined, problem: messageOf(error).replace(/\.$/, '') }),
  );
}

/** Every row that went, with what went with missions. */
export function rowsOfRun({ rows, included }: RetentionRun): number {
  return Object.values(rows).reduce((sum, each) => sum + each, included.cot + included.files);
}

export function judgeLastRun(last: { state: string; started_at: string; error: string | null } | null): Finding[] {
  if (last === null) return [];
  const [when, why] = [utcInWords(last.started_at), last.error === null ? '' : `: ${last.error.replace(/\.$/, '')}`];
  if (last.state === 'failed') return [warning(`the last run, of ${when}, has failed${why}`)];
  if (last.state === 'interrupted')
    return [
      warning(`the last run, of ${when}, was interrupted${why === '' ? ': the next run deletes the rest' : why}`),
    ];
  return [];
}

function warning(says: string): Finding {
  return { kind: 'fact', status: 'warning', says };
}

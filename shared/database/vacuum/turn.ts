// Vacuums one table: starts when there is space and no one would queue behind it, and follows it to
// its end. The marks of the table, stored before the statement starts, show afterwards if it was
// done.

import { messageOf } from '@holdfast/kit/app-error';
import { formatBytes, rounded } from '@holdfast/kit/format';
import { MINUTE_MS } from '@holdfast/kit/time';
import type { LockHolder, VacuumMarks, VacuumStatement } from '../port.ts';
import type { BegunStatement, VacuumedTable } from './jobs.ts';
import { databasePlace } from './preview.ts';
import {
  deadRowsLeft,
  failureKind,
  isVacuumed,
  LOCK_PATIENCE_MS,
  longHolder,
  nameOf,
  noticeBefore,
  pauseSeconds,
  roomFor,
} from './rules.ts';
import {
  request,
  currentTable,
  DatabaseUnavailable,
  end,
  isRefusal,
  save,
  type Step,
  tell,
  turnOf,
  type VacuumWork,
} from './work.ts';

/** Longer than a minute, as some hosts run jobs once a minute and slightly late. */
export const MAX_GAP_MS = 75_000;

/** `begun`: its statement is running or has ended already; `over`: this table is finished. */
export type Turned = Step | 'begun' | 'over';

/** Continues with the next table, or ends the job. */
export async function nextTurn(work: VacuumWork): Promise<Turned> {
  const { memory, now } = work;
  if (memory.tables.every(({ state }) => state !== 'not_begun')) return end(work);
  const { next_try_at: nextTryAt } = turnOf(work);
  if (nextTryAt !== null && Date.parse(nextTryAt) > now.getTime()) {
    answersAgain(work);
    await save(work);
    return 'waits';
  }
  return attempt(work);
}

async function attempt(work: VacuumWork): Promise<Turned> {
  const { deps, input, now } = work;
  const { schema, table } = currentTable(work);
  const found = (await request(deps.vacuumFacts.tables())).find(
    (each) => each.schema === schema && each.table === table,
  );
  if (found === undefined) return over(work, { state: 'skipped', error: 'the table no longer exists.' });
  if (!found.allowed)
    return over(work, { state: 'skipped', error: 'the owner of the database may no longer vacuum it.' });
  const room = roomFor(input.mode, found, await request(databasePlace(deps)));
  if (room.isEnough !== true) return over(work, { state: 'skipped', error: room.figures.reason });
  const holder = longHolder(await request(deps.vacuumFacts.holders(input.mode, schema, table)), now);
  if (holder !== undefined) return tryAgain(work, heldBy(holder));
  const marks = await request(deps.vacuumFacts.marks(schema, table));
  if (marks === undefined) return over(work, { state: 'skipped', error: 'the table no longer exists.' });
  return begin(work, marks);
}

function heldBy({ pid, user, application, since }: LockHolder): string {
  const time = since ?? 'an unknown time';
  if (pid === 0)
    return `held by the prepared transaction ${application} (${user}) since ${time}. Remedy: end it with ROLLBACK PREPARED ${application}, or COMMIT PREPARED.`;
  const who = application === '' ? user : `${user}, ${application}`;
  return `held by PID ${pid} (${who}) since ${time}. Remedy: wait, or end it with SELECT pg_terminate_backend(${pid}).`;
}

/** Stores the marks first, so that they show the result even after a crash. */
async function begin(work: VacuumWork, marks: VacuumMarks): Promise<Turned> {
  const { deps, input, job, memory } = work;
  const table = currentTable(work);
  const statement: BegunStatement = { marks, begun_at: deps.now().toISOString(), doubt: null, error: null };
  turnOf(work).statement = statement;
  Object.assign(table, { bytes_before: marks.bytes, dead_tuples_before: marks.dead_tuples });
  const isFirst = input.mode === 'full' && memory.notice === 'none';
  if (isFirst) memory.notice = 'begun';
  if (!(await save(work))) return 'ended';
  if (isFirst && !(await tell(work, noticeBefore(lockSecondsLeft(work))))) memory.notice = 'silent';
  work.signal?.throwIfAborted();
  if (deps.now().getTime() - work.now.getTime() > MAX_GAP_MS) throw new Error('stopped during a step');
  const { schema, table: name } = table;
  try {
    await deps.coreVacuum.begin({ job: job.id, mode: input.mode, schema, table: name, oid: marks.oid });
  } catch (error) {
    return notBegun(work, statement, error);
  }
  const what = input.mode === 'full' ? 'VACUUM FULL' : 'VACUUM';
  answersAgain(work);
  work.lines.push(`${nameOf(table)}: ${what} started, ${formatBytes(marks.bytes)}.`);
  await save(work, { phase: `${nameOf(table)}: ${what}`, phasePercent: null });
  return 'begun';
}

function lockSecondsLeft({ input, memory }: VacuumWork): number {
  const left = input.tables.filter((_, index) => memory.tables[index]?.state === 'not_begun');
  return left.reduce((sum, { lock_seconds }) => sum + lock_seconds, 0);
}

async function notBegun(work: VacuumWork, statement: BegunStatement, error: unknown): Promise<Turned> {
  if (isRefusal(error, 'unavailable')) {
    statement.doubt = error.message;
    throw new DatabaseUnavailable(error.message);
  }
  if (isRefusal(error, 'conflict')) {
    await save(work);
    return 'running';
  }
  if (!isRefusal(error, 'upstream')) throw error;
  return over(work, { state: 'failed', error: messageOf(error) });
}

/** Follows a statement that was recorded as started. */
export async function follow(
  work: VacuumWork,
  statement: BegunStatement,
  shown: VacuumStatement | undefined,
): Promise<Turned> {
  if (shown?.state === 'running') return running(work, statement, shown);
  const error = shown?.error ?? statement.error;
  if (error !== null) return failed(work, statement, error);
  const { schema, table } = currentTable(work);
  const marks = await request(work.deps.vacuumFacts.marks(schema, table));
  if (marks?.oid !== statement.marks.oid) {
    const what = marks === undefined ? 'dropped' : 'recreated';
    return over(work, { state: 'skipped', error: `the table was ${what} meanwhile.` });
  }
  if (isVacuumed(work.input.mode, statement.marks, marks)) return done(work, statement, marks);
  if (shown !== undefined)
    return over(work, {
      state: 'failed',
      error: 'the statement ended without an error, but the table is unchanged.',
    });
  if (statement.doubt === null) return interrupted(work, ENDED);
  turnOf(work).statement = null;
  return work.memory.was_alone ? end(work, 'interrupted', ALONE) : nextTurn(work);
}

export const ALONE =
  'Holdfast was not running, or its clock was set back, so it starts no table at an unexpected time.';

async function running(
  work: VacuumWork,
  statement: BegunStatement,
  { phase, percent, waits }: Extract<VacuumStatement, { state: 'running' }>,
): Promise<Turned> {
  const name = nameOf(currentTable(work));
  statement.doubt = null;
  answersAgain(work);
  if (work.aloneSeconds > 0) work.lines.push(`${name}: found again after ${work.aloneSeconds} s.`);
  const what = waits ? WAITING : (phase ?? (work.input.mode === 'full' ? 'VACUUM FULL' : 'VACUUM'));
  await save(work, { phase: `${name}: ${what}`, phasePercent: waits || percent === null ? null : rounded(percent, 1) });
  return 'running';
}

const WAITING = 'waiting for a lock';

/**
 * Stores the error code before it requests the message, because that request ends the statement.
 */
async function failed(work: VacuumWork, statement: BegunStatement, error: string): Promise<Turned> {
  const kind = failureKind(error);
  if (kind === 'lock') return tryAgain(work, 'locked by others: no lock within 5 s.');
  statement.error = error;
  if (!(await save(work))) return 'ended';
  const words = (await request(work.deps.coreVacuum.settle(work.job.id))) ?? `SQLSTATE ${error}`;
  if (kind === 'connection') return interrupted(work, ENDED, words);
  if (kind === 'stopped') return interrupted(work, 'its statement was canceled.', words);
  if (kind === 'table') return over(work, { state: 'failed', error: words });
  close(work, { state: 'failed', error: words });
  return end(work, 'failed', 'The disk is full. Nothing more is started.');
}

const ENDED = 'the database or the connection was interrupted.';

async function interrupted(work: VacuumWork, why: string, words?: string): Promise<Turned> {
  const undone =
    work.input.mode === 'full'
      ? 'PostgreSQL rolled it back, so nothing was changed.'
      : 'Cleaned rows stay clean. The next vacuum does the rest.';
  const error = `${why} ${undone}${words === undefined ? '' : ` ${words}`}`;
  close(work, { state: 'interrupted', error });
  return end(work, 'interrupted', 'Nothing more is started after an interruption.');
}

async function done(work: VacuumWork, statement: BegunStatement, marks: VacuumMarks): Promise<Turned> {
  const seconds = rounded((work.deps.now().getTime() - Date.parse(statement.begun_at)) / 1000, 1);
  const table = currentTable(work);
  const { bytes_before: before } = table;
  const name = nameOf(table);
  const took = seconds < 1 ? 'less than 1 s' : `${Math.round(seconds)} s`;
  work.lines.push(`${name}: done in ${took}, ${formatBytes(before)} before, ${formatBytes(marks.bytes)} after.`);
  const left = work.input.mode === 'standard' ? deadRowsLeft(statement.marks.dead_tuples, marks.dead_tuples) : 0;
  if (left > 0)
    work.lines.push(`${name}: ${left} dead rows could not be removed: a transaction is older than they are.`);
  work.memory.waits_since = null;
  return over(work, { state: 'done', bytes_after: marks.bytes, seconds });
}

type Ending = Partial<VacuumedTable> & Pick<VacuumedTable, 'state'>;

/** Releases its statement before another one starts, so that they are not confused. */
async function over(work: VacuumWork, ending: Ending): Promise<Turned> {
  close(work, ending);
  return (await save(work, { phase: null, phasePercent: null })) ? 'over' : 'ended';
}

function close(work: VacuumWork, ending: Ending): void {
  const table = Object.assign(currentTable(work), ending);
  work.memory.turn = null;
  answersAgain(work);
  if (table.error !== null) work.lines.push(`${nameOf(table)}: ${ending.state}: ${table.error}`);
}

async function tryAgain(work: VacuumWork, why: string): Promise<Turned> {
  const now = work.deps.now();
  const { memory } = work;
  const turn = turnOf(work);
  turn.statement = null;
  memory.waits_since ??= now.toISOString();
  turn.tries += 1;
  const { schema, table } = currentTable(work);
  const name = nameOf({ schema, table });
  if (now.getTime() - Date.parse(memory.waits_since) >= LOCK_PATIENCE_MS) {
    const minutes = LOCK_PATIENCE_MS / MINUTE_MS;
    const [holder] = await request(work.deps.vacuumFacts.holders(work.input.mode, schema, table));
    const who = holder === undefined ? why : heldBy(holder);
    const long = turn.tries > 1 ? ` within ${minutes} minutes` : `, after ${minutes} minutes of waiting for others`;
    return over(work, { state: 'skipped', error: `no lock${long}: ${who}` });
  }
  turn.next_try_at = new Date(now.getTime() + pauseSeconds(turn.tries) * 1000).toISOString();
  if (turn.said !== why) work.lines.push(`${name}: ${WAITING}: ${why}`);
  turn.said = why;
  answersAgain(work);
  await save(work, { phase: `${name}: ${WAITING}`, phasePercent: null, eta: null });
  return 'waits';
}

/** Notes at the end of a step that the database answers again. */
function answersAgain({ memory, lines }: VacuumWork): void {
  if (memory.away_since !== null) lines.push('The core’s database is available again.');
  memory.away_since = null;
}

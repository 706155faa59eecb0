// Runs a requested vacuum in steps: one table after the other, never two statements at once. Steps
// never wait and can be repeated: the next one continues wherever the last one was interrupted.
// After a gap that is too long, a running statement is followed to its end, and nothing more is
// started.

import { HOUR_MS } from '@holdfast/kit/time';
import { endUnreadable } from '../../jobs/ordered-jobs.ts';
import { openVacuumJob, readVacuumJob } from './jobs.ts';
import { ALONE, follow, MAX_GAP_MS, nextTurn, type Turned } from './turn.ts';
import {
  request,
  currentTable,
  DatabaseUnavailable,
  end,
  save,
  type Step,
  type VacuumDeps,
  type VacuumWork,
} from './work.ts';

const GIVEN_UP_MS = HOUR_MS;

/**
 * Runs one step of the open job. Rejects if our own database is unavailable; the next step then
 * continues.
 */
export async function carryOnVacuum(deps: VacuumDeps, signal?: AbortSignal): Promise<Step> {
  const job = await openVacuumJob(deps.opsJobs);
  if (job === undefined) return 'none';
  const read = readVacuumJob(job);
  if (read === undefined) {
    await endUnreadable(deps, job, 'nothing more is started');
    return 'ended';
  }
  const work: VacuumWork = { ...read, deps, job, now: deps.now(), lines: [], aloneSeconds: 0, signal };
  noticeGap(work);
  try {
    return await step(work);
  } catch (error) {
    if (error instanceof DatabaseUnavailable) return waitForDatabase(work, error.message);
    throw error;
  }
}

function noticeGap(work: VacuumWork): void {
  const { memory, now } = work;
  const gapMs = now.getTime() - Date.parse(memory.looked_at);
  memory.looked_at = now.toISOString();
  if (Math.abs(gapMs) <= MAX_GAP_MS) return;
  memory.was_alone = true;
  if (gapMs < 0) {
    work.lines.push(`The clock was set back by ${Math.round(-gapMs / 1000)} s. No further table is started.`);
    return;
  }
  work.aloneSeconds = Math.round(gapMs / 1000);
  work.lines.push(`Holdfast did not run this job for ${work.aloneSeconds} s. No further table is started.`);
}

/** Small tables are done at once, so a step continues with the next ones for this long. */
const GOES_ON_MS = 5_000;
const LOOKS_AT_ONCE = 10;

async function step(work: VacuumWork): Promise<Step> {
  const { deps, now } = work;
  for (;;) {
    const turned = await turn(work);
    if (turned === 'begun' && !(await hasEndedAtOnce(work))) return 'running';
    if (turned !== 'begun' && turned !== 'over') return turned;
    if (deps.now().getTime() - now.getTime() > GOES_ON_MS) return 'running';
  }
}

async function hasEndedAtOnce({ deps, job }: VacuumWork): Promise<boolean> {
  for (let look = 0; look < LOOKS_AT_ONCE; look++) {
    const shown = await request(deps.vacuumFacts.statement(job.id));
    if (shown?.state !== 'running') return true;
  }
  return false;
}

async function turn(work: VacuumWork): Promise<Turned> {
  const { deps, job, memory } = work;
  const shown = await request(deps.vacuumFacts.statement(job.id));
  const statement = memory.turn?.statement ?? undefined;
  if (statement !== undefined) return follow(work, statement, shown);
  if (shown?.state === 'running') {
    await save(work);
    return 'running';
  }
  if (shown !== undefined) await request(deps.coreVacuum.settle(job.id));
  const isLeft = memory.tables.some(({ state }) => state === 'not_begun');
  return memory.was_alone && isLeft ? end(work, 'interrupted', ALONE) : nextTurn(work);
}

/** Logs the outage once; a started statement is found again when the database is back. */
async function waitForDatabase(work: VacuumWork, why: string): Promise<Step> {
  const { memory, now, deps, job } = work;
  if (memory.away_since === null) {
    memory.away_since = now.toISOString();
    work.lines.push(`The core’s database is unavailable: ${why}`);
    deps.log.warn('vacuum.job_waits', { job: job.id, reason: why });
  }
  if (now.getTime() - Date.parse(memory.away_since) > GIVEN_UP_MS) {
    if ((memory.turn?.statement ?? null) !== null)
      Object.assign(currentTable(work), { state: 'interrupted', error: 'its result is unknown.' });
    return end(work, 'failed', `Given up: the core’s database has been unavailable for an hour: ${why}`);
  }
  await save(work, { phase: 'waiting for the database', phasePercent: null, eta: null });
  return 'waits';
}

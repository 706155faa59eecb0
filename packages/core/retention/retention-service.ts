// The retention service: runs by the schedule and by order, one at a time, each a row in `retention_run`. Nothing is ever deleted
// where no days are set.

import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { messageOf } from '@holdfast/kit/app-error';
import type { CoreRetentionRun, RetentionRunOrder } from '@holdfast/kit/core-wire';
import type { Schedules } from '@holdfast/kit/cron';
import { oneAfterTheOther } from '@holdfast/kit/limits';
import type { Log } from '@holdfast/kit/log';
import { isKeepingAll, limitsAt, NEVER, type RetentionLimits, type RetentionPolicy } from '@holdfast/kit/retention';
import { unlessAborted } from '@holdfast/kit/timeout';
import { CoreFault } from '../http/answers.ts';
import type { Retention } from '../model/parts.ts';
import type { RunSql } from '../store/certificates.ts';
import { retentionRunStore, type RunEnd } from '../store/retention-runs.ts';
import { deleteDoomed, DELETION_ORDER, type DoomedMissions, RunStopped, TooManyRows } from './deletion.ts';
import { expectedRows } from './expected-rows.ts';
import type { Latencies } from './insert-latencies.ts';
import { orderedLimits } from './order.ts';
import { PATIENCE, type Patience } from './persistence.ts';
import { plannedFiring } from './planned-firing.ts';
import type { RetentionLog } from './retention-log.ts';

// A run in words, for the logs.

/** `retention run 1a2b by schedule, unit days: cot before 2026-01-01T00:00:00.000Z (30 days)` */
export function beginInWords({ id, trigger, limits }: CoreRetentionRun, policy: RetentionPolicy): string {
  const types = DELETION_ORDER.flatMap((type) => {
    const limit = limits[type];
    return limit === undefined ? [] : [`${type} before ${limit} (kept ${policy[type] ?? '?'} days)`];
  });
  return `retention run ${id} by ${trigger} begins, unit days: ${types.join(', ')}`;
}

/** `retention run 1a2b done after 3.1 s, rows deleted: cot 120, geochat 0; about 1.2 MB` */
export function endInWords(run: CoreRetentionRun, seconds: number): string {
  const { id, state, rows, included, bytes, error } = run;
  const counts = DELETION_ORDER.flatMap((type) => (rows[type] === undefined ? [] : [`${type} ${rows[type]}`]));
  const withMissions =
    rows.missions === undefined ? '' : `; with the missions: events ${included.cot}, files ${included.files}`;
  const said = error === null ? '' : `: ${error}`;
  const megabytes = ((bytes ?? 0) / 1e6).toFixed(1);
  return `retention run ${id} ${state} after ${seconds} s, rows deleted: ${counts.join(', ')}${withMissions}; about ${megabytes} MB${said}`;
}

export interface RetentionServiceOptions {
  /** The policy and the schedule in force. */
  retention: Pick<Retention, 'policy' | 'exemptKeywords' | 'schedule' | 'edited' | 'onChange'>;
  /** The database `cot`, on connections of its own. */
  run: RunSql;
  missions: DoomedMissions;
  latencies: Latencies;
  schedules: Pick<Schedules, 'next'>;
  /** The schedule is meant in it. */
  timeZone: string;
  log: Log;
  file: RetentionLog;
  now: () => Date;
  steadyMs: () => number;
  patience?: Patience;
}

export interface RetentionRuns {
  /** Rejects with a CoreFault: `invalid` for its limits, `conflict` while one runs. */
  begin(order: RetentionRunOrder): Promise<CoreRetentionRun>;
  /** The last ones, the newest first. */
  runs(): Promise<CoreRetentionRun[]>;
}

export interface RetentionService extends RetentionRuns {
  /** Closes what a killed core has left, and begins to look at the schedule. Never rejects. */
  start(): Promise<void>;
  /** Stops between two batches; waits for that so long at most. */
  close(graceMs: number): Promise<void>;
}

const KILLED = 'The core that ran it has ended, or another core took its place; the next run deletes the rest.';
const STOPPED = 'The core was stopped while it ran; the next run deletes the rest.';
const SHOWN_RUNS = 100;
/** How long the end of a run waits for the database; else the next run closes it. */
const END_TRIES = 5;
const END_PAUSE_MS = 1_000;

interface Going {
  id: string;
  ended: Promise<void>;
}

/**
 * @example
 * const service = createRetentionService({ retention: retentionFiles(dir), run, missions, latencies, ... });
 * await service.start();
 */
export function createRetentionService(options: RetentionServiceOptions): RetentionService {
  const { retention, run, missions, latencies, schedules, timeZone, log, file, now, steadyMs } = options;
  const { patience = PATIENCE } = options;
  const runs = retentionRunStore(run);
  const inTurn = oneAfterTheOther();
  const stopping = new AbortController();
  const { signal } = stopping;
  let going: Going | undefined;

  const firing = plannedFiring({
    schedule: () => retention.schedule(),
    schedules,
    timeZone,
    now,
    steadyMs,
    log,
    fire: () => void inTurn(beginBySchedule).catch((error: unknown) => notBegun(messageOf(error))),
  });
  retention.onChange(() => firing.look());

  function notBegun(why: string): void {
    log.error('retention.not_begun', { error: why });
    file.error(`retention run by schedule not begun: ${why}`);
  }

  async function beginBySchedule(): Promise<void> {
    const policy = retention.policy();
    if (signal.aborted || retention.schedule() === NEVER) return;
    if (isKeepingAll(policy)) {
      log.info('retention.nothing_to_do', { reason: 'no days are set for any type' });
      file.info('retention has nothing to do: no days are set for any type');
      return;
    }
    if (going !== undefined) {
      log.warn('retention.skipped', { reason: 'a run is going on', running: going.id });
      file.warn(`retention run by schedule skipped: the run ${going.id} is going on`);
      return;
    }
    const edited = editedInWords();
    if (edited !== undefined) return notBegun(edited);
    const begun = await begin(randomUUID(), 'schedule', limitsAt(policy, await runs.now()), policy, null);
    if (begun === undefined) notBegun('another core on the same database has a run');
  }

  /** Whoever has edited a file wants what it says; what is in force may delete more. */
  function editedInWords(): string | undefined {
    const path = retention.edited();
    return path === undefined
      ? undefined
      : `${path} was changed since the core read it, so nothing is deleted by what it said before; restart the core`;
  }

  /** Undefined when one is running that is not ours. */
  async function begin(
    id: string,
    trigger: CoreRetentionRun['trigger'],
    limits: RetentionLimits,
    policy: RetentionPolicy,
    mostRows: number | null,
  ): Promise<CoreRetentionRun | undefined> {
    await closeLeft();
    const begun = await runs.begin(id, trigger, limits);
    if (begun?.state !== 'running') return begun;
    log.info('retention.started', { id, trigger, unit: 'days', policy, limits, most_rows: mostRows });
    file.info(beginInWords(begun, policy));
    going = { id, ended: whole(begun, mostRows).finally(() => (going = undefined)) };
    return begun;
  }

  /** What this process does not run is run by nobody. */
  async function closeLeft(): Promise<void> {
    for (const id of await runs.closeLeft(KILLED)) {
      log.warn('retention.interrupted', { id, error: KILLED });
      file.warn(`retention run ${id} interrupted: ${KILLED}`);
    }
  }

  async function whole(begun: CoreRetentionRun, mostRows: number | null): Promise<void> {
    const begunMs = steadyMs();
    const { state, error } = await outcome(begun, mostRows);
    const closed = await ended(begun.id, state, error);
    const shown = closed ?? { ...begun, state, error };
    const seconds = Math.round((steadyMs() - begunMs) / 100) / 10;
    const { id, trigger, limits, rows, included, bytes } = shown;
    const level = state === 'failed' ? 'error' : 'info';
    log[level]('retention.run', { id, trigger, state, unit: 'days', limits, rows, included, bytes, seconds, error });
    file[level](endInWords(shown, seconds));
  }

  async function outcome(
    begun: CoreRetentionRun,
    mostRows: number | null,
  ): Promise<{ state: RunEnd; error: string | null }> {
    const exemptKeywords = retention.exemptKeywords();
    try {
      const expected = await stoppable(expectedRows(run, begun.limits, exemptKeywords, log));
      if (expected !== undefined) {
        await expectedWritten(begun.id, expected);
        if (mostRows !== null && expected > mostRows)
          throw new TooManyRows(
            `it would delete ${expected} rows, and at most ${mostRows} may be deleted: nothing was`,
          );
      }
      const { policy } = retention;
      const parts = {
        policy,
        run,
        runs,
        missions,
        exemptKeywords,
        mostRows,
        latencies,
        patience,
        signal,
        now,
        steadyMs,
      };
      const errors = await deleteDoomed(begun, parts);
      return errors.length === 0 ? { state: 'done', error: null } : { state: 'failed', error: errors.join('; ') };
    } catch (error) {
      if (error instanceof RunStopped) return { state: 'interrupted', error: STOPPED };
      return { state: 'failed', error: messageOf(error) };
    }
  }

  /** Only a figure: the run goes on without. */
  async function expectedWritten(id: string, expected: number): Promise<void> {
    try {
      await runs.setExpected(id, expected);
    } catch (error) {
      log.warn('retention.expected_not_written', { id, expected, error: messageOf(error) });
    }
  }

  /** Rejects with RunStopped at a stop. */
  function stoppable<T>(work: Promise<T>): Promise<T> {
    return unlessAborted(signal, work, () => new RunStopped());
  }

  async function ended(id: string, state: RunEnd, error: string | null): Promise<CoreRetentionRun | undefined> {
    for (let tries = 1; ; tries++) {
      try {
        return await runs.end(id, state, error);
      } catch (cause) {
        if (tries >= END_TRIES || signal.aborted) {
          log.warn('retention.end_not_written', { id, state, error: messageOf(cause) });
          return undefined;
        }
        await delay(END_PAUSE_MS, undefined, { signal }).catch(() => undefined);
      }
    }
  }

  async function beginByOrder({ id, limits, mostRows }: RetentionRunOrder): Promise<CoreRetentionRun> {
    const same = await runs.find(id);
    if (same !== undefined) return same;
    const policy = retention.policy();
    const edited = editedInWords();
    if (edited !== undefined) throw new CoreFault('invalid', edited);
    const ordered = orderedLimits(limits, policy, await runs.now());
    if (going !== undefined)
      throw new CoreFault('conflict', `The retention run ${going.id} is going on: wait for its end.`);
    if (signal.aborted) throw new CoreFault('conflict', 'The core is being stopped: no run begins any more.');
    const begun = await begin(id, 'order', ordered, policy, mostRows);
    if (begun === undefined) throw new CoreFault('conflict', 'Another core on the same database has a retention run.');
    return begun;
  }

  return {
    async start() {
      try {
        await inTurn(closeLeft);
      } catch (error) {
        log.warn('retention.not_closed', { error: messageOf(error) });
      }
      firing.look();
    },
    begin: (order) => inTurn(() => beginByOrder(order)),
    runs: () => runs.list(SHOWN_RUNS),
    async close(graceMs) {
      firing.stop();
      stopping.abort();
      await Promise.race([inTurn(async () => going?.ended), delay(graceMs, undefined, { ref: false })]);
    },
  };
}

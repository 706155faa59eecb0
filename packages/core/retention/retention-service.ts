// Runs retention by schedule and on demand, one run at a time, each a row in `retention_run`. Never
// deletes a type without a limit.

import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { messageOf } from '@holdfast/kit/app-error';
import { serialize } from '@holdfast/kit/concurrency';
import type { CoreRetentionRun, RetentionRunOrder } from '@holdfast/kit/core-wire';
import type { Schedules } from '@holdfast/kit/cron';
import type { Log } from '@holdfast/kit/log';
import { isKeepingAll, limitsAt, NEVER, type RetentionLimits, type RetentionPolicy } from '@holdfast/kit/retention';
import { unlessAborted } from '@holdfast/kit/timeout';
import { CoreFault } from '../http/answers.ts';
import type { Retention } from '../model/parts.ts';
import type { RunSql } from '../store/certificates.ts';
import { RetentionRunStore, type RunEnd } from '../store/retention-runs.ts';
import { Deletion, DELETION_ORDER, type ExpiredMissions, RunStopped, TooManyRows } from './deletion.ts';
import { expectedRows, orderedLimits } from './limits.ts';
import type { Latencies } from './pacer.ts';
import { PATIENCE, type Patience } from './retry-forever.ts';
import { PlannedFiring } from './planned-firing.ts';
import type { RetentionLog } from './retention-log.ts';

/** `retention run 1a2b by schedule, unit days: cot before 2026-01-01T00:00:00.000Z (30 days)` */
export function formatBegin({ id, trigger, limits }: CoreRetentionRun, policy: RetentionPolicy): string {
  const types = DELETION_ORDER.flatMap((type) => {
    const limit = limits[type];
    return limit === undefined ? [] : [`${type} before ${limit} (kept ${policy[type] ?? '?'} days)`];
  });
  return `retention run ${id} by ${trigger} begins, unit days: ${types.join(', ')}`;
}

/** `retention run 1a2b done after 3.1 s, rows deleted: cot 120, geochat 0; about 1.2 MB` */
export function formatEnd(run: CoreRetentionRun, seconds: number): string {
  const { id, state, rows, included, bytes, error } = run;
  const counts = DELETION_ORDER.flatMap((type) => (rows[type] === undefined ? [] : [`${type} ${rows[type]}`]));
  const withMissions =
    rows.missions === undefined ? '' : `; with the missions: events ${included.cot}, files ${included.files}`;
  const message = error === null ? '' : `: ${error}`;
  const megabytes = ((bytes ?? 0) / 1e6).toFixed(1);
  return `retention run ${id} ${state} after ${seconds} s, rows deleted: ${counts.join(', ')}${withMissions}; about ${megabytes} MB${message}`;
}

export interface RetentionServiceOptions {
  /** The policy and the schedule in force. */
  retention: Pick<Retention, 'policy' | 'exemptKeywords' | 'schedule' | 'edited' | 'onChange'>;
  /** The database `cot`, on connections of its own. */
  run: RunSql;
  missions: ExpiredMissions;
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

const KILLED = 'The core stopped, or another core replaced it. The next run deletes the rest.';
const STOPPED = 'The core was stopped during the run. The next run deletes the rest.';
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
 * const retention = retentionFiles(dir);
 * const service = new RetentionService({ retention, run, missions, latencies, ... });
 * await service.start();
 */
export class RetentionService implements RetentionRuns {
  readonly #options: RetentionServiceOptions;
  readonly #patience;
  readonly #runs;
  readonly #inTurn = serialize();
  readonly #stopping = new AbortController();
  readonly #signal;
  #going: Going | undefined;
  readonly #firing;

  constructor(options: RetentionServiceOptions) {
    this.#options = options;
    this.#patience = options.patience ?? PATIENCE;
    this.#runs = new RetentionRunStore(options.run);
    const { signal } = this.#stopping;
    this.#signal = signal;
    this.#firing = new PlannedFiring({
      schedule: () => options.retention.schedule(),
      schedules: options.schedules,
      timeZone: options.timeZone,
      now: options.now,
      steadyMs: options.steadyMs,
      log: options.log,
      fire: () =>
        void this.#inTurn(() => this.#beginBySchedule()).catch((error: unknown) => this.#notBegun(messageOf(error))),
    });
    options.retention.onChange(() => this.#firing.look());
  }

  /** Closes what a killed core has left, and begins to look at the schedule. Never rejects. */
  async start(): Promise<void> {
    try {
      await this.#inTurn(() => this.#closeLeft());
    } catch (error) {
      this.#options.log.warn('retention.not_closed', { error: messageOf(error) });
    }
    this.#firing.look();
  }

  begin(order: RetentionRunOrder): Promise<CoreRetentionRun> {
    return this.#inTurn(() => this.#beginByOrder(order));
  }

  runs(): Promise<CoreRetentionRun[]> {
    return this.#runs.list(SHOWN_RUNS);
  }

  /** Stops between two batches; waits for that so long at most. */
  async close(graceMs: number): Promise<void> {
    this.#firing.stop();
    this.#stopping.abort();
    await Promise.race([this.#inTurn(async () => this.#going?.ended), delay(graceMs, undefined, { ref: false })]);
  }

  #notBegun(why: string): void {
    this.#options.log.error('retention.not_begun', { error: why });
    this.#options.file.error(`retention run by schedule not begun: ${why}`);
  }

  async #beginBySchedule(): Promise<void> {
    const policy = this.#options.retention.policy();
    if (this.#signal.aborted || this.#options.retention.schedule() === NEVER) return;
    if (isKeepingAll(policy)) {
      this.#options.log.info('retention.nothing_to_do', { reason: 'no days are set for any type' });
      this.#options.file.info('retention has nothing to do: no days are set for any type');
      return;
    }
    if (this.#going !== undefined) {
      this.#options.log.warn('retention.skipped', { reason: 'a run is going on', running: this.#going.id });
      this.#options.file.warn(`retention run by schedule skipped: the run ${this.#going.id} is going on`);
      return;
    }
    const edited = this.#formatEdited();
    if (edited !== undefined) return this.#notBegun(edited);
    const begun = await this.#begin(randomUUID(), 'schedule', limitsAt(policy, await this.#runs.now()), policy, null);
    if (begun === undefined) this.#notBegun('another core on the same database has a run');
  }

  /** Whoever has edited a file wants what it says; what is in force may delete more. */
  #formatEdited(): string | undefined {
    const path = this.#options.retention.edited();
    return path === undefined
      ? undefined
      : `${path} was edited after the core read it, so nothing was deleted. Restart the core to load it`;
  }

  /** Undefined when one is running that is not ours. */
  async #begin(
    id: string,
    trigger: CoreRetentionRun['trigger'],
    limits: RetentionLimits,
    policy: RetentionPolicy,
    maxRows: number | null,
  ): Promise<CoreRetentionRun | undefined> {
    await this.#closeLeft();
    const begun = await this.#runs.begin(id, trigger, limits);
    if (begun?.state !== 'running') return begun;
    this.#options.log.info('retention.started', { id, trigger, unit: 'days', policy, limits, most_rows: maxRows });
    this.#options.file.info(formatBegin(begun, policy));
    this.#going = { id, ended: this.#whole(begun, maxRows).finally(() => (this.#going = undefined)) };
    return begun;
  }

  /** What this process does not run is run by nobody. */
  async #closeLeft(): Promise<void> {
    for (const id of await this.#runs.closeLeft(KILLED)) {
      this.#options.log.warn('retention.interrupted', { id, error: KILLED });
      this.#options.file.warn(`retention run ${id} interrupted: ${KILLED}`);
    }
  }

  async #whole(begun: CoreRetentionRun, maxRows: number | null): Promise<void> {
    const begunMs = this.#options.steadyMs();
    const { state, error } = await this.#outcome(begun, maxRows);
    const closed = await this.#ended(begun.id, state, error);
    const shown = closed ?? { ...begun, state, error };
    const seconds = Math.round((this.#options.steadyMs() - begunMs) / 100) / 10;
    const { id, trigger, limits, rows, included, bytes } = shown;
    const level = state === 'failed' ? 'error' : 'info';
    this.#options.log[level]('retention.run', {
      id,
      trigger,
      state,
      unit: 'days',
      limits,
      rows,
      included,
      bytes,
      seconds,
      error,
    });
    this.#options.file[level](formatEnd(shown, seconds));
  }

  async #outcome(begun: CoreRetentionRun, maxRows: number | null): Promise<{ state: RunEnd; error: string | null }> {
    const exemptKeywords = this.#options.retention.exemptKeywords();
    try {
      const expected = await this.#stoppable(
        expectedRows(this.#options.run, begun.limits, exemptKeywords, this.#options.log),
      );
      if (expected !== undefined) {
        await this.#expectedWritten(begun.id, expected);
        if (maxRows !== null && expected > maxRows)
          throw new TooManyRows(`it would delete ${expected} rows, and at most ${maxRows} may be deleted: nothing was`);
      }
      const { policy } = this.#options.retention;
      const parts = {
        policy,
        run: this.#options.run,
        runs: this.#runs,
        missions: this.#options.missions,
        exemptKeywords,
        maxRows,
        latencies: this.#options.latencies,
        patience: this.#patience,
        signal: this.#signal,
        now: this.#options.now,
        steadyMs: this.#options.steadyMs,
      };
      const errors = await new Deletion(begun, parts).run();
      return errors.length === 0 ? { state: 'done', error: null } : { state: 'failed', error: errors.join('; ') };
    } catch (error) {
      if (error instanceof RunStopped) return { state: 'interrupted', error: STOPPED };
      return { state: 'failed', error: messageOf(error) };
    }
  }

  /** Only a figure: the run goes on without. */
  async #expectedWritten(id: string, expected: number): Promise<void> {
    try {
      await this.#runs.setExpected(id, expected);
    } catch (error) {
      this.#options.log.warn('retention.expected_not_written', { id, expected, error: messageOf(error) });
    }
  }

  /** Rejects with RunStopped at a stop. */
  #stoppable<T>(work: Promise<T>): Promise<T> {
    return unlessAborted(this.#signal, work, () => new RunStopped());
  }

  async #ended(id: string, state: RunEnd, error: string | null): Promise<CoreRetentionRun | undefined> {
    for (let tries = 1; ; tries++) {
      try {
        return await this.#runs.end(id, state, error);
      } catch (cause) {
        if (tries >= END_TRIES || this.#signal.aborted) {
          this.#options.log.warn('retention.end_not_written', { id, state, error: messageOf(cause) });
          return undefined;
        }
        await delay(END_PAUSE_MS, undefined, { signal: this.#signal }).catch(() => undefined);
      }
    }
  }

  async #beginByOrder({ id, limits, maxRows }: RetentionRunOrder): Promise<CoreRetentionRun> {
    const same = await this.#runs.find(id);
    if (same !== undefined) return same;
    const policy = this.#options.retention.policy();
    const edited = this.#formatEdited();
    if (edited !== undefined) throw new CoreFault('invalid', edited);
    const ordered = orderedLimits(limits, policy, await this.#runs.now());
    if (this.#going !== undefined)
      throw new CoreFault('conflict', `The retention run ${this.#going.id} is still running. Wait until it ends.`);
    if (this.#signal.aborted) throw new CoreFault('conflict', 'The core is stopping. No new run can start.');
    const begun = await this.#begin(id, 'order', ordered, policy, maxRows);
    if (begun === undefined) throw new CoreFault('conflict', 'Another core on the same database is running retention.');
    return begun;
  }
}

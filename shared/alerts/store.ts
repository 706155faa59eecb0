// Manages the alerts of this process. While the database answers, it decides for all processes.
// While it is unavailable, memory and a journal continue, and are merged into the database when it
// is back.

import { AppError, codeOf, messageOf } from '@holdfast/kit/app-error';
import type { Log } from '@holdfast/kit/log';
import { withTimeout } from '@holdfast/kit/timeout';
import { type History, NO_HISTORY, urgency } from '../settings/status.ts';
import type { AlertJournal } from './journal.ts';
import { AlertMemory, type Clock } from './memory.ts';
import type {
  Alert,
  AlertEvaluation,
  AlertFilter,
  AlertPage,
  Alerts,
  AlertSummary,
  Attempt,
  Observation,
} from './port.ts';
import { type AlertPolicy, isAtRest } from './rules.ts';
import type { AlertTable } from './table.ts';

export interface AlertStoreOptions {
  /** Undefined if no database is set up. */
  table: AlertTable | undefined;
  /**
   * The same table for readers of alerts, with a longer time limit; its failures do not affect the
   * other.
   */
  reads: AlertTable | undefined;
  /** Undefined: only memory bridges the time without a database. */
  journal: AlertJournal | undefined;
  policy: AlertPolicy;
  /** One id per process. */
  runner: string;
  clock: Clock;
  log: Log;
}

/** How long an alert is reserved, as it may still be sending. */
const LEASE_SECONDS = 180;
/** Pause after a database failure, so that nothing queues up behind its time limit. */
const LEFT_ALONE_MS = 3_000;
/** Time for other processes to record what they sent once the database is back. */
const GRACE_MS = 15_000;
/** A shorter failure does not count as an outage. */
const OUTAGE_MS = 5_000;
/** Limits merging of history, so that new alerts do not wait for it. */
const HISTORY_AT_ONCE_MS = 500;
/** An ok module at rest is not looked up again within this time. */
const CONFIRMED_FOR_MS = 60_000;
/** A hanging disk must not delay the engine, as the journal is only a copy. */
const JOURNAL_WITHIN_MS = 1_000;

export class AlertStore implements Alerts {
  readonly #options: AlertStoreOptions;
  readonly #memory: AlertMemory;
  /** The last evaluation of each module. */
  readonly #turns = new Map<string, Promise<unknown>>();
  /** States and alerts that the database rejects because of their content. */
  readonly #setAside = new WeakSet<object>();
  /** Earlier processes whose alerts the database has not assigned to us yet. */
  #predecessors: string[];
  #unavailableSinceMs: number | undefined;
  #leftAloneUntilMs = Number.NEGATIVE_INFINITY;
  #backSinceMs: number;
  #taking = false;
  #syncing: Promise<void> | undefined;

  constructor(options: AlertStoreOptions) {
    const { clock, journal } = options;
    this.#options = options;
    this.#memory = new AlertMemory(clock, LEASE_SECONDS * 1000);
    this.#backSinceMs = clock.steadyMs();
    const earlier = journal?.load();
    this.#predecessors = earlier?.runners ?? [];
    if (earlier === undefined) return;
    this.#memory.restore(earlier);
    void this.#keep();
  }

  async #keep(): Promise<void> {
    const { journal, runner, log } = this.#options;
    if (journal === undefined) return;
    const late = (): Error => new Error('the disk does not answer');
    const saved = journal.save(() => this.#memory.snapshot([runner, ...this.#predecessors]));
    await withTimeout(JOURNAL_WITHIN_MS, late, saved).catch((error: unknown) => {
      log.error('alerts.journal_late', { error: messageOf(error) });
    });
  }

  /** The table, unless it failed a moment ago. */
  #tableToAsk(): AlertTable | undefined {
    const { table, clock } = this.#options;
    return clock.steadyMs() < this.#leftAloneUntilMs ? undefined : table;
  }

  /**
   * Runs work on the database once it has everything from here; `undefined` while it is
   * unavailable.
   */
  async #inTable<T>(work: (table: AlertTable) => Promise<T>): Promise<{ value: T } | undefined> {
    const table = this.#tableToAsk();
    if (table === undefined) return undefined;
    try {
      await this.#sync(table);
      const value = await work(table);
      this.#isBack();
      return { value };
    } catch (error) {
      this.#isUnavailable(error);
      return undefined;
    }
  }

  #isUnavailable(error: unknown): void {
    const { clock, log } = this.#options;
    this.#leftAloneUntilMs = clock.steadyMs() + LEFT_ALONE_MS;
    if (this.#unavailableSinceMs !== undefined) return;
    this.#unavailableSinceMs = clock.steadyMs();
    log.warn('alerts.database_away', { error: messageOf(error) });
  }

  #isBack(): void {
    if (this.#unavailableSinceMs === undefined) return;
    const { clock, log } = this.#options;
    log.info('alerts.database_back');
    if (clock.steadyMs() - this.#unavailableSinceMs >= OUTAGE_MS) this.#backSinceMs = clock.steadyMs();
    this.#unavailableSinceMs = undefined;
  }

  /** Syncs the database, if it answers. */
  async #syncIfThere(): Promise<void> {
    const table = this.#tableToAsk();
    if (table !== undefined) await this.#sync(table).catch((error: unknown) => this.#isUnavailable(error));
  }

  #sync(table: AlertTable): Promise<void> {
    return (this.#syncing ??= this.#mergeAll(table).finally(() => {
      this.#syncing = undefined;
    }));
  }

  async #mergeAll(table: AlertTable): Promise<void> {
    const { clock, runner } = this.#options;
    const memory = this.#memory;
    const began = clock.steadyMs();
    const heir = this.#predecessors.length > 0;
    for (const from of this.#predecessors) await table.inherit(from, runner);
    this.#predecessors = [];
    const states = memory.dirty();
    for (const [module, state] of states)
      await this.#mergeOne(state, async () => memory.stateStored(module, state, await table.mergeState(module, state)));
    const unstored = memory.unstored().toSorted((a, b) => historyLast(a.alert) - historyLast(b.alert));
    for (const { alert, pauseSeconds } of unstored) {
      if (historyLast(alert) === 1 && clock.steadyMs() - began > HISTORY_AT_ONCE_MS) break;
      await this.#mergeOne(alert, async () => {
        const state = await table.mergeAlert(alert, runner, pauseSeconds);
        memory.alertStored(alert);
        memory.adopt(alert.module, state);
      });
    }
    if (heir || states.length + unstored.length > 0) void this.#keep();
  }

  /** Sets aside what the database rejects because of its content, and continues with the rest. */
  async #mergeOne(what: object, merge: () => Promise<void>): Promise<void> {
    if (this.#setAside.has(what)) return;
    try {
      await merge();
    } catch (error) {
      if (!isRefusal(error)) throw error;
      this.#setAside.add(what);
      this.#options.log.error('alerts.not_merged', { error: messageOf(error) });
    }
  }

  /** Processes evaluations of one module in order, even if one waits for the database. */
  observe(evaluation: AlertEvaluation): Promise<Observation> {
    const before = this.#turns.get(evaluation.module) ?? Promise.resolve();
    const mine = before.then(() => this.#observeNext(evaluation));
    this.#turns.set(
      evaluation.module,
      mine.catch(() => undefined),
    );
    return mine;
  }

  async #observeNext(evaluation: AlertEvaluation): Promise<Observation> {
    const { table, policy, runner } = this.#options;
    const memory = this.#memory;
    const { module, status } = evaluation;
    const known = memory.known(module);
    const confirmed = table === undefined || memory.unconfirmedForMs(module) < CONFIRMED_FOR_MS;
    if (known !== undefined && status === 'ok' && isAtRest(known.state) && confirmed) return { kind: 'none' };
    if (this.#isUnheard(evaluation)) return { kind: 'none' };
    const id = crypto.randomUUID();
    const there = await this.#inTable((alerts) => alerts.apply(evaluation, policy, id, runner, LEASE_SECONDS));
    if (there === undefined && this.#isUnheard(evaluation)) return { kind: 'none' };
    const observation = there?.value.observation ?? memory.apply(evaluation, policy, id);
    if (there !== undefined) memory.adopt(module, there.value.state);
    if (there !== undefined && observation.kind === 'raised') memory.hold(observation.alert);
    if (memory.known(module) !== known) await this.#keep();
    return observation;
  }

  /**
   * Rule `troubleElsewhere`: while the database is unavailable, and until all have told their
   * results after it, another machine may still have what is better here. Ended now, its alert
   * would be sent again.
   */
  #isUnheard({ module, status, isShared = false }: AlertEvaluation): boolean {
    const { clock } = this.#options;
    const isUnavailable = this.#unavailableSinceMs !== undefined;
    if (!isShared || (!isUnavailable && clock.steadyMs() - this.#backSinceMs >= GRACE_MS)) return false;
    return urgency(status) < urgency(this.#memory.known(module)?.state.told ?? 'ok');
  }

  async history(module: string): Promise<History> {
    const stored = (await this.#inTable((table) => table.known(module)))?.value;
    return (stored ?? this.#memory.known(module)?.state)?.history ?? NO_HISTORY;
  }

  /** One at a time: concurrent calls would find the same alerts. */
  async takeDue(most: number): Promise<Alert[]> {
    if (this.#taking) return [];
    this.#taking = true;
    try {
      const there = await this.#inTable((table) => this.#takeFromTable(table, most));
      return there === undefined ? this.#memory.takeDue(most, () => true) : there.value;
    } finally {
      this.#taking = false;
    }
  }

  async #takeFromTable(table: AlertTable, most: number): Promise<Alert[]> {
    const { clock, runner } = this.#options;
    const memory = this.#memory;
    const takeOver = clock.steadyMs() - this.#backSinceMs >= GRACE_MS;
    const except = memory.idsKnownBetter();
    const rows = await table.takeDue({ runner, most, leaseSeconds: LEASE_SECONDS, except, takeOver });
    for (const alert of rows) memory.fly(alert);
    const leaning = memory.leaning();
    if (leaning.length > 0) memory.keepOnly(await table.idsOf(runner), leaning);
    return [...rows, ...memory.takeDue(most, ({ alert, stored }) => !stored && this.#setAside.has(alert))];
  }

  async settle(alert: Alert, attempt: Attempt): Promise<void> {
    this.#memory.settle(alert, attempt);
    await this.#keep();
    await this.#syncIfThere();
  }

  async list(filter: AlertFilter, offset: number, limit: number): Promise<AlertPage> {
    const { reads, log } = this.#options;
    if (reads === undefined) return { ...this.#memory.list(filter, offset, limit), complete: true };
    await this.#syncIfThere();
    try {
      const page = await reads.list(filter, offset, limit);
      return { ...page, complete: this.#memory.unstored().length === 0 };
    } catch (error) {
      log.warn('alerts.not_listed', { error: messageOf(error) });
      return { ...this.#memory.list(filter, offset, limit), complete: false };
    }
  }

  async summary(): Promise<AlertSummary> {
    return this.#options.reads?.summary() ?? this.#memory.summary();
  }

  async trouble(): Promise<string | null> {
    return this.#options.journal?.trouble() ?? null;
  }

  async prune(suppressedBefore: string, otherBefore: string): Promise<number> {
    return (await this.#options.reads?.prune(suppressedBefore, otherBefore)) ?? 0;
  }
}

function historyLast({ state }: Alert): 0 | 1 {
  return state === 'pending' ? 0 : 1;
}

/** PostgreSQL error classes about the data itself; all other errors may be temporary. */
const REFUSALS = /^(21|22|23|54)/;

function isRefusal(error: unknown): boolean {
  if (error instanceof AppError) return false;
  const code = codeOf(error);
  return code === undefined ? error instanceof TypeError || error instanceof RangeError : REFUSALS.test(code);
}

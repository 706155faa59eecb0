// The alerts of this process: the database decides while it answers, so that all processes over it speak with one
// voice; while it does not, memory and a journal go on, and are merged into the database when it is back.

import { AppError, codeOf, messageOf } from '@holdfast/kit/app-error';
import type { Log } from '@holdfast/kit/log';
import { withTimeout } from '@holdfast/kit/timeout';
import { type History, NO_HISTORY } from '../settings/status.ts';
import { type AlertPolicy, isAtRest } from './engine.ts';
import type { AlertJournal } from './journal.ts';
import { alertMemory, alertSummary, type Clock } from './memory.ts';
import type { Alert, AlertEvaluation, AlertFilter, AlertPage, Alerts, Attempt, Observation } from './port.ts';
import type { AlertTable } from './table.ts';

export interface AlertBookOptions {
  /** Undefined when no database is set up. */
  table: AlertTable | undefined;
  /** The same for people who look at alerts: it may take longer, and says nothing about the other. */
  reads: AlertTable | undefined;
  /** Undefined: memory alone bridges the time without a database. */
  journal: AlertJournal | undefined;
  policy: AlertPolicy;
  /** One id per process. */
  runner: string;
  clock: Clock;
  log: Log;
}

/** Nobody else takes an alert while it may still be on its way. */
const LEASE_SECONDS = 180;
/** After a failure the database is left alone for this long, so that nothing queues up behind its time limit. */
const LEFT_ALONE_MS = 3_000;
/** When the database is back, runners that were cut off as well get this long to write down what they have sent. */
const GRACE_MS = 15_000;
/** A shorter trouble cuts nobody off. */
const OUTAGE_MS = 5_000;
/** New alerts do not wait behind the history of an outage. */
const HISTORY_AT_ONCE_MS = 500;
/** A module that is well and at rest is not looked up again within this time. */
const CONFIRMED_FOR_MS = 60_000;
/** A disk that hangs must not hold up what the journal is only a copy of. */
const JOURNAL_WITHIN_MS = 1_000;

export function alertBook({ table, reads, journal, policy, runner, clock, log }: AlertBookOptions): Alerts {
  const memory = alertMemory(clock, LEASE_SECONDS * 1000);
  const turns = new Map<string, Promise<void>>();
  const setAside = new WeakSet<object>();
  let awayUntilMs = Number.NEGATIVE_INFINITY;
  let awaySinceMs: number | undefined;
  let backSinceMs = clock.steadyMs();
  let taking = false;
  let syncing: Promise<void> | undefined;
  const earlier = journal?.load();
  if (earlier !== undefined) memory.restore(earlier);
  let predecessors = earlier?.runners ?? [];
  if (earlier !== undefined) void keep();

  async function keep(): Promise<void> {
    if (journal === undefined) return;
    const late = (): Error => new Error('the disk does not answer');
    await withTimeout(
      JOURNAL_WITHIN_MS,
      late,
      journal.save(() => memory.snapshot([runner, ...predecessors])),
    ).catch((error: unknown) => {
      log.error('alerts.journal_late', { error: messageOf(error) });
    });
  }

  /** Works with the database once it has everything from here; `undefined` while it does not answer. */
  async function inTable<T>(work: (alerts: AlertTable) => Promise<T>): Promise<{ value: T } | undefined> {
    if (table === undefined || clock.steadyMs() < awayUntilMs) return undefined;
    try {
      await sync(table);
      const value = await work(table);
      if (awaySinceMs !== undefined) isBack(awaySinceMs);
      return { value };
    } catch (error) {
      isAway(error);
      return undefined;
    }
  }

  function isAway(error: unknown): void {
    awayUntilMs = clock.steadyMs() + LEFT_ALONE_MS;
    if (awaySinceMs === undefined) log.warn('alerts.database_away', { error: messageOf(error) });
    awaySinceMs ??= clock.steadyMs();
  }

  function isBack(sinceMs: number): void {
    log.info('alerts.database_back');
    if (clock.steadyMs() - sinceMs >= OUTAGE_MS) backSinceMs = clock.steadyMs();
    awaySinceMs = undefined;
  }

  /** Brings the database in step, if it answers. */
  async function syncIfThere(): Promise<void> {
    if (table !== undefined && clock.steadyMs() >= awayUntilMs) await sync(table).catch(isAway);
  }

  function sync(alerts: AlertTable): Promise<void> {
    return (syncing ??= mergeAll(alerts).finally(() => {
      syncing = undefined;
    }));
  }

  async function mergeAll(alerts: AlertTable): Promise<void> {
    const began = clock.steadyMs();
    const heir = predecessors.length > 0;
    for (const from of predecessors) await alerts.inherit(from, runner);
    predecessors = [];
    const states = memory.dirty();
    for (const [module, state] of states)
      await mergeOne(state, async () => memory.stateStored(module, state, await alerts.mergeState(module, state)));
    const unstored = memory.unstored().toSorted((a, b) => historyLast(a.alert) - historyLast(b.alert));
    for (const { alert, pauseSeconds } of unstored) {
      if (historyLast(alert) === 1 && clock.steadyMs() - began > HISTORY_AT_ONCE_MS) break;
      await mergeOne(alert, async () => {
        memory.adopt(alert.module, await alerts.mergeAlert(alert, runner, pauseSeconds));
        memory.alertStored(alert);
      });
    }
    if (heir || states.length + unstored.length > 0) void keep();
  }

  /** What the database refuses for what it is, is set aside, and the rest goes on. */
  async function mergeOne(what: object, merge: () => Promise<void>): Promise<void> {
    if (setAside.has(what)) return;
    try {
      await merge();
    } catch (error) {
      if (!isRefusal(error)) throw error;
      setAside.add(what);
      log.error('alerts.not_merged', { error: messageOf(error) });
    }
  }

  /** Evaluations of one module are taken in their order, however long one of them waits for the database. */
  function observe(evaluation: AlertEvaluation): Promise<Observation> {
    const { module } = evaluation;
    const mine = (turns.get(module) ?? Promise.resolve()).then(() => observeNext(evaluation));
    const over = mine.then(
      () => undefined,
      () => undefined,
    );
    turns.set(module, over);
    return mine;
  }

  async function observeNext(evaluation: AlertEvaluation): Promise<Observation> {
    const { module, status } = evaluation;
    const known = memory.known(module);
    const confirmed = table === undefined || memory.unconfirmedForMs(module) < CONFIRMED_FOR_MS;
    if (known !== undefined && status === 'ok' && isAtRest(known.state) && confirmed) return { kind: 'none' };
    const id = crypto.randomUUID();
    const there = await inTable((alerts) => alerts.apply(evaluation, policy, id, runner, LEASE_SECONDS));
    const observation = there?.value.observation ?? memory.apply(evaluation, policy, id);
    if (there !== undefined) memory.adopt(module, there.value);
    if (there !== undefined && observation.kind === 'raised') memory.hold(observation.alert);
    if (memory.known(module) !== known) await keep();
    return observation;
  }

  async function history(module: string): Promise<History> {
    const known = (await inTable((alerts) => alerts.known(module)))?.value ?? memory.known(module);
    return known?.state.history ?? NO_HISTORY;
  }

  /** One at a time: what two of them would find is the same. */
  async function takeDue(most: number): Promise<Alert[]> {
    if (taking) return [];
    taking = true;
    try {
      const there = await inTable((alerts) => takeFromTable(alerts, most));
      return there === undefined ? memory.takeDue(most, () => true) : there.value;
    } finally {
      taking = false;
    }
  }

  async function takeFromTable(alerts: AlertTable, most: number): Promise<Alert[]> {
    const takeOver = clock.steadyMs() - backSinceMs >= GRACE_MS;
    const except = memory.idsKnownBetter();
    const rows = await alerts.takeDue({ runner, most, leaseSeconds: LEASE_SECONDS, except, takeOver });
    for (const alert of rows) memory.fly(alert);
    const leaning = memory.leaning();
    if (leaning.length > 0) memory.keepOnly(await alerts.idsOf(runner), leaning);
    return [...rows, ...memory.takeDue(most, ({ alert, stored }) => !stored && setAside.has(alert))];
  }

  async function settle(alert: Alert, attempt: Attempt): Promise<void> {
    memory.settle(alert, attempt);
    await keep();
    await syncIfThere();
  }

  async function list(filter: AlertFilter, offset: number, limit: number): Promise<AlertPage> {
    if (reads === undefined) return { ...memory.list(filter, offset, limit), complete: true };
    await syncIfThere();
    try {
      const page = await reads.list(filter, offset, limit);
      return { ...page, complete: memory.unstored().length === 0 };
    } catch (error) {
      log.warn('alerts.not_listed', { error: messageOf(error) });
      return { ...memory.list(filter, offset, limit), complete: false };
    }
  }

  return {
    observe,
    history,
    takeDue,
    settle,
    list,
    summary: () => reads?.summary() ?? Promise.resolve(alertSummary(memory.alerts(), clock.wallMs())),
    trouble: async () => journal?.trouble() ?? null,
    prune: async (suppressedBefore, otherBefore) => (await reads?.prune(suppressedBefore, otherBefore)) ?? 0,
  };
}

function historyLast({ state }: Alert): 0 | 1 {
  return state === 'pending' ? 0 : 1;
}

/** Classes of PostgreSQL's errors that speak of the data itself; every other trouble may pass. */
const REFUSALS = /^(21|22|23|54)/;

function isRefusal(error: unknown): boolean {
  if (error instanceof AppError) return false;
  const code = codeOf(error);
  return code === undefined ? error instanceof TypeError || error instanceof RangeError : REFUSALS.test(code);
}

// The alerts of this process: the database decides while it answers, so that all processes over it speak with one
// voice; while it does not, memory and a journal go on, and are merged into the database when it is back.

import { type AlertPolicy, isAtRest } from '../domain/alerts.ts';
import { type History, NO_HISTORY } from '../domain/evaluate.ts';
import { messageOf } from '../domain/thrown.ts';
import type { Alert, AlertEvaluation, AlertPage, Alerts, Observation } from '../ports/alerts.ts';
import type { Log } from '../ports/log.ts';
import type { AlertJournal } from './alert-journal.ts';
import { memoryAlerts } from './alert-memory.ts';
import type { AlertTable } from './alert-table.ts';

export interface AlertBookOptions {
  /** Undefined when no database is set up. */
  table: AlertTable | undefined;
  /** Undefined: memory alone bridges the time without a database. */
  journal: AlertJournal | undefined;
  policy: AlertPolicy;
  /** One id per process. */
  runner: string;
  nowMs: () => number;
  log: Log;
}

/** After a failure the database is left alone for this long, so that nothing queues up behind its time limit. */
const LEFT_ALONE_MS = 3_000;
/** How often pending alerts of other processes are looked for. */
const LOOK_EVERY_MS = 10_000;

export function alertBook({ table, journal, policy, runner, nowMs, log }: AlertBookOptions): Alerts {
  const memory = memoryAlerts(nowMs);
  let awayUntilMs = 0;
  let away = false;
  let lookAtMs = 0;
  let merging: Promise<void> | undefined;
  const turns = new Map<string, Promise<void>>();
  const before = journal?.load();
  if (before !== undefined) memory.restore(before);

  const keep = async (): Promise<void> => journal?.save(() => memory.snapshot());

  /** Works with the database once it has everything from here; `undefined` while it does not answer. */
  async function inTable<T>(
    work: (alerts: AlertTable) => Promise<T>,
    patient = false,
  ): Promise<{ value: T } | undefined> {
    if (table === undefined || (nowMs() < awayUntilMs && !patient)) return undefined;
    try {
      await mergeInto(table);
      const value = await work(table);
      if (away) log.info('alerts.database_back');
      away = false;
      return { value };
    } catch (error) {
      awayUntilMs = nowMs() + LEFT_ALONE_MS;
      if (!away) log.warn('alerts.database_away', { error: messageOf(error) });
      away = true;
      return undefined;
    }
  }

  function mergeInto(alerts: AlertTable): Promise<void> {
    return (merging ??= merge(alerts).finally(() => {
      merging = undefined;
    }));
  }

  async function merge(alerts: AlertTable): Promise<void> {
    const what = memory.unmerged();
    if (Object.keys(what.states).length === 0 && what.alerts.length === 0) return;
    memory.merged(what, await alerts.merge(what));
    lookAtMs = 0;
    log.info('alerts.merged', { modules: Object.keys(what.states), alerts: what.alerts.length });
    await keep();
  }

  /** Evaluations of one module are taken in their order, however long one of them waits for the database. */
  function observe(evaluation: AlertEvaluation): Promise<Observation> {
    const { module } = evaluation;
    const mine = (turns.get(module) ?? Promise.resolve()).then(() => observeNext(evaluation));
    const settled = mine.then(
      () => undefined,
      () => undefined,
    );
    turns.set(module, settled);
    return mine;
  }

  async function observeNext(evaluation: AlertEvaluation): Promise<Observation> {
    const { module } = evaluation;
    const known = memory.known(module);
    if (known !== undefined && evaluation.status === 'ok' && isAtRest(known.state)) return { kind: 'none' };
    const id = crypto.randomUUID();
    const there = await inTable((alerts) => alerts.apply(evaluation, policy, id));
    const { observation } = there?.value ?? (await memory.apply(evaluation, policy, id));
    const changed = there === undefined ? memory.known(module) !== known : memory.adopt(module, there.value);
    if (changed) await keep();
    if (observation.kind === 'raised') lookAtMs = 0;
    return observation;
  }

  async function history(module: string): Promise<History> {
    const known = memory.known(module) ?? (await inTable((alerts) => alerts.known(module)))?.value;
    return known?.state.history ?? NO_HISTORY;
  }

  async function takeDue(most: number, leaseSeconds: number): Promise<Alert[]> {
    if (nowMs() < lookAtMs && !hasUnmerged()) return [];
    lookAtMs = nowMs() + LOOK_EVERY_MS;
    const there = await inTable((alerts) => alerts.takeDue(runner, most, leaseSeconds));
    if (there === undefined) return memory.takeDue(runner, most, leaseSeconds);
    if (there.value.length === most) lookAtMs = 0;
    return there.value;
  }

  function hasUnmerged(): boolean {
    const { states, alerts } = memory.unmerged();
    return alerts.length > 0 || Object.keys(states).length > 0;
  }

  async function settle(...[alert, attempt]: Parameters<Alerts['settle']>): Promise<void> {
    if (attempt.pauseSeconds !== null) lookAtMs = Math.min(lookAtMs, nowMs() + attempt.pauseSeconds * 1000);
    const there = memory.keeps(alert.id) ? undefined : await inTable((alerts) => alerts.settle(runner, alert, attempt));
    if (there === undefined) await memory.settle(runner, alert, attempt);
    else if (there.value !== undefined) memory.adopt(alert.module, there.value);
    await keep();
  }

  /** People can wait for the whole answer: the database is asked although it has just failed, and a second time. */
  async function list(...[filter, offset, limit]: Parameters<Alerts['list']>): Promise<AlertPage> {
    const ask = (alerts: AlertTable) => alerts.list(filter, offset, limit);
    const there = (await inTable(ask, true)) ?? (await inTable(ask, true));
    const { results, count } = there?.value ?? (await memory.list(filter, offset, limit));
    return { results, count, complete: table === undefined || there !== undefined };
  }

  return {
    observe,
    history,
    takeDue,
    settle,
    list,
    summary: async () => (await inTable((alerts) => alerts.summary()))?.value ?? memory.summary(),
    prune: async (...befores) => (await inTable((alerts) => alerts.prune(...befores), true))?.value ?? 0,
  };
}

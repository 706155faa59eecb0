// What one process knows of alerts: the state of each module, and the alerts that it has raised or taken and that are not
// settled yet, so that it can go on without the database.

import { afterAttempt, type Known, observationOf, reachedSomebody, sameState, stateAfter } from './documents.ts';
import { type AlertPolicy, type AlertState, reduce, UNTOLD } from './engine.ts';
import type { Alert, AlertEvaluation, AlertFilter, AlertSummary, Attempt, Observation } from './port.ts';

/** What this process knows of a module. */
export interface Remembered extends Known {
  /** Changed since it was last in step with the database. */
  dirty: boolean;
  /** The last alert that both knew of when they were in step, and those that were raised here since; '' is none. */
  lineage: string[];
}

/** An alert that this process looks after. */
export interface Held {
  alert: Alert;
  /** True while the database has this very content. */
  stored: boolean;
}

/** Plain data for the journal; members are never changed, only replaced. */
export interface Snapshot {
  /** Who wrote it, and those before it whose alerts it has not inherited yet. */
  runners: string[];
  states: Record<string, Remembered>;
  held: Held[];
}

interface Entry extends Held {
  dueMs: number;
  /** On its way until then. */
  flyingUntilMs: number;
}

export interface Clock {
  /** Milliseconds of the calendar. */
  wallMs: () => number;
  /** Milliseconds that never jump. */
  steadyMs: () => number;
}

/** However long the database is away, and whatever flaps meanwhile. */
const MOST_KEPT = 2000;
const LONGEST_LINEAGE = 50;

/** `leaseMs`: the longest that a send may be on its way. */
export function alertMemory({ wallMs, steadyMs }: Clock, leaseMs: number) {
  const states = new Map<string, Remembered>();
  /** When the database last said so, on the steady clock. */
  const confirmedMs = new Map<string, number>();
  const entries = new Map<string, Entry>();
  const over = recentIds();

  const flying = ({ flyingUntilMs }: Entry): boolean => flyingUntilMs > steadyMs();

  function remember(module: string, state: AlertState): void {
    const before = states.get(module);
    if (before !== undefined && sameState(before.state, state)) return;
    const lineage = before === undefined ? [''] : before.lineage;
    const id = lastAlertOf(state);
    const longer = lineage.includes(id)
      ? lineage
      : [...lineage.slice(0, 1), ...lineage.slice(1).slice(-LONGEST_LINEAGE), id];
    states.set(module, { state, version: before?.version ?? -1, dirty: true, lineage: longer });
  }

  function put(alert: Alert, stored: boolean, dueMs = steadyMs(), flyingUntilMs = 0): void {
    entries.set(alert.id, { alert, stored, dueMs, flyingUntilMs });
  }

  /** What waits is never dropped; of the rest the oldest goes, what was only suppressed first. */
  function makeRoom(): void {
    if (entries.size < MOST_KEPT) return;
    const all = [...entries.values()].map((entry) => entry.alert);
    const done = all.find(({ state }) => state === 'suppressed') ?? all.find(({ state }) => state !== 'pending');
    if (done !== undefined) entries.delete(done.id);
  }

  /** The engine without the database. */
  function apply(evaluation: AlertEvaluation, policy: AlertPolicy, id: string): Observation {
    const { module, at } = evaluation;
    const step = reduce(states.get(module)?.state ?? UNTOLD, { ...evaluation, atMs: Date.parse(at) }, policy, id);
    const observation = observationOf(step, evaluation, policy, id);
    if ('alert' in observation) {
      makeRoom();
      if (!entries.has(id)) put(observation.alert, false);
    }
    remember(module, step.state);
    return observation;
  }

  /** Takes over what the database says, unless something else is still to be merged. */
  function adopt(module: string, { state, version }: Known): void {
    const before = states.get(module);
    if (before?.dirty === true) return;
    if (before?.version !== version)
      states.set(module, { state, version, dirty: false, lineage: [lastAlertOf(state)] });
    confirmedMs.set(module, steadyMs());
  }

  /** Pending alerts that are due; they are on their way from now on. */
  function takeDue(most: number, which: (held: Held) => boolean): Alert[] {
    const due = [...entries.values()]
      .filter((entry) => entry.alert.state === 'pending' && !flying(entry) && entry.dueMs <= steadyMs() && which(entry))
      .toSorted((a, b) => a.alert.raised_at.localeCompare(b.alert.raised_at))
      .slice(0, most);
    for (const { alert, stored, dueMs } of due) put(alert, stored, dueMs, steadyMs() + leaseMs);
    return due.map(({ alert }) => alert);
  }

  /** Writes down what an attempt brought. */
  function settle(alert: Alert, attempt: Attempt): void {
    const after = afterAttempt(alert, attempt, wallMs());
    put(after, false, steadyMs() + (attempt.pauseSeconds ?? 0) * 1000);
    if (after.state !== 'pending') over.add(alert.id);
    // The database draws the same conclusion from the alert itself, so this alone needs no merging.
    const before = states.get(alert.module);
    if (before !== undefined) states.set(alert.module, { ...before, state: stateAfter(before.state, after) });
  }

  return {
    apply,
    adopt,
    takeDue,
    settle,
    known: (module: string): Remembered | undefined => states.get(module),
    /** Milliseconds since the database was last asked about a module. */
    unconfirmedForMs: (module: string): number => steadyMs() - (confirmedMs.get(module) ?? Number.NEGATIVE_INFINITY),
    /** The database has this alert, and it is for this process to send; it may be on its way already. */
    hold: (alert: Alert): void => {
      if (!entries.has(alert.id) && !over.has(alert.id)) put(alert, true);
    },
    /** The same, and it is on its way. */
    fly: (alert: Alert): void => put(alert, true, steadyMs(), steadyMs() + leaseMs),
    /** Alerts of which this process knows more than the database: they are on their way, or were just settled. */
    idsKnownBetter: (): string[] =>
      [...entries.values()].filter((entry) => flying(entry) || !entry.stored).map(({ alert }) => alert.id),
    /** What the database does not have yet; an alert that is on its way is left out until its attempt is settled. */
    unstored: (): { alert: Alert; pauseSeconds: number }[] =>
      [...entries.values()]
        .filter((entry) => !entry.stored && !flying(entry))
        .map(({ alert, dueMs }) => ({ alert, pauseSeconds: Math.max(0, dueMs - steadyMs()) / 1000 })),
    dirty: (): [string, Remembered][] => [...states].filter(([, each]) => each.dirty),
    /** The database has this content now; what has changed meanwhile stays to be merged. */
    alertStored(alert: Alert): void {
      const entry = entries.get(alert.id);
      if (entry?.alert !== alert) return;
      if (alert.state === 'pending') entries.set(alert.id, { ...entry, stored: true });
      else entries.delete(alert.id);
    },
    stateStored(module: string, before: Remembered, now: Known): void {
      if (states.get(module) !== before) return;
      states.set(module, { ...now, dirty: false, lineage: [lastAlertOf(now.state)] });
      confirmedMs.set(module, steadyMs());
    },
    /** Those of which only the database can say whether they are still ours. */
    leaning: (): readonly object[] => [...entries.values()].filter((entry) => entry.stored && !flying(entry)),
    /** Forgets those of `leaning` that others look after by now. */
    keepOnly(ids: ReadonlySet<string>, leaning: readonly object[]): void {
      const asked = new Set(leaning);
      for (const entry of entries.values())
        if (asked.has(entry) && !ids.has(entry.alert.id)) entries.delete(entry.alert.id);
    },
    list(filter: AlertFilter, offset: number, limit: number): { results: Alert[]; count: number } {
      const found = [...entries.values()]
        .map(({ alert }) => alert)
        .filter((alert) => matches(alert, filter))
        .toSorted((a, b) => b.raised_at.localeCompare(a.raised_at) || a.id.localeCompare(b.id));
      return { results: found.slice(offset, offset + limit), count: found.length };
    },
    alerts: (): Alert[] => [...entries.values()].map(({ alert }) => alert),
    snapshot: (runners: string[]): Snapshot => ({
      runners,
      states: Object.fromEntries(states),
      held: [...entries.values()].map(({ alert, stored }) => ({ alert, stored })),
    }),
    restore(snapshot: Snapshot): void {
      for (const [module, each] of Object.entries(snapshot.states)) states.set(module, each);
      for (const { alert, stored } of snapshot.held) put(alert, stored);
    },
  };
}

/** Alerts that have ended here: an answer that comes late must not bring them back. */
function recentIds() {
  const ids = new Set<string>();
  return {
    has: (id: string): boolean => ids.has(id),
    add(id: string): void {
      ids.add(id);
      const [oldest] = ids;
      if (ids.size > MOST_KEPT && oldest !== undefined) ids.delete(oldest);
    },
  };
}

function lastAlertOf({ raised }: AlertState): string {
  return raised?.id ?? '';
}

function matches(alert: Alert, { module, level, state, since, until }: AlertFilter): boolean {
  const raisedMs = Date.parse(alert.raised_at);
  return (
    (module === undefined || alert.module === module) &&
    (level === undefined || alert.level === level) &&
    (state === undefined || alert.state === state) &&
    (since === undefined || raisedMs >= Date.parse(since)) &&
    (until === undefined || raisedMs < Date.parse(until))
  );
}

// The figures of alerts that are kept in memory alone; the database counts its own.

export function alertSummary(alerts: readonly Alert[], nowMs: number): AlertSummary {
  const inOrder = alerts.toSorted((a, b) => a.raised_at.localeCompare(b.raised_at));
  const pending = inOrder.filter(({ state }) => state === 'pending');
  const unreached = pending.filter((alert) => !reachedSomebody(alert));
  const failed = inOrder.filter(({ state }) => state === 'failed');
  const sent = inOrder.flatMap(({ sent_at: at }) => at ?? []).toSorted();
  const oldest = unreached[0];
  return {
    pending: pending.length,
    oldest_pending_seconds:
      oldest === undefined ? 0 : Math.max(0, Math.round((nowMs - Date.parse(oldest.raised_at)) / 1000)),
    partly_sent: pending.length - unreached.length,
    pending_reason: [...unreached, ...pending].find(({ reason }) => reason !== null)?.reason ?? null,
    failed: failed.length,
    failed_unreached: failed.filter((alert) => !reachedSomebody(alert)).length,
    failed_reason: failed.at(-1)?.reason ?? null,
    last_sent_at: sent.at(-1) ?? null,
  };
}

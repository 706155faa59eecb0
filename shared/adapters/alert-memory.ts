// Alerts in the memory of one process: what it knows of each module, and what happened while the database was away.

import { type AlertPolicy, type AlertState, reduce, UNTOLD } from '../domain/alerts.ts';
import type { Alert, AlertEvaluation, AlertFilter, AlertSummary, Attempt } from '../ports/alerts.ts';
import {
  afterAttempt,
  type AlertStore,
  FAILED_SHOWN_DAYS,
  type Known,
  observationOf,
  stateAfter,
} from './alert-store.ts';

/** What one process knows of a module. */
export interface Remembered extends Known {
  /** Changed since it was last in step with the database. */
  dirty: boolean;
}

export interface MemoryAlerts extends AlertStore {
  /** Undefined when the module was never heard of. */
  known(module: string): Remembered | undefined;
  /** Takes over what the database says, unless something else is still to be merged; true when that is new. */
  adopt(module: string, known: Known): boolean;
  /** True when the alert is kept here, and not in the database. */
  keeps(id: string): boolean;
  /** What the database does not have yet; an alert that is being sent is left out until its attempt is settled. */
  unmerged(): Snapshot;
  /** These are in the database now; what has changed meanwhile stays. */
  merged(what: Snapshot, states: ReadonlyMap<string, Known>): void;
  /** Everything, for the journal. */
  snapshot(): Snapshot;
  restore(snapshot: Snapshot): void;
}

/** Plain data; members are never changed, only replaced. */
export interface Snapshot {
  states: Record<string, Remembered>;
  alerts: Alert[];
}

const DAY_MS = 86_400_000;
/** However long the database is away, and whatever flaps meanwhile. */
const MOST_KEPT = 2000;

export function memoryAlerts(nowMs: () => number): MemoryAlerts {
  const states = new Map<string, Remembered>();
  const alerts = new Map<string, Alert>();
  const leases = new Map<string, number>();

  function remember(module: string, state: AlertState): Remembered {
    const before = states.get(module);
    if (before?.state === state) return before;
    const after = { state, version: before?.version ?? -1, dirty: true };
    states.set(module, after);
    return after;
  }

  /** What waits is never dropped; of the rest the oldest goes. */
  function add(alert: Alert): void {
    alerts.set(alert.id, alert);
    if (alerts.size <= MOST_KEPT) return;
    const done =
      [...alerts.values()].find(({ state }) => state === 'suppressed') ??
      [...alerts.values()].find(({ state }) => state !== 'pending');
    if (done !== undefined) alerts.delete(done.id);
  }

  async function apply(evaluation: AlertEvaluation, policy: AlertPolicy, id: string) {
    const { module, at } = evaluation;
    const before = states.get(module)?.state ?? UNTOLD;
    const step = reduce(before, { ...evaluation, atMs: Date.parse(at) }, policy, id);
    const observation = observationOf(step, evaluation, policy, id);
    if ('alert' in observation) add(observation.alert);
    const { state, version } = remember(module, sameState(before, step.state) ? before : step.state);
    return { state, version, observation };
  }

  async function takeDue(_: string, most: number, leaseSeconds: number): Promise<Alert[]> {
    const now = nowMs();
    const due = [...alerts.values()]
      .filter(({ id, state, next_attempt_at: next }) => {
        const leased = (leases.get(id) ?? 0) > now;
        return state === 'pending' && !leased && (next === null || Date.parse(next) <= now);
      })
      .toSorted((a, b) => a.raised_at.localeCompare(b.raised_at))
      .slice(0, most);
    for (const { id } of due) leases.set(id, now + leaseSeconds * 1000);
    return due;
  }

  async function settle(_: string, alert: Alert, attempt: Attempt): Promise<Known | undefined> {
    const after = afterAttempt(alert, attempt, nowMs());
    alerts.set(alert.id, after);
    leases.delete(alert.id);
    const before = states.get(alert.module)?.state;
    return before === undefined ? undefined : remember(alert.module, stateAfter(before, after, nowMs()));
  }

  function unmerged(): Snapshot {
    const dirty = [...states].filter(([, each]) => each.dirty);
    const idle = [...alerts.values()].filter(({ id }) => (leases.get(id) ?? 0) <= nowMs());
    return { states: Object.fromEntries(dirty), alerts: idle };
  }

  function merged(what: Snapshot, now: ReadonlyMap<string, Known>): void {
    for (const [module, before] of Object.entries(what.states)) {
      const known = now.get(module);
      const current = states.get(module);
      if (known === undefined || current === undefined) continue;
      if (current === before) states.set(module, { ...known, dirty: false });
      else states.set(module, { ...current, version: known.version });
    }
    for (const alert of what.alerts) if (alerts.get(alert.id) === alert) alerts.delete(alert.id);
  }

  return {
    apply,
    takeDue,
    settle,
    list: async (filter, offset, limit) => {
      const found = [...alerts.values()]
        .filter((alert) => matches(alert, filter))
        .toSorted((a, b) => b.raised_at.localeCompare(a.raised_at) || a.id.localeCompare(b.id));
      return { results: found.slice(offset, offset + limit), count: found.length };
    },
    summary: async () => summaryOf([...alerts.values()], nowMs()),
    keeps: (id) => alerts.has(id),
    known: (module) => states.get(module),
    adopt(module, { state, version }) {
      const before = states.get(module);
      if (before !== undefined && (before.dirty || before.version === version)) return false;
      states.set(module, { state, version, dirty: false });
      return true;
    },
    unmerged,
    merged,
    snapshot: () => ({ states: Object.fromEntries(states), alerts: [...alerts.values()] }),
    restore(snapshot) {
      for (const [module, each] of Object.entries(snapshot.states)) states.set(module, each);
      for (const alert of snapshot.alerts) alerts.set(alert.id, alert);
    },
  };
}

/** By their content. */
export function sameState(one: AlertState, other: AlertState): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
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

function summaryOf(alerts: readonly Alert[], nowMs: number): AlertSummary {
  const inOrder = alerts.toSorted((a, b) => a.raised_at.localeCompare(b.raised_at));
  const pending = inOrder.filter(({ state }) => state === 'pending');
  const oldest = pending[0];
  const shownFrom = nowMs - FAILED_SHOWN_DAYS * DAY_MS;
  const failed = inOrder.filter(({ state, raised_at: at }) => state === 'failed' && Date.parse(at) >= shownFrom);
  const sent = inOrder.flatMap(({ sent_at: at }) => at ?? []).toSorted();
  return {
    pending: pending.length,
    oldest_pending_seconds:
      oldest === undefined ? 0 : Math.max(0, Math.round((nowMs - Date.parse(oldest.raised_at)) / 1000)),
    pending_reason: oldest?.reason ?? null,
    failed: failed.length,
    failed_reason: failed.at(-1)?.reason ?? null,
    last_sent_at: sent.at(-1) ?? null,
  };
}

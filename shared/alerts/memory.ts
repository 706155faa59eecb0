// Holds the alert state of one process: each module, and alerts it raised or took that are not
// settled yet. With it the process can continue without the database.

import type { Alert, AlertEvaluation, AlertFilter, AlertSummary, Attempt, Observation } from './port.ts';
import {
  afterAttempt,
  type AlertPolicy,
  type AlertState,
  observationOf,
  wasDelivered,
  reduce,
  sameState,
  stateAfter,
  UNREPORTED,
} from './rules.ts';

/** The state of a module in this process. */
export interface Remembered {
  state: AlertState;
  /** True if changed since the last sync with the database. */
  dirty: boolean;
  /** The last alert at the last sync, and those raised here since; '' is none. */
  lineage: string[];
}

/** An alert that this process is responsible for. */
export interface Held {
  alert: Alert;
  /** True while the database has this content. */
  stored: boolean;
}

/** Plain data for the journal; members are never changed, only replaced. */
export interface Snapshot {
  /** The writing process, and earlier ones whose alerts it has not inherited yet. */
  runners: string[];
  states: Record<string, Remembered>;
  held: Held[];
}

interface Entry extends Held {
  dueMs: number;
  /** Being sent until then. */
  flyingUntilMs: number;
}

export interface Clock {
  /** Wall clock in milliseconds. */
  wallMs: () => number;
  /** Monotonic clock in milliseconds. */
  steadyMs: () => number;
}

/** The most alerts to keep during an outage, even if modules flap. */
const MAX_KEPT = 2000;
const MAX_LINEAGE = 50;

export class AlertMemory {
  readonly #clock: Clock;
  readonly #leaseMs: number;
  readonly #states = new Map<string, Remembered>();
  /** When the database last confirmed a module, on the monotonic clock. */
  readonly #confirmedMs = new Map<string, number>();
  readonly #entries = new Map<string, Entry>();
  /** Alerts that have ended here: a late answer must not bring them back. */
  readonly #ended = new Set<string>();

  /** `leaseMs`: the longest duration of a send. */
  constructor(clock: Clock, leaseMs: number) {
    this.#clock = clock;
    this.#leaseMs = leaseMs;
  }

  known(module: string): Remembered | undefined {
    return this.#states.get(module);
  }

  /** Milliseconds since the database last confirmed a module. */
  unconfirmedForMs(module: string): number {
    return this.#clock.steadyMs() - (this.#confirmedMs.get(module) ?? Number.NEGATIVE_INFINITY);
  }

  /** Runs the engine without the database. */
  apply(evaluation: AlertEvaluation, policy: AlertPolicy, id: string): Observation {
    const { module, at } = evaluation;
    const before = this.#states.get(module)?.state ?? UNREPORTED;
    const step = reduce(before, { ...evaluation, atMs: Date.parse(at) }, policy, id);
    const observation = observationOf(step, evaluation, policy, id);
    if ('alert' in observation) {
      this.#makeRoom();
      if (!this.#entries.has(id)) this.#put(observation.alert, false);
    }
    this.#remember(module, step.state);
    return observation;
  }

  #remember(module: string, state: AlertState): void {
    const before = this.#states.get(module);
    if (before !== undefined && sameState(before.state, state)) return;
    const lineage = before === undefined ? [''] : before.lineage;
    const id = lastAlertOf(state);
    const longer = lineage.includes(id)
      ? lineage
      : [...lineage.slice(0, 1), ...lineage.slice(1).slice(-MAX_LINEAGE), id];
    this.#states.set(module, { state, dirty: true, lineage: longer });
  }

  /** Adopts the state of the database, unless local changes are still to be merged. */
  adopt(module: string, stored: AlertState): void {
    const before = this.#states.get(module);
    if (before?.dirty === true) return;
    // The database will draw the same conclusions from the alerts that it does not have yet.
    const settled = this.#all().filter((entry) => !entry.stored && entry.alert.module === module);
    const state = settled.reduce((known, { alert }) => stateAfter(known, alert), stored);
    if (before === undefined || !sameState(before.state, state)) this.#inStep(module, state);
    this.#confirmedMs.set(module, this.#clock.steadyMs());
  }

  #inStep(module: string, state: AlertState): void {
    this.#states.set(module, { state, dirty: false, lineage: [lastAlertOf(state)] });
  }

  /** States that the database does not have yet. */
  dirty(): [string, Remembered][] {
    return [...this.#states].filter(([, { dirty }]) => dirty);
  }

  /** The database has merged a state; later changes are still to be merged. */
  stateStored(module: string, before: Remembered, now: AlertState): void {
    if (this.#states.get(module) !== before) return;
    this.#inStep(module, now);
    this.#confirmedMs.set(module, this.#clock.steadyMs());
  }

  /** Pending alerts that are due; they count as being sent from now on. */
  takeDue(most: number, which: (held: Held) => boolean): Alert[] {
    const now = this.#clock.steadyMs();
    const due = this.#all()
      .filter((entry) => entry.alert.state === 'pending' && !this.#isFlying(entry) && entry.dueMs <= now)
      .filter(which)
      .toSorted((a, b) => a.alert.raised_at.localeCompare(b.alert.raised_at))
      .slice(0, most);
    for (const { alert, stored, dueMs } of due) this.#put(alert, stored, dueMs, now + this.#leaseMs);
    return due.map(({ alert }) => alert);
  }

  /** Records the outcome of an attempt. */
  settle(alert: Alert, attempt: Attempt): void {
    const after = afterAttempt(alert, attempt, this.#clock.wallMs());
    this.#put(after, false, this.#clock.steadyMs() + (attempt.pauseSeconds ?? 0) * 1000);
    if (after.state !== 'pending') this.#end(alert.id);
    // The database draws the same conclusion from the alert itself, so this alone needs no merging.
    const before = this.#states.get(alert.module);
    if (before !== undefined) this.#states.set(alert.module, { ...before, state: stateAfter(before.state, after) });
  }

  #end(id: string): void {
    this.#ended.add(id);
    const [oldest] = this.#ended;
    if (this.#ended.size > MAX_KEPT && oldest !== undefined) this.#ended.delete(oldest);
  }

  /** The database has this alert, and this process must send it; it may be sending already. */
  hold(alert: Alert): void {
    if (!this.#entries.has(alert.id) && !this.#ended.has(alert.id)) this.#put(alert, true);
  }

  /** The same, and it is being sent now. */
  fly(alert: Alert): void {
    const now = this.#clock.steadyMs();
    this.#put(alert, true, now, now + this.#leaseMs);
  }

  /**
   * Alerts with newer data here than in the database: they are being sent, or were just settled.
   */
  idsKnownBetter(): string[] {
    return this.#all()
      .filter((entry) => this.#isFlying(entry) || !entry.stored)
      .map(({ alert }) => alert.id);
  }

  /** Alerts that the database does not have yet, except those being sent. */
  unstored(): { alert: Alert; pauseSeconds: number }[] {
    const now = this.#clock.steadyMs();
    return this.#all()
      .filter((entry) => !entry.stored && !this.#isFlying(entry))
      .map(({ alert, dueMs }) => ({ alert, pauseSeconds: Math.max(0, dueMs - now) / 1000 }));
  }

  /** The database has this content now; later changes are still to be merged. */
  alertStored(alert: Alert): void {
    const entry = this.#entries.get(alert.id);
    if (entry?.alert !== alert) return;
    if (alert.state === 'pending') this.#entries.set(alert.id, { ...entry, stored: true });
    else this.#entries.delete(alert.id);
  }

  /** Alerts whose owner only the database knows. */
  leaning(): readonly Held[] {
    return this.#all().filter((entry) => entry.stored && !this.#isFlying(entry));
  }

  /** Forgets those of `leaning` that belong to other processes by now. */
  keepOnly(ids: ReadonlySet<string>, leaning: readonly Held[]): void {
    for (const entry of leaning) {
      const { id } = entry.alert;
      if (this.#entries.get(id) === entry && !ids.has(id)) this.#entries.delete(id);
    }
  }

  list(filter: AlertFilter, offset: number, limit: number): { results: Alert[]; count: number } {
    const found = this.#all()
      .map(({ alert }) => alert)
      .filter((alert) => matches(alert, filter))
      .toSorted((a, b) => b.raised_at.localeCompare(a.raised_at) || a.id.localeCompare(b.id));
    return { results: found.slice(offset, offset + limit), count: found.length };
  }

  summary(): AlertSummary {
    return summaryOf(
      this.#all().map(({ alert }) => alert),
      this.#clock.wallMs(),
    );
  }

  snapshot(runners: string[]): Snapshot {
    const held = this.#all().map(({ alert, stored }) => ({ alert, stored }));
    return { runners, states: Object.fromEntries(this.#states), held };
  }

  restore({ states, held }: Snapshot): void {
    for (const [module, each] of Object.entries(states)) this.#states.set(module, each);
    for (const { alert, stored } of held) this.#put(alert, stored);
  }

  #all(): Entry[] {
    return [...this.#entries.values()];
  }

  #isFlying({ flyingUntilMs }: Entry): boolean {
    return flyingUntilMs > this.#clock.steadyMs();
  }

  #put(alert: Alert, stored: boolean, dueMs = this.#clock.steadyMs(), flyingUntilMs = 0): void {
    this.#entries.set(alert.id, { alert, stored, dueMs, flyingUntilMs });
  }

  /** Drops the oldest alert, muted ones first; pending alerts are never dropped. */
  #makeRoom(): void {
    if (this.#entries.size < MAX_KEPT) return;
    const all = this.#all().map(({ alert }) => alert);
    const done = all.find(({ state }) => state === 'suppressed') ?? all.find(({ state }) => state !== 'pending');
    if (done !== undefined) this.#entries.delete(done.id);
  }
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

/** Figures of the alerts in memory; the database counts its own. */
function summaryOf(alerts: readonly Alert[], nowMs: number): AlertSummary {
  const inOrder = alerts.toSorted((a, b) => a.raised_at.localeCompare(b.raised_at));
  const pending = inOrder.filter(({ state }) => state === 'pending');
  const unreached = pending.filter((alert) => !wasDelivered(alert));
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
    failed_unreached: failed.filter((alert) => !wasDelivered(alert)).length,
    failed_reason: failed.at(-1)?.reason ?? null,
    last_sent_at: sent.at(-1) ?? null,
  };
}

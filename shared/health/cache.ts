// Keeps health in memory. Each module is serialized once per measurement, the whole once per
// change, on the next request. A module that was not measured for too long becomes critical. Node
// only.

import { hash } from 'node:crypto';
import { DAY_MS, due } from '@holdfast/kit/time';
import { type History, type Status, worstOf } from '../settings/status.ts';
import type {
  HealthCache,
  HealthSample,
  HealthView,
  Measurement,
  ModuleState,
  Prepared,
  SharedResult,
} from './port.ts';

export interface HealthCacheOptions {
  /** Every module with its seconds between two measurements. */
  intervals: Readonly<Record<string, number>>;
  nowMs: () => number;
  /** How often the host checks for due modules; default 1. */
  tickSeconds?: number;
}

interface Entry {
  startedMs: number | undefined;
  /** When it was put last. */
  putMs: number;
  /** Set while it is being measured, so that it is measured only once. */
  takenUntilMs: number;
  measurement: Measurement | undefined;
  /** Another process made it. */
  isAdopted: boolean;
  /** When its status became the current one; exact if the previous status is known. */
  since: { at: string; exact: boolean };
  /** True once it was not measured for too long. */
  stale: boolean;
  texts: Record<HealthView, string>;
}

/** A measurement that takes longer is lost, and the module is due again. */
const TAKEN_FOR_MS = 30_000;
/** A process that is late is given this long before another one measures. */
const ADOPTED_GRACE_SECONDS = 10;
const REMEMBERED_MS = DAY_MS;
/** Samples come every five minutes: after an older one, the status until the start is unknown. */
const GOES_ON_MS = 900_000;

export class MemoryHealthCache implements HealthCache {
  /** Resolves once every module was measured. */
  readonly complete: Promise<void>;
  readonly #intervals: Readonly<Record<string, number>>;
  readonly #nowMs: () => number;
  readonly #tickSeconds: number;
  readonly #originMs: number;
  readonly #entries: Map<string, Entry>;
  readonly #completed: () => void;
  #prepared: Partial<Record<HealthView, Prepared>> = {};
  #staleAtMs = Number.POSITIVE_INFINITY;
  #lastUpdate: string | null = null;
  #samples: HealthSample[] | undefined;

  constructor({ intervals, nowMs, tickSeconds = 1 }: HealthCacheOptions) {
    this.#intervals = intervals;
    this.#nowMs = nowMs;
    this.#tickSeconds = tickSeconds;
    this.#originMs = Math.floor(nowMs() / 1000) * 1000;
    this.#entries = new Map(Object.keys(intervals).map((name) => [name, unmeasured(name)]));
    const { promise, resolve } = Promise.withResolvers<void>();
    this.complete = promise;
    this.#completed = resolve;
  }

  current(view: HealthView): Prepared {
    this.#markStale();
    return (this.#prepared[view] ??= this.#prepare(view));
  }

  put(measurement: Measurement): Status | undefined {
    const entry = this.#entries.get(measurement.module);
    if (entry === undefined) return undefined;
    const before = entry.measurement?.status;
    entry.takenUntilMs = 0;
    entry.putMs = this.#nowMs();
    entry.isAdopted = false;
    this.#keep(entry, measurement, false);
    this.#lastUpdate = measurement.updated_at;
    if ([...this.#entries.values()].every((each) => each.measurement !== undefined)) this.#completed();
    return before;
  }

  adopt({ measurement, since, since_is_exact: exact, ageMs }: SharedResult): boolean {
    const entry = this.#entries.get(measurement.module);
    const publishedMs = this.#nowMs() - ageMs;
    if (entry?.measurement === undefined || publishedMs < entry.putMs || this.#isTaken(entry, this.#nowMs()))
      return false;
    Object.assign(entry, { startedMs: publishedMs, putMs: publishedMs, isAdopted: true });
    this.#keep(entry, measurement, false);
    if (since !== null) entry.since = { at: since, exact };
    this.#lastUpdate = measurement.updated_at;
    return true;
  }

  takeDue(now: number): string[] {
    const names = [...this.#entries].filter(
      ([name, entry]) => !this.#isTaken(entry, now) && this.#isDue(name, entry, now),
    );
    for (const [, entry] of names) Object.assign(entry, { startedMs: now, takenUntilMs: now + TAKEN_FOR_MS });
    return names.map(([name]) => name);
  }

  #isTaken({ takenUntilMs }: Entry, now: number): boolean {
    return now < takenUntilMs && takenUntilMs <= now + TAKEN_FOR_MS;
  }

  #isDue(name: string, { startedMs, measurement, isAdopted }: Entry, now: number): boolean {
    const seconds = Math.min(this.#intervals[name] ?? 0, measurement?.againSeconds ?? Infinity);
    if (!isAdopted || startedMs === undefined || startedMs > now) return due(startedMs, seconds, now, this.#originMs);
    return now - startedMs >= (seconds + ADOPTED_GRACE_SECONDS) * 1000;
  }

  isComplete(): boolean {
    this.#markStale();
    return [...this.#entries.values()].every(({ measurement, stale }) => measurement !== undefined && !stale);
  }

  history(module: string): History | undefined {
    return this.#entries.get(module)?.measurement;
  }

  /** The module is due at the next tick. */
  forget(module: string, begunBeforeMs = Number.POSITIVE_INFINITY): void {
    const entry = this.#entries.get(module);
    if (entry?.startedMs !== undefined && entry.startedMs < begunBeforeMs) entry.startedMs = undefined;
  }

  states(): ModuleState[] {
    this.#markStale();
    return [...this.#entries].map(([module, { measurement = null, since }]) => ({
      module,
      measurement,
      since: measurement === null ? null : since.at,
      since_is_exact: since.exact,
    }));
  }

  remember(added: readonly HealthSample[]): void {
    const oldest = new Date(this.#nowMs() - REMEMBERED_MS).toISOString();
    const byTime = new Map([...(this.#samples ?? []), ...added].map((sample) => [sample.at, sample]));
    const isFirst = this.#samples === undefined;
    this.#samples = [...byTime.values()].filter(({ at }) => at >= oldest).toSorted((a, b) => (a.at < b.at ? -1 : 1));
    if (!isFirst) return;
    for (const entry of this.#entries.values())
      if (entry.measurement !== undefined && !entry.since.exact) this.#goOn(entry, entry.measurement);
  }

  remembered(): HealthSample[] | undefined {
    return this.#samples;
  }

  /** The kept measurements, in the order of the table. */
  measurements(): Measurement[] {
    return [...this.#entries.values()].flatMap(({ measurement }) => measurement ?? []);
  }

  #prepare(view: HealthView): Prepared {
    const modules = [...this.#entries].map(([name, { texts }]) => `${JSON.stringify(name)}:${texts[view]}`);
    const status = worstOf([...this.#entries.values()].map(({ measurement }) => measurement?.status ?? 'note'));
    const head = JSON.stringify({ status, updated_at: this.#lastUpdate }).slice(0, -1);
    const body = `${head},"modules":{${modules.join(',')}}}`;
    return { body, etag: `"${hash('sha1', body, 'base64url')}"` };
  }

  #keep(entry: Entry, measurement: Measurement, stale: boolean): void {
    const before = entry.measurement?.status;
    if (before !== measurement.status)
      entry.since = { at: new Date(this.#nowMs()).toISOString(), exact: before !== undefined };
    if (before === undefined) this.#goOn(entry, measurement);
    entry.measurement = measurement;
    entry.stale = stale;
    entry.texts = textsOf(measurement);
    this.#prepared = {};
    this.#staleAtMs = Math.min(...[...this.#entries].map(([name, each]) => this.#staleMs(name, each)));
  }

  /** A status that lasted until just before the start continues. */
  #goOn(entry: Entry, { module, status }: Pick<Measurement, 'module' | 'status'>): void {
    const newest = this.#samples?.at(-1);
    if (newest === undefined || Date.parse(entry.since.at) - Date.parse(newest.at) > GOES_ON_MS) return;
    const before = newest.modules[module];
    if (before?.status === status) entry.since = { at: before.since, exact: before.since_is_exact };
  }

  /** Slightly more than two intervals after the last measurement; never if it is marked already. */
  #staleMs(name: string, { putMs, measurement, stale }: Entry): number {
    if (measurement === undefined || stale) return Number.POSITIVE_INFINITY;
    return putMs + Math.max(this.#intervals[name] ?? 0, this.#tickSeconds) * 2000 + TAKEN_FOR_MS;
  }

  #markStale(): void {
    if (this.#nowMs() < this.#staleAtMs) return;
    for (const [name, entry] of this.#entries) {
      if (entry.measurement === undefined || this.#nowMs() < this.#staleMs(name, entry)) continue;
      const { updated_at: last, message } = entry.measurement;
      const says = `Not measured since ${last}. Last result: ${message}`;
      const { figure: _, ...rest } = entry.measurement;
      this.#keep(entry, { ...rest, status: 'critical', message: says, details: [says], shouldAlert: true }, true);
    }
  }
}

function unmeasured(name: string): Entry {
  const texts = textsOf({ module: name, status: 'note', message: 'Not measured yet.', updated_at: null, data: {} });
  const since = { at: '', exact: false };
  return {
    startedMs: undefined,
    putMs: 0,
    takenUntilMs: 0,
    measurement: undefined,
    isAdopted: false,
    since,
    stale: false,
    texts,
  };
}

type View = Pick<Measurement, 'module' | 'status' | 'message' | 'data'> & { updated_at: string | null };

function textsOf({ status, message, updated_at, data }: View): Record<HealthView, string> {
  const scalars = Object.fromEntries(
    Object.entries(data).filter(([, value]) => value === null || typeof value !== 'object'),
  );
  return {
    full: JSON.stringify({ status, message, updated_at, data }),
    status: JSON.stringify({ status, message, updated_at, data: scalars }),
  };
}

// Keeps health in memory. Each module is serialized once per measurement, the whole once per
// change, on the next request. A module that was not measured for too long becomes critical. Of a
// local module, the worst of all processes is shown. Node only.

import { hash } from 'node:crypto';
import { DAY_MS, due } from '@holdfast/kit/time';
import { type History, type Status, worstOf } from '../settings/status.ts';
import { OtherProcesses, type OtherProcessesOptions } from './other-processes.ts';
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
  /** Default: there are no other processes. */
  sharing?: OtherProcessesOptions;
  nowMs: () => number;
  /** How often the host checks for due modules; default 1. */
  tickSeconds?: number;
}

interface Entry {
  name: string;
  startedMs: number | undefined;
  /** When it was put last. */
  putMs: number;
  /** Set while it is being measured, so that it is measured only once. */
  takenUntilMs: number;
  measurement: Measurement | undefined;
  /** Another process made it. */
  isAdopted: boolean;
  /** The measurement, or the worst of all processes. */
  shown: Measurement | undefined;
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
const ALONE = { process: { id: '', name: '' }, local: [] };
const REMEMBERED_MS = DAY_MS;
/** Samples come every five minutes: after an older one, the status until the start is unknown. */
const GOES_ON_MS = 900_000;

export class MemoryHealthCache implements HealthCache {
  /** Resolves once every module was measured. */
  readonly complete: Promise<void>;
  readonly #intervals: Readonly<Record<string, number>>;
  readonly #others: OtherProcesses;
  readonly #nowMs: () => number;
  readonly #tickSeconds: number;
  readonly #originMs: number;
  readonly #entries: Map<string, Entry>;
  readonly #completed: () => void;
  #prepared: Partial<Record<HealthView, Prepared>> = {};
  #staleAtMs = Number.POSITIVE_INFINITY;
  #lastUpdate: string | null = null;
  #samples: HealthSample[] | undefined;

  constructor({ intervals, sharing = ALONE, nowMs, tickSeconds = 1 }: HealthCacheOptions) {
    this.#intervals = intervals;
    this.#others = new OtherProcesses(sharing, nowMs, (module) => this.#tooLongMs(module));
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
    if ([...this.#entries.values()].every((each) => each.measurement !== undefined)) this.#completed();
    return before;
  }

  adopt(results: readonly SharedResult[]): string[] {
    return [...new Set(results.flatMap((result) => this.#adoptOne(result)))];
  }

  #adoptOne(result: SharedResult): string[] {
    const concerned = this.#others.concerned(result);
    for (const name of concerned) this.#show(this.#entries.get(name));
    const { module } = result.measurement;
    const isAdopted = !this.#others.isLocal(module) && this.#adoptShared(result);
    return [...(isAdopted ? [module] : []), ...concerned.filter((name) => !this.#isStale(this.#entries.get(name)))];
  }

  #adoptShared({ measurement, since, since_is_exact: exact, ageMs }: SharedResult): boolean {
    const entry = this.#entries.get(measurement.module);
    const publishedMs = this.#nowMs() - ageMs;
    if (entry?.measurement === undefined || publishedMs < entry.putMs || this.#isTaken(entry, this.#nowMs()))
      return false;
    Object.assign(entry, { startedMs: publishedMs, putMs: publishedMs, isAdopted: true });
    this.#keep(entry, measurement, false);
    if (since !== null) entry.since = { at: since, exact };
    return true;
  }

  isAlone(): boolean {
    return this.#others.areGone();
  }

  takeDue(now: number): string[] {
    this.#dropSilent();
    const entries = [...this.#entries.values()].filter(
      (entry) => !this.#isTaken(entry, now) && this.#isDue(entry, now),
    );
    for (const entry of entries) Object.assign(entry, { startedMs: now, takenUntilMs: now + TAKEN_FOR_MS });
    return entries.map(({ name }) => name);
  }

  #isTaken({ takenUntilMs }: Entry, now: number): boolean {
    return now < takenUntilMs && takenUntilMs <= now + TAKEN_FOR_MS;
  }

  #isDue({ name, startedMs, measurement, isAdopted }: Entry, now: number): boolean {
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
    return [...this.#entries.values()].map(stateOf);
  }

  state(module: string): ModuleState | undefined {
    const entry = this.#entries.get(module);
    return entry && stateOf(entry);
  }

  remember(added: readonly HealthSample[]): void {
    const oldest = new Date(this.#nowMs() - REMEMBERED_MS).toISOString();
    const byTime = new Map([...(this.#samples ?? []), ...added].map((sample) => [sample.at, sample]));
    const isFirst = this.#samples === undefined;
    this.#samples = [...byTime.values()].filter(({ at }) => at >= oldest).toSorted((a, b) => (a.at < b.at ? -1 : 1));
    if (!isFirst) return;
    for (const entry of this.#entries.values())
      if (entry.shown !== undefined && !entry.since.exact) this.#goOn(entry, entry.shown);
  }

  remembered(): HealthSample[] | undefined {
    return this.#samples;
  }

  /** What is shown of each module, in the order of the table. */
  measurements(): Measurement[] {
    return [...this.#entries.values()].flatMap(({ shown }) => shown ?? []);
  }

  #prepare(view: HealthView): Prepared {
    const modules = [...this.#entries].map(([name, { texts }]) => `${JSON.stringify(name)}:${texts[view]}`);
    const shown = [...this.#entries.values()].map((entry) => (view === 'own' ? entry.measurement : entry.shown));
    const status = worstOf(shown.map((measurement) => measurement?.status ?? 'note'));
    const head = JSON.stringify({ status, updated_at: this.#lastUpdate }).slice(0, -1);
    const body = `${head},"modules":{${modules.join(',')}}}`;
    return { body, etag: `"${hash('sha1', body, 'base64url')}"` };
  }

  #keep(entry: Entry, measurement: Measurement, stale: boolean): void {
    entry.measurement = measurement;
    entry.stale = stale;
    if (!stale) this.#lastUpdate = measurement.updated_at;
    this.#show(entry);
  }

  #show(entry: Entry | undefined): void {
    if (entry?.measurement === undefined) return;
    const shown = this.#others.combined(entry.measurement);
    const before = entry.shown?.status;
    if (before !== shown.status)
      entry.since = { at: new Date(this.#nowMs()).toISOString(), exact: before !== undefined };
    if (before === undefined) this.#goOn(entry, shown);
    entry.shown = shown;
    entry.texts = textsOf(shown, entry.measurement);
    this.#prepared = {};
    this.#staleAtMs = this.#nextChangeMs();
  }

  /** When time alone changes what is shown. */
  #nextChangeMs(): number {
    const unmarked = [...this.#entries.values()].filter(({ stale }) => !stale);
    return Math.min(this.#others.nextChangeMs(), ...unmarked.map((entry) => this.#staleMs(entry)));
  }

  /** A status that lasted until just before the start continues. */
  #goOn(entry: Entry, { module, status }: Pick<Measurement, 'module' | 'status'>): void {
    const newest = this.#samples?.at(-1);
    if (newest === undefined || Date.parse(entry.since.at) - Date.parse(newest.at) > GOES_ON_MS) return;
    const before = newest.modules[module];
    if (before?.status === status) entry.since = { at: before.since, exact: before.since_is_exact };
  }

  #staleMs({ name, putMs, measurement }: Entry): number {
    return measurement === undefined ? Infinity : putMs + this.#tooLongMs(name);
  }

  #isStale(entry: Entry | undefined): boolean {
    return entry === undefined || this.#nowMs() >= this.#staleMs(entry);
  }

  /** Slightly more than two intervals. */
  #tooLongMs(module: string): number {
    return Math.max(this.#intervals[module] ?? 0, this.#tickSeconds) * 2000 + TAKEN_FOR_MS;
  }

  /** The module is due then, so that alerts follow. */
  #dropSilent(): void {
    for (const name of this.#others.fallenSilent()) {
      this.forget(name);
      this.#show(this.#entries.get(name));
    }
  }

  #markStale(): void {
    if (this.#nowMs() < this.#staleAtMs) return;
    this.#dropSilent();
    for (const entry of this.#entries.values()) {
      if (entry.measurement === undefined || entry.stale || !this.#isStale(entry)) continue;
      const { updated_at: last, message } = entry.measurement;
      const says = `Not measured since ${last}. Last result: ${message}`;
      const { figure: _, ...rest } = entry.measurement;
      this.#keep(entry, { ...rest, status: 'critical', message: says, details: [says], shouldAlert: true }, true);
    }
    this.#staleAtMs = this.#nextChangeMs();
  }
}

function stateOf({ name, shown, since }: Entry): ModuleState {
  if (shown === undefined) return { module: name, measurement: null, since: null, since_is_exact: since.exact };
  return { module: name, measurement: shown, since: since.at, since_is_exact: since.exact };
}

function unmeasured(name: string): Entry {
  return {
    name,
    startedMs: undefined,
    putMs: 0,
    takenUntilMs: 0,
    measurement: undefined,
    isAdopted: false,
    shown: undefined,
    since: { at: '', exact: false },
    stale: false,
    texts: textsOf({ module: name, status: 'note', message: 'Not measured yet.', updated_at: null, data: {} }),
  };
}

type View = Pick<Measurement, 'module' | 'status' | 'message' | 'data'> & { updated_at: string | null };

function textsOf(shown: View, own = shown): Record<HealthView, string> {
  const { status, message, updated_at, data } = shown;
  const scalars = Object.fromEntries(
    Object.entries(data).filter(([, value]) => value === null || typeof value !== 'object'),
  );
  const full = fullText(shown);
  return {
    full,
    status: JSON.stringify({ status, message, updated_at, data: scalars }),
    own: own === shown ? full : fullText(own),
  };
}

function fullText({ status, message, updated_at, data }: View): string {
  return JSON.stringify({ status, message, updated_at, data });
}

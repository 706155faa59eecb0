// The health cache in memory. Each module is turned into text once per measurement, the whole once per change, when it
// is next asked for. A module that nobody has measured for too long turns critical by itself.

import { DAY_MS, due } from '@holdfast/kit/time';
import { type History, type Status, worstOf } from '../settings/status.ts';
import type { HealthCache, HealthSample, HealthView, Measurement, ModuleState, Prepared } from './port.ts';

export interface HealthCacheOptions {
  /** Every module with its seconds between two measurements. */
  intervals: Readonly<Record<string, number>>;
  nowMs: () => number;
  /** How often the host looks for due modules; default 1. */
  tickSeconds?: number;
}

export interface MemoryHealthCache extends HealthCache {
  current(view: HealthView): Prepared;
  takeDue(nowMs: number): string[];
  history(module: string): History | undefined;
  isComplete(): boolean;
  put(measurement: Measurement): Status | undefined;
  /** The module is due at the next tick. */
  forget(module: string, begunBeforeMs?: number): void;
  /** Resolves when every module was measured once. */
  complete: Promise<void>;
  /** What is kept now, in the order of the table. */
  measurements(): Measurement[];
  states(): ModuleState[];
  remember(samples: readonly HealthSample[]): void;
  remembered(): HealthSample[] | undefined;
}

interface Entry {
  startedMs: number | undefined;
  /** When it was put last. */
  putMs: number;
  /** Set while it is being measured: nobody else does. */
  takenUntilMs: number;
  measurement: Measurement | undefined;
  /** When its status became what it is; exact when the one before is known. */
  since: { at: string; exact: boolean };
  /** True once nobody measured it for too long. */
  stale: boolean;
  texts: Record<HealthView, string>;
}

/** A measurement that takes longer than this was lost, and the module is due again. */
const TAKEN_FOR_MS = 30_000;
const REMEMBERED_MS = DAY_MS;
/** Samples come every five minutes: what was between an older one and the start nobody knows. */
const GOES_ON_MS = 900_000;

export function memoryHealthCache({ intervals, nowMs, tickSeconds = 1 }: HealthCacheOptions): MemoryHealthCache {
  const originMs = Math.floor(nowMs() / 1000) * 1000;
  const entries = new Map(Object.keys(intervals).map((name) => [name, unmeasured(name)]));
  const { promise: complete, resolve: completed } = Promise.withResolvers<void>();
  const seed = crypto.randomUUID().slice(0, 8);
  let prepared: Partial<Record<HealthView, Prepared>> = {};
  let version = 0;
  let staleAtMs = Number.POSITIVE_INFINITY;
  let lastUpdate: string | null = null;
  let samples: HealthSample[] | undefined;

  function current(view: HealthView): Prepared {
    if (nowMs() >= staleAtMs) markStale();
    return (prepared[view] ??= prepare(view));
  }

  function prepare(view: HealthView): Prepared {
    const modules = [...entries].map(([name, { texts }]) => `${JSON.stringify(name)}:${texts[view]}`);
    const status = worstOf([...entries.values()].map(({ measurement }) => measurement?.status ?? 'note'));
    const head = JSON.stringify({ status, updated_at: lastUpdate }).slice(0, -1);
    return {
      body: `${head},"modules":{${modules.join(',')}}}`,
      etag: `"${seed}-${version}-${view}"`,
    };
  }

  function put(measurement: Measurement): Status | undefined {
    const entry = entries.get(measurement.module);
    if (entry === undefined) return undefined;
    const before = entry.measurement?.status;
    entry.takenUntilMs = 0;
    entry.putMs = nowMs();
    keep(entry, measurement, false);
    lastUpdate = measurement.updated_at;
    if ([...entries.values()].every((each) => each.measurement !== undefined)) completed();
    return before;
  }

  function keep(entry: Entry, measurement: Measurement, stale: boolean): void {
    const before = entry.measurement?.status;
    if (before !== measurement.status)
      entry.since = { at: new Date(nowMs()).toISOString(), exact: before !== undefined };
    if (before === undefined) goOn(entry, measurement);
    entry.measurement = measurement;
    entry.stale = stale;
    entry.texts = textsOf(measurement);
    version++;
    prepared = {};
    staleAtMs = Math.min(...[...entries].map(([name, each]) => staleMs(name, each)));
  }

  /** What was so until just before the start goes on. */
  function goOn(entry: Entry, { module, status }: Pick<Measurement, 'module' | 'status'>): void {
    const newest = samples?.at(-1);
    if (newest === undefined || Date.parse(entry.since.at) - Date.parse(newest.at) > GOES_ON_MS) return;
    const before = newest.modules[module];
    if (before?.status === status) entry.since = { at: before.since, exact: before.since_is_exact };
  }

  function remember(added: readonly HealthSample[]): void {
    const oldest = new Date(nowMs() - REMEMBERED_MS).toISOString();
    const byTime = new Map([...(samples ?? []), ...added].map((sample) => [sample.at, sample]));
    const isFirst = samples === undefined;
    samples = [...byTime.values()].filter(({ at }) => at >= oldest).toSorted((a, b) => (a.at < b.at ? -1 : 1));
    if (!isFirst) return;
    for (const entry of entries.values())
      if (entry.measurement !== undefined && !entry.since.exact) goOn(entry, entry.measurement);
  }

  /** Two intervals and a little after it was put last, unless it says so already. */
  function staleMs(name: string, { putMs, measurement, stale }: Entry): number {
    if (measurement === undefined || stale) return Number.POSITIVE_INFINITY;
    return putMs + Math.max(intervals[name] ?? 0, tickSeconds) * 2000 + TAKEN_FOR_MS;
  }

  function markStale(): void {
    for (const [name, entry] of entries) {
      if (entry.measurement === undefined || nowMs() < staleMs(name, entry)) continue;
      const { updated_at: last, message } = entry.measurement;
      const says = `Not measured since ${last}; then: ${message}`;
      const { figure: _, ...rest } = entry.measurement;
      keep(entry, { ...rest, status: 'critical', message: says, details: [says], shouldAlert: true }, true);
    }
  }

  function takeDue(now: number): string[] {
    const names = [...entries].filter(
      ([name, { startedMs, takenUntilMs, measurement }]) =>
        !(now < takenUntilMs && takenUntilMs <= now + TAKEN_FOR_MS) &&
        due(startedMs, Math.min(intervals[name] ?? 0, measurement?.againSeconds ?? Infinity), now, originMs),
    );
    for (const [, entry] of names) Object.assign(entry, { startedMs: now, takenUntilMs: now + TAKEN_FOR_MS });
    return names.map(([name]) => name);
  }

  return {
    current,
    put,
    takeDue,
    isComplete() {
      if (nowMs() >= staleAtMs) markStale();
      return [...entries.values()].every(({ measurement, stale }) => measurement !== undefined && !stale);
    },
    history: (module) => entries.get(module)?.measurement,
    forget(module, begunBeforeMs = Number.POSITIVE_INFINITY) {
      const entry = entries.get(module);
      if (entry?.startedMs !== undefined && entry.startedMs < begunBeforeMs) entry.startedMs = undefined;
    },
    complete,
    states() {
      if (nowMs() >= staleAtMs) markStale();
      return [...entries].map(([module, { measurement = null, since }]) => ({
        module,
        measurement,
        since: measurement === null ? null : since.at,
        since_is_exact: since.exact,
      }));
    },
    remember,
    remembered: () => samples,
    measurements: () => [...entries.values()].flatMap(({ measurement }) => measurement ?? []),
  };
}

function unmeasured(name: string): Entry {
  const texts = textsOf({ module: name, status: 'note', message: 'Not measured yet.', updated_at: null, data: {} });
  const since = { at: '', exact: false };
  return { startedMs: undefined, putMs: 0, takenUntilMs: 0, measurement: undefined, since, stale: false, texts };
}

type Shown = Pick<Measurement, 'module' | 'status' | 'message' | 'data'> & { updated_at: string | null };

function textsOf({ status, message, updated_at, data }: Shown): Record<HealthView, string> {
  const scalars = Object.fromEntries(
    Object.entries(data).filter(([, value]) => value === null || typeof value !== 'object'),
  );
  return {
    full: JSON.stringify({ status, message, updated_at, data }),
    status: JSON.stringify({ status, message, updated_at, data: scalars }),
  };
}

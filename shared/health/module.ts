// What a health module is, and one measurement of it: read within a time limit, then judged by the evaluator.

import { messageOf } from '@holdfast/kit/app-error';
import type { FigureUnit } from '@holdfast/kit/format';
import type { History, ModuleThresholds, Thresholds } from '../settings/status.ts';
import { evaluate, evaluateFailure, type Finding, type Limits, type Verdict } from './evaluate.ts';
import type { Monitored } from './monitored.ts';
import type { Measurement } from './port.ts';

/** A module as its file writes it; `D` is its raw data, with the names that the API shows. */
export interface ModuleDefinition<D extends object> {
  name: string;
  /** What a person can do when it is not ok, in two to four sentences of at most 300 characters. DIR is that of --data. */
  remedy: readonly string[];
  /** The longest that `read` may take; default 10 s. */
  withinMs?: number;
  /** Raw data, or an error; never a judgement. */
  read(monitored: Monitored, thresholds: Thresholds): Promise<D>;
  /** What in the data the evaluator has to judge. */
  findings(data: D, thresholds: ModuleThresholds, all: Thresholds): Finding[];
  /** Seconds until the next look, where the data will not stay as they are until the interval is over. */
  againSeconds?(data: D): number | undefined;
  /** The message when there is nothing to complain about. */
  well(data: D): string;
  /** The figure that tells most about it; without one its status is what is shown over time. */
  trend?: Trend & { figureOf(data: D, all: Thresholds): number | null };
}

/** A figure of a module over time. */
export interface Trend {
  /** In words, small: `worst table`. */
  name: string;
  unit: FigureUnit;
  /** The thresholds that judge just this figure. */
  limits?(thresholds: ModuleThresholds): Partial<Limits>;
}

/** A module as the rest of the product uses it. */
export interface HealthModule {
  name: string;
  /** What a person can do when it is not ok. */
  remedy: readonly string[];
  trend?: Trend;
  measure(monitored: Monitored, thresholds: Thresholds, before: History): Promise<Measurement>;
}

/** For modules whose findings have commands for the core's database. */
export const AS_SUPERUSER =
  'The owner of the core database may run ALTER DATABASE, ALTER TABLE and VACUUM; ALTER SYSTEM, pg_reload_conf, CHECKPOINT, GRANT and slots need a superuser. In the embedded stack none can sign in: "As a superuser" in docs/health.md shows how to do it there.';

const WITHIN_MS = 10_000;
/** The proxy is started after this process, and then gets its public certificates. */
const STARTING_MS = 180_000;

/** Until then the containers that are started after this one, and what they serve, may still be on their way. */
export function hasJustStarted(startedAt: Date, now: Date): boolean {
  return now.getTime() - startedAt.getTime() < STARTING_MS;
}

/** Makes a module from its definition. Its measurement never rejects: what is thrown becomes `critical`. */
export function healthModule<D extends object>(definition: ModuleDefinition<D>): HealthModule {
  const { name, remedy, withinMs = WITHIN_MS } = definition;

  async function measure(monitored: Monitored, thresholds: Thresholds, before: History): Promise<Measurement> {
    const own = thresholds.modules[name];
    if (own === undefined) throw new Error(`${name} has no thresholds`);
    let data: object = {};
    let again: number | undefined;
    let figure: number | null = null;
    let verdict: Verdict;
    try {
      const read = await within(withinMs, definition.read(monitored, thresholds));
      verdict = evaluate(definition.findings(read, own, thresholds), definition.well(read), own, before);
      data = read;
      again = definition.againSeconds?.(read);
      figure = definition.trend?.figureOf(read, thresholds) ?? null;
    } catch (error) {
      verdict = evaluateFailure(messageOf(error), own, before);
    }
    const measurement = { module: name, ...verdict, updated_at: monitored.now().toISOString(), data: { ...data } };
    return {
      ...measurement,
      ...(again === undefined ? {} : { againSeconds: again }),
      ...(figure === null || !Number.isFinite(figure) ? {} : { figure }),
    };
  }

  const { trend } = definition;
  return trend === undefined ? { name, remedy, measure } : { name, remedy, trend, measure };
}

/** Rejects when the work takes longer than that; it goes on all the same. */
export async function within<T>(ms: number, work: Promise<T>): Promise<T> {
  const { promise: late, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => reject(new Error(`No answer within ${ms / 1000} s`)), ms);
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}

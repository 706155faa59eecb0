// Defines a health module and measures it: read within a time limit, then judged by the evaluator.

import { messageOf } from '@holdfast/kit/app-error';
import type { FigureUnit } from '@holdfast/kit/format';
import type { History, ModuleThresholds, Thresholds } from '../settings/status.ts';
import { evaluate, evaluateFailure, type Finding, type Limits, type Verdict } from './evaluate.ts';
import type { Monitored } from './monitored.ts';
import type { Measurement } from './port.ts';

/** The definition of a module; `D` is its raw data, with the names of the API. */
export interface ModuleDefinition<D extends object> {
  name: string;
  /**
   * True if it reads the machine, network or files of its process: each process measures it, and
   * the worst counts. Of any other module, the measurement of one process counts for all.
   */
  isLocal?: true;
  /**
   * What a person can do if it is not ok: two to four texts of at most 300 characters. DIR is that
   * of --data.
   */
  remedy: readonly string[];
  /** The longest that `read` may take; default 10 s. */
  withinMs?: number;
  /** Raw data, or an error; never a judgement. */
  read(monitored: Monitored, thresholds: Thresholds): Promise<D>;
  /** The findings in the data, for the evaluator. */
  findings(data: D, thresholds: ModuleThresholds, all: Thresholds): Finding[];
  /** Seconds until the next measurement, if the data will change before the interval is over. */
  againSeconds?(data: D): number | undefined;
  /** The message if all findings are ok. */
  well(data: D): string;
  /** Its main figure over time; without one the trend shows its status. */
  trend?: Trend & { figureOf(data: D, all: Thresholds): number | null };
}

/** A figure of a module over time. */
export interface Trend {
  /** A short name in lower case: `fullest disk`. */
  name: string;
  unit: FigureUnit;
  /** The thresholds that judge just this figure. */
  limits?(thresholds: ModuleThresholds): Partial<Limits>;
}

/** A module as the rest of the product uses it. */
export interface HealthModule {
  name: string;
  isLocal: boolean;
  /** What a person can do if it is not ok. */
  remedy: readonly string[];
  trend?: Trend;
  measure(monitored: Monitored, thresholds: Thresholds, before: History): Promise<Measurement>;
}

/** For modules whose findings have commands for the core's database. */
export const AS_SUPERUSER =
  'The owner of the core database may run ALTER DATABASE, ALTER TABLE and VACUUM. ALTER SYSTEM, pg_reload_conf, CHECKPOINT, GRANT and slots need a superuser. In the embedded stack no superuser can sign in: see "As a superuser" in docs/health.md.';

const WITHIN_MS = 10_000;
/** What failed is measured again after this, however long the interval: most failures pass. */
export const AFTER_FAILURE_SECONDS = 60;
/** The proxy is started after this process, and then gets its public certificates. */
const STARTING_MS = 180_000;

/** While true, containers that start after this one may not be ready yet. */
export function hasJustStarted(startedAt: Date, now: Date): boolean {
  return now.getTime() - startedAt.getTime() < STARTING_MS;
}

/**
 * Creates a module from its definition. Its measurement never rejects: an error becomes `critical`.
 */
export function healthModule<D extends object>(definition: ModuleDefinition<D>): HealthModule {
  const { name, isLocal = false, remedy, withinMs = WITHIN_MS } = definition;

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
    if (verdict.failuresInRow > 0) again = Math.min(again ?? Infinity, AFTER_FAILURE_SECONDS);
    const measurement = { module: name, ...verdict, updated_at: monitored.now().toISOString(), data: { ...data } };
    return {
      ...measurement,
      ...(again === undefined ? {} : { againSeconds: again }),
      ...(figure === null || !Number.isFinite(figure) ? {} : { figure }),
    };
  }

  const { trend } = definition;
  return { name, isLocal, remedy, measure, ...(trend && { trend }) };
}

/** Rejects if the work takes longer; the work itself continues. */
export async function within<T>(ms: number, work: Promise<T>): Promise<T> {
  const { promise: late, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => reject(new Error(`No answer within ${ms / 1000} s`)), ms);
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}

// Shares measurements with the other processes over our own database, so that all show the same and
// one of them measures. Without the database each process measures by itself. Node only.

import type { RunSql } from '@holdfast/kit/kept-database';
import { withTimeout } from '@holdfast/kit/timeout';
import type { HealthResults, SharedResult } from './port.ts';

interface ResultRow {
  module: string;
  published: string;
  age_ms: number;
  result: string;
}

export interface HealthResultOptions {
  run: RunSql;
  /** One id per process. */
  runner: string;
  /** A monotonic clock in milliseconds. */
  steadyMs: () => number;
}

/** Measuring does not wait for a database that hangs, which is then left alone for a while. */
const WITHIN_MS = 500;
const LEFT_ALONE_MS = 3_000;
/** Longer than a commit takes to be seen. */
const OVERLAP_SECONDS = 3;

export class HealthResultTable implements HealthResults {
  readonly #options: HealthResultOptions;
  /** By module: when the last result that was returned was published, as text. */
  readonly #returned = new Map<string, string>();
  #leftAloneUntilMs = -Infinity;
  #isReading = false;

  constructor(options: HealthResultOptions) {
    this.#options = options;
  }

  async publish(result: Omit<SharedResult, 'ageMs'>): Promise<void> {
    const { run, runner } = this.#options;
    const { module } = result.measurement;
    await this.#answered(() =>
      run(
        (sql) => sql`
          INSERT INTO health_result (module, measured_by, published_at, result)
          VALUES (${module}, ${runner}, clock_timestamp(), ${JSON.stringify(result)})
          ON CONFLICT (module) DO UPDATE
          SET measured_by = excluded.measured_by, published_at = clock_timestamp(), result = excluded.result`,
      ),
    );
  }

  async ofOthers(): Promise<SharedResult[]> {
    if (this.#isReading) return [];
    this.#isReading = true;
    try {
      const rows = (await this.#answered(() => this.#read())) ?? [];
      const fresh = rows.filter(({ module, published }) => this.#returned.get(module) !== published);
      for (const { module, published } of fresh) this.#returned.set(module, published);
      return fresh.map(({ age_ms: ageMs, result }) => ({ ...(JSON.parse(result) as SharedResult), ageMs }));
    } finally {
      this.#isReading = false;
    }
  }

  #read(): Promise<ResultRow[]> {
    const { run, runner } = this.#options;
    return run(
      (sql) => sql<ResultRow[]>`
        SELECT module, published_at::text AS published, result,
          (extract(epoch FROM clock_timestamp() - published_at) * 1000)::float8 AS age_ms
        FROM health_result
        WHERE measured_by <> ${runner} AND published_at > clock_timestamp() - make_interval(secs => ${OVERLAP_SECONDS})
        ORDER BY published_at`,
    );
  }

  /** Undefined if the database does not answer, or did not a moment ago. */
  async #answered<T>(work: () => Promise<T>): Promise<T | undefined> {
    const { steadyMs } = this.#options;
    if (steadyMs() < this.#leftAloneUntilMs) return undefined;
    try {
      return await withTimeout(WITHIN_MS, 'Our own database', work);
    } catch {
      this.#leftAloneUntilMs = steadyMs() + LEFT_ALONE_MS;
      return undefined;
    }
  }
}

// Shares measurements with the other processes over our own database, so that all show the same,
// and one of them measures what is not local. Without the database each process measures by itself.
// Node only.

import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { messageOf } from '@holdfast/kit/app-error';
import { writeFileAtomically } from '@holdfast/kit/files';
import type { RunSql } from '@holdfast/kit/kept-database';
import type { Log } from '@holdfast/kit/log';
import { DAY_MS } from '@holdfast/kit/time';
import { CircuitBreaker } from '@holdfast/kit/timeout';
import type { HealthResults, Measurer, PublishedResult, SharedResult } from './port.ts';

interface ResultRow {
  module: string;
  measured_by: string;
  published: string;
  age_ms: number;
  result: string;
}

/** As it is in the table. */
interface StoredResult extends PublishedResult {
  name: string;
}

export interface HealthResultOptions {
  run: RunSql;
  /** This process. */
  process: Measurer;
  /** A monotonic clock in milliseconds. */
  steadyMs: () => number;
}

/** Measuring does not wait for a database that hangs, which is then left alone for a while. */
const WITHIN_MS = 500;
const PAUSE_MS = 3_000;
/** Longer than a commit takes to be seen. */
const OVERLAP_MS = 3_000;
/** Rows of processes that are gone for so long are removed, and never read. */
const KEPT_MS = DAY_MS;

export class HealthResultTable implements HealthResults {
  readonly #options: HealthResultOptions;
  readonly #database: CircuitBreaker;
  /** By process and module: when the last result that was returned was published, as text. */
  readonly #returned = new Map<string, string>();
  /** By module: what the database has not taken yet. */
  readonly #unpublished = new Map<string, PublishedResult>();
  #readMs = -Infinity;

  constructor(options: HealthResultOptions) {
    this.#options = options;
    this.#database = new CircuitBreaker({ withinMs: WITHIN_MS, pauseMs: PAUSE_MS, steadyMs: options.steadyMs });
  }

  async publish(result: PublishedResult): Promise<void> {
    const { module } = result.measurement;
    this.#unpublished.delete(module);
    const written = this.#database.isPaused() ? undefined : await this.#database.answered(this.#write(result));
    if (written === undefined) this.#unpublished.set(module, result);
  }

  async ofOthers(): Promise<SharedResult[]> {
    for (const result of this.#unpublished.values()) {
      if (this.#database.isPaused()) break;
      await this.publish(result);
    }
    if (this.#database.isPaused()) return [];
    const now = this.#options.steadyMs();
    const rows = await this.#database.answered(this.#read(Math.min(now - this.#readMs + OVERLAP_MS, KEPT_MS)));
    if (rows === undefined) return [];
    this.#readMs = now;
    return rows.flatMap((row) => this.#fresh(row));
  }

  #fresh({ module, measured_by: id, published, age_ms: ageMs, result }: ResultRow): SharedResult[] {
    const key = `${id} ${module}`;
    if (this.#returned.get(key) === published) return [];
    this.#returned.set(key, published);
    const { name, ...shared } = JSON.parse(result) as StoredResult;
    return [{ ...shared, process: { id, name }, ageMs }];
  }

  #write(result: PublishedResult): Promise<object> {
    const { run, process } = this.#options;
    const stored: StoredResult = { ...result, name: process.name };
    return run(
      (sql) => sql`
        WITH gone AS (
          DELETE FROM health_result
          WHERE measured_by <> ${process.id} AND published_at < clock_timestamp() - make_interval(secs => ${KEPT_MS / 1000})
        )
        INSERT INTO health_result (module, measured_by, published_at, result)
        VALUES (${result.measurement.module}, ${process.id}, clock_timestamp(), ${JSON.stringify(stored)})
        ON CONFLICT (module, measured_by) DO UPDATE
        SET published_at = clock_timestamp(), result = excluded.result`,
    );
  }

  #read(withinMs: number): Promise<ResultRow[]> {
    const { run, process } = this.#options;
    return run(
      (sql) => sql<ResultRow[]>`
        SELECT module, measured_by, published_at::text AS published, result,
          (extract(epoch FROM clock_timestamp() - published_at) * 1000)::float8 AS age_ms
        FROM health_result
        WHERE measured_by <> ${process.id}
          AND published_at > clock_timestamp() - make_interval(secs => ${withinMs / 1000}::float8)
        ORDER BY published_at`,
    );
  }
}

/** A process keeps its id in `file`, so that what it measures replaces what it measured before. */
export function keptId(file: string | undefined, log: Log): string {
  const id = crypto.randomUUID();
  if (file === undefined) return id;
  try {
    const kept = existsSync(file) ? readFileSync(file, 'utf8').trim() : '';
    if (UUID.test(kept)) return kept;
    if (!existsSync(dirname(file))) mkdirSync(dirname(file), { mode: 0o700 });
    writeFileAtomically(file, `${id}\n`);
  } catch (error) {
    log.warn('health.id_not_kept', { file, error: messageOf(error) });
  }
  return id;
}

const UUID = /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/;

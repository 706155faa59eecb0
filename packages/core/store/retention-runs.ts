// Reads and writes `retention_run`, the last 500 retention runs. Progress is committed with the
// deletion itself, so that the counts of a killed run are right.

import type postgres from 'postgres';
import { codeOf } from '@holdfast/kit/app-error';
import type { CoreRetentionRun } from '@holdfast/kit/core-wire';
import type { Retained, RetentionLimits } from '@holdfast/kit/retention';
import type { RunSql } from './certificates.ts';

export type RunProgress = Pick<CoreRetentionRun, 'rows' | 'included'> & { bytes: number };
export type RunEnd = Exclude<CoreRetentionRun['state'], 'running'>;

/** The run was closed by somebody else: another core on the same database. */
export class RunTaken extends Error {}

const KEPT = 500;
const ALREADY_THERE = '23505';

/** Rejects with an AppError `unavailable` when the database is away. */
export class RetentionRunStore {
  readonly #run: RunSql;

  constructor(run: RunSql) {
    this.#run = run;
  }

  /** The clock of the database. */
  now(): Promise<Date> {
    return this.#run(async (sql) => {
      const [row] = await sql<{ now: Date }[]>`SELECT date_trunc('milliseconds', now()) AS now`;
      return row?.now ?? new Date();
    });
  }

  /** Undefined when one is running. The same id again is the run of that id, as it is. */
  async begin(
    id: string,
    trigger: CoreRetentionRun['trigger'],
    limits: RetentionLimits,
  ): Promise<CoreRetentionRun | undefined> {
    const types = Object.keys(limits) as Retained[];
    const rows = JSON.stringify(Object.fromEntries(types.map((type) => [type, 0])));
    try {
      return await this.#run((sql) =>
        sql.begin(async (tx) => {
          const [made] = await tx<CoreRetentionRun[]>`
              INSERT INTO retention_run (id, trigger, state, limits, rows, included, bytes)
              VALUES (${id}, ${trigger}, 'running', ${JSON.stringify(limits)}::text::jsonb, ${rows}::text::jsonb,
                '{"cot": 0, "files": 0}', 0)
              RETURNING ${columns(tx)}`;
          await tx`
              DELETE FROM retention_run WHERE state <> 'running' AND id NOT IN (
                SELECT id FROM retention_run ORDER BY started_at DESC, id LIMIT ${KEPT}::int)`;
          return made;
        }),
      );
    } catch (error) {
      if (codeOf(error) !== ALREADY_THERE) throw error;
      return this.find(id);
    }
  }

  find(id: string): Promise<CoreRetentionRun | undefined> {
    return this.#run(async (sql) => {
      const [row] = await sql<CoreRetentionRun[]>`SELECT ${columns(sql)} FROM retention_run WHERE id = ${id}`;
      return row;
    });
  }

  /** The newest first. */
  list(most: number): Promise<CoreRetentionRun[]> {
    return this.#run(
      (sql) => sql<CoreRetentionRun[]>`
          SELECT ${columns(sql)} FROM retention_run ORDER BY started_at DESC, id LIMIT ${most}::int`,
    );
  }

  setExpected(id: string, expected: number): Promise<void> {
    return this.#run(async (sql) => {
      await sql`UPDATE retention_run SET expected = ${expected} WHERE id = ${id} AND state = 'running'`;
    });
  }

  /**
   * In the transaction that deletes: adds to what stands in the row, where a batch whose answer was
   * lost may have come in late. Rejects with RunTaken.
   */
  async progress(tx: postgres.TransactionSql, id: string, add: (sofar: RunProgress) => RunProgress): Promise<void> {
    const [row] = await tx<CoreRetentionRun[]>`
        SELECT ${columns(tx)} FROM retention_run WHERE id = ${id} AND state = 'running' FOR UPDATE`;
    if (row === undefined) throw new RunTaken('another core has closed this run');
    const { rows, included, bytes } = add({ ...row, bytes: row.bytes ?? 0 });
    await tx`
        UPDATE retention_run SET rows = ${JSON.stringify(rows)}::text::jsonb,
          included = ${JSON.stringify(included)}::text::jsonb, bytes = ${Math.round(bytes)}
        WHERE id = ${id}`;
  }

  end(id: string, state: RunEnd, error: string | null): Promise<CoreRetentionRun | undefined> {
    return this.#run(async (sql) => {
      const [row] = await sql<CoreRetentionRun[]>`
          UPDATE retention_run SET state = ${state}, error = ${error}, finished_at = now()
          WHERE id = ${id} AND state = 'running' RETURNING ${columns(sql)}`;
      return row;
    });
  }

  /** Closes what still counts as running; resolves with the ids. */
  closeLeft(error: string): Promise<string[]> {
    return this.#run(async (sql) => {
      const rows = await sql<{ id: string }[]>`
          UPDATE retention_run SET state = 'interrupted', error = ${error}, finished_at = now()
          WHERE state = 'running' RETURNING id`;
      return rows.map(({ id }) => id);
    });
  }
}

function columns(sql: postgres.ISql): postgres.Fragment {
  const moment = (column: 'started_at' | 'finished_at'): postgres.Fragment =>
    sql`to_char(${sql(column)} AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`;
  return sql`id, trigger, state, ${moment('started_at')} AS "startedAt", ${moment('finished_at')} AS "finishedAt", limits,
    rows, included, expected::float8 AS expected, bytes::float8 AS bytes, error`;
}

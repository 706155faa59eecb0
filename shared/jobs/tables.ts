// Stores requested jobs and claimed runs in our own database.

import { AppError } from '@holdfast/kit/app-error';
import type { RunSql } from '@holdfast/kit/kept-database';
import type { Sql } from '@holdfast/kit/postgres';
import type { Claim, JobRuns, OpsJob, OpsJobChange, OpsJobs, OpsJobState } from './port.ts';

interface JobRow extends Omit<OpsJob, 'createdAt' | 'startedAt' | 'finishedAt' | 'eta'> {
  createdAt: Date;
  startedAt: Date | null;
  finishedAt: Date | null;
  eta: Date | null;
}

const MAX_LINES = 200;
const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
/** Tries to add a job: the open one may end between two statements. */
const TRIES = 5;

/**
 * Only one job of a kind is open at a time; log lines are appended in one statement; ended jobs do
 * not change.
 */
export function opsJobTable(run: RunSql): OpsJobs {
  return {
    async add(job) {
      for (let tries = 1; ; tries++) {
        const added = await addOnce(run, job);
        if (added !== undefined) return added;
        const open = await openOf(run, job.kind);
        if (open === undefined && tries < TRIES) continue;
        throw alreadyOpen(job.kind, open);
      }
    },

    async get(id) {
      if (!UUID.test(id)) return undefined;
      const [row] = await run((sql) => sql<JobRow[]>`SELECT ${columns(sql)} FROM ops_job WHERE id = ${id}`);
      return row && jobOf(row);
    },

    async list({ kind = null, state = null }, offset, limit) {
      return run(async (sql) => {
        const where = sql`(${kind}::text IS NULL OR kind = ${kind}) AND (${state}::text IS NULL OR state = ${state})`;
        const [rows, [total]] = await Promise.all([
          sql<JobRow[]>`
            SELECT ${columns(sql)} FROM ops_job WHERE ${where}
            ORDER BY created_at DESC, id DESC OFFSET ${offset} LIMIT ${limit}`,
          sql<{ count: number }[]>`SELECT count(*)::int AS count FROM ops_job WHERE ${where}`,
        ]);
        return { results: rows.map(jobOf), count: total?.count ?? 0 };
      });
    },

    async open() {
      const rows = await run(
        (sql) => sql<JobRow[]>`
          SELECT ${columns(sql)} FROM ops_job WHERE state IN ('queued', 'running') ORDER BY created_at, id`,
      );
      return rows.map(jobOf);
    },

    async change(id, change) {
      if (!UUID.test(id)) return false;
      const { count } = await run((sql) => changed(sql, id, change));
      return count > 0;
    },

    async prune(before) {
      const { count } = await run(
        (sql) => sql`
          DELETE FROM ops_job
          WHERE state NOT IN ('queued', 'running') AND coalesce(finished_at, created_at) < ${before}`,
      );
      return count;
    },
  };
}

/** Undefined if one of that kind is open. */
async function addOnce(
  run: RunSql,
  { id, kind, actor, input, now }: Parameters<OpsJobs['add']>[0],
): Promise<OpsJob | undefined> {
  const [row] = await run(
    (sql) => sql<JobRow[]>`
      INSERT INTO ops_job (id, kind, created_at, input, actor)
      VALUES (${id}, ${kind}, ${now}, ${jsonText(input)}::text::jsonb, ${actor})
      ON CONFLICT (kind) WHERE state IN ('queued', 'running') DO NOTHING
      RETURNING ${columns(sql)}`,
  );
  return row && jobOf(row);
}

async function openOf(run: RunSql, kind: string): Promise<{ id: string; state: OpsJobState } | undefined> {
  const [row] = await run(
    (sql) => sql<{ id: string; state: OpsJobState }[]>`
      SELECT id, state FROM ops_job WHERE kind = ${kind} AND state IN ('queued', 'running')`,
  );
  return row;
}

function alreadyOpen(kind: string, open: { id: string; state: OpsJobState } | undefined): AppError {
  const which = open === undefined ? 'One has just ended. Try again' : `The job ${open.id} is ${open.state}`;
  const message = `Only one ${kind} job can run at a time. ${which}.`;
  return new AppError('conflict', message, open === undefined ? {} : { figures: { job: open.id } });
}

function changed(sql: Sql, id: string, change: OpsJobChange) {
  const { state = null, progress = null, startedAt = null, finishedAt = null, error = null, log = [] } = change;
  const hasEta = change.eta !== undefined;
  const hasPhase = change.phase !== undefined;
  const hasPercent = change.phasePercent !== undefined;
  const hasMemory = change.memory !== undefined;
  const hasResult = change.result !== undefined;
  return sql`
    UPDATE ops_job SET
      state = coalesce(${state}, state),
      progress = coalesce(${progress}::float8, progress),
      started_at = coalesce(${startedAt}::timestamptz, started_at),
      finished_at = coalesce(${finishedAt}::timestamptz, finished_at),
      eta = CASE WHEN ${hasEta} THEN ${change.eta ?? null}::timestamptz ELSE eta END,
      phase = CASE WHEN ${hasPhase} THEN ${change.phase ?? null}::text ELSE phase END,
      phase_percent = CASE WHEN ${hasPercent} THEN ${change.phasePercent ?? null}::float8 ELSE phase_percent END,
      memory = CASE WHEN ${hasMemory} THEN ${jsonText(change.memory ?? null)}::text::jsonb ELSE memory END,
      result = CASE WHEN ${hasResult} THEN ${jsonText(change.result ?? null)}::text::jsonb ELSE result END,
      error = coalesce(${error === null ? null : storable(error)}, error),
      log = (
        SELECT coalesce(jsonb_agg(line ORDER BY place), '[]') FROM (
          SELECT line, place FROM jsonb_array_elements(ops_job.log || ${jsonText(log)}::text::jsonb)
            WITH ORDINALITY AS lines (line, place)
          ORDER BY place DESC LIMIT ${MAX_LINES}) AS last)
    WHERE id = ${id} AND state IN ('queued', 'running')`;
}

/** Texts from a core may contain characters that the database rejects. */
function storable(text: string): string {
  return text.toWellFormed().replaceAll('\0', '\uFFFD');
}

function jsonText(value: unknown): string {
  return JSON.stringify(value, (_, member: unknown) => (typeof member === 'string' ? storable(member) : member));
}

function columns(sql: Sql) {
  return sql`id, kind, state, progress, phase, phase_percent AS "phasePercent", memory, created_at AS "createdAt", started_at AS "startedAt",
    finished_at AS "finishedAt", eta, log, input, result, error, actor`;
}

function jobOf(row: JobRow): OpsJob {
  return {
    ...row,
    createdAt: row.createdAt.toISOString(),
    startedAt: row.startedAt?.toISOString() ?? null,
    finishedAt: row.finishedAt?.toISOString() ?? null,
    eta: row.eta?.toISOString() ?? null,
  };
}

interface ClaimRow {
  name: string;
  due_at: Date;
  runner: string;
  attempt: number;
}

/** Stores runs as rows of job_run. All lease times are the database's. */
export function jobRunTable(run: RunSql): JobRuns {
  async function claim(name: string, dueAt: Date, runner: string, leaseSeconds: number): Promise<Claim | undefined> {
    const rows = await run(
      (sql) => sql<ClaimRow[]>`
        WITH taken_over AS (
          UPDATE job_run
          SET runner = ${runner}, attempt = attempt + 1, claimed_at = now(),
            lease_until = now() + make_interval(secs => ${leaseSeconds})
          WHERE name = ${name} AND finished_at IS NULL AND lease_until < now()
          RETURNING name, due_at, runner, attempt
        ), fresh AS (
          INSERT INTO job_run (name, due_at, runner, lease_until)
          SELECT ${name}, ${dueAt}, ${runner}, now() + make_interval(secs => ${leaseSeconds})
          WHERE NOT EXISTS (SELECT FROM taken_over)
          ON CONFLICT DO NOTHING
          RETURNING name, due_at, runner, attempt
        )
        SELECT * FROM taken_over UNION ALL SELECT * FROM fresh`,
    );
    const row = rows[0];
    return row && { name: row.name, dueAt: row.due_at, runner: row.runner, attempt: row.attempt };
  }

  async function renew({ name, dueAt, runner, attempt }: Claim, leaseSeconds: number): Promise<boolean> {
    const { count } = await run(
      (sql) => sql`
        UPDATE job_run SET lease_until = now() + make_interval(secs => ${leaseSeconds})
        WHERE name = ${name} AND due_at = ${dueAt} AND runner = ${runner} AND attempt = ${attempt} AND finished_at IS NULL`,
    );
    return count > 0;
  }

  async function finish(
    { name, dueAt, runner, attempt }: Claim,
    outcome: { summary: unknown } | { error: string },
  ): Promise<boolean> {
    const summary = 'summary' in outcome ? JSON.stringify(outcome.summary) : null;
    const error = 'error' in outcome ? outcome.error : null;
    const { count } = await run(
      (sql) => sql`
        UPDATE job_run SET finished_at = now(), summary = ${summary}::text::jsonb, error = ${error}
        WHERE name = ${name} AND due_at = ${dueAt} AND runner = ${runner} AND attempt = ${attempt} AND finished_at IS NULL`,
    );
    return count > 0;
  }

  async function summaries(name: string, since: Date): Promise<{ finishedAt: Date; summary: unknown }[]> {
    return run(
      (sql) => sql<{ finishedAt: Date; summary: unknown }[]>`
        SELECT finished_at AS "finishedAt", summary FROM job_run
        WHERE name = ${name} AND finished_at > ${since} AND summary IS NOT NULL
        ORDER BY finished_at DESC`,
    );
  }

  async function prune(before: Date): Promise<number> {
    const { count } = await run((sql) => sql`DELETE FROM job_run WHERE finished_at < ${before}`);
    return count;
  }

  return { claim, renew, finish, summaries, prune };
}

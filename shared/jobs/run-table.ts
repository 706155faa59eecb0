// Runs of jobs as rows of job_run. All times of a lease are the database's.

import type { RunSql } from '@holdfast/kit/kept-database';
import type { Claim, JobRuns } from './port.ts';

interface ClaimRow {
  name: string;
  due_at: Date;
  runner: string;
  attempt: number;
}

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

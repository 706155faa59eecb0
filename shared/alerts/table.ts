// Alerts in our own database, shared by every process: a module's state changes under a lock on its row, an alert is
// sent by whoever holds its lease. All times that decide something are the database's.

import type { RunSql } from '@holdfast/kit/kept-database';
import type { Sql, TransactionSql } from '@holdfast/kit/postgres';
import { type Applied, type Known, observationOf, sameState, stateAfter } from './documents.ts';
import { alertGivenUp, type AlertPolicy, type AlertState, mergeStates, reduce, UNTOLD } from './engine.ts';
import type { Remembered } from './memory.ts';
import type { Alert, AlertEvaluation, AlertFilter, AlertSummary } from './port.ts';
import { type AlertRow, alertsOf, stateOf } from './rows.ts';

export interface Taking {
  runner: string;
  most: number;
  leaseSeconds: number;
  /** Alerts that are on their way already. */
  except: readonly string[];
  /** False: those that other runners were the last to look after are left to them. */
  takeOver: boolean;
}

export type AlertTable = ReturnType<typeof alertTable>;

/** After the server's own start, runners that were cut off get this long to write down what they have sent. */
const GRACE_SECONDS = 15;
/** How long a given up alert is shown by health. */
const FAILED_SHOWN_DAYS = 7;
/** Of a module that flaps each second, more would be of no use. */
const MOST_SUPPRESSED = 10_000;

interface StateRow {
  state: unknown;
  version: string;
}

export function alertTable(run: RunSql) {
  const known = (module: string): Promise<Known | undefined> => run((sql) => readState(sql, module));

  /** Feeds one evaluation to the engine; what it raises belongs to `runner` for `leaseSeconds`. */
  async function apply(
    evaluation: AlertEvaluation,
    policy: AlertPolicy,
    id: string,
    runner: string,
    leaseSeconds: number,
  ): Promise<Applied> {
    const { module, at } = evaluation;
    const decide = (before: Known): Applied => {
      const step = reduce(before.state, { ...evaluation, atMs: Date.parse(at) }, policy, id);
      const observation = observationOf(step, evaluation, policy, id);
      return { state: step.state, version: before.version, observation };
    };
    const seen = await known(module);
    const first = seen && decide(seen);
    if (seen !== undefined && first?.observation.kind === 'none' && sameState(first.state, seen.state)) return first;
    return run((sql) =>
      sql.begin(async (transaction) => {
        const before = await lockState(transaction, module);
        const applied = decide(before);
        const version = await writeState(transaction, module, before, applied.state);
        if ('alert' in applied.observation)
          await writeAlert(transaction, applied.observation.alert, runner, 0, leaseSeconds);
        return { ...applied, version };
      }),
    );
  }

  /** Pending alerts that are due, oldest first; they belong to `runner` for `leaseSeconds`. */
  async function takeDue({ runner, most, leaseSeconds, except, takeOver }: Taking): Promise<Alert[]> {
    const rows = await run(
      (sql) => sql<AlertRow[]>`
        UPDATE alert SET runner = ${runner}, lease_until = now() + make_interval(secs => ${leaseSeconds})
        WHERE id IN (
          SELECT id FROM alert
          WHERE state = 'pending' AND next_attempt_at <= now() AND id::text <> ALL(string_to_array(${except.join()}, ','))
            AND (runner = ${runner} OR (${takeOver} AND (lease_until IS NULL OR lease_until < now())
              AND pg_postmaster_start_time() < now() - make_interval(secs => ${GRACE_SECONDS})))
          ORDER BY raised_at LIMIT ${most} FOR UPDATE SKIP LOCKED)
        RETURNING *`,
    );
    const { alerts, unreadable } = alertsOf(rows);
    for (const { id, module } of unreadable) await giveUp(id, module);
    return alerts.toSorted((a, b) => a.raised_at.localeCompare(b.raised_at));
  }

  /** An alert that cannot be read can be sent by nobody; what it would have told is unknown again. */
  async function giveUp(id: string, module: string): Promise<void> {
    await run((sql) =>
      sql.begin(async (transaction) => {
        await transaction`
          UPDATE alert SET state = 'failed', next_attempt_at = NULL, reason = 'This row of the database cannot be read.'
          WHERE id = ${id}`;
        const before = await lockState(transaction, module);
        await writeState(transaction, module, before, alertGivenUp(before.state, id));
      }),
    );
  }

  /** The pending alerts that `runner` was the last to look after. */
  async function idsOf(runner: string): Promise<Set<string>> {
    const rows = await run(
      (sql) => sql<{ id: string }[]>`SELECT id FROM alert WHERE state = 'pending' AND runner = ${runner}`,
    );
    return new Set(rows.map(({ id }) => id));
  }

  /** What belonged to a process that has ended belongs to the one after it. */
  async function inherit(from: string, to: string): Promise<void> {
    await run(
      (sql) => sql`
        UPDATE alert SET runner = ${to}, lease_until = NULL WHERE state = 'pending' AND runner = ${from}`,
    );
  }

  /** Takes over the state that a process has arrived at by itself. */
  async function mergeState(module: string, ours: Remembered): Promise<Known> {
    return run((sql) =>
      sql.begin(async (transaction) => {
        const theirs = await lockState(transaction, module);
        const untouched = theirs.version === ours.version || theirs.version === 0;
        const state = untouched ? ours.state : mergeStates(ours.state, theirs.state, ours.lineage);
        return { state, version: await writeState(transaction, module, theirs, state) };
      }),
    );
  }

  /**
   * Takes over an alert that a process has raised or tried to send; its next attempt is due after `pauseSeconds`. Answers
   * with what that means for the module.
   */
  async function mergeAlert(alert: Alert, runner: string, pauseSeconds: number): Promise<Known> {
    return run((sql) =>
      sql.begin(async (transaction) => {
        await writeAlert(transaction, alert, runner, pauseSeconds, null);
        const before = await lockState(transaction, alert.module);
        const state = stateAfter(before.state, alert);
        return { state, version: await writeState(transaction, alert.module, before, state) };
      }),
    );
  }

  async function list(
    filter: AlertFilter,
    offset: number,
    limit: number,
  ): Promise<{ results: Alert[]; count: number }> {
    const { module = null, level = null, state = null, since = null, until = null } = filter;
    return run(async (sql) => {
      const where = sql`
        (${module}::text IS NULL OR module = ${module}) AND (${level}::text IS NULL OR level = ${level})
        AND (${state}::text IS NULL OR state = ${state})
        AND (${since}::timestamptz IS NULL OR raised_at >= ${since})
        AND (${until}::timestamptz IS NULL OR raised_at < ${until})`;
      const [rows, [total]] = await Promise.all([
        sql<AlertRow[]>`SELECT * FROM alert WHERE ${where} ORDER BY raised_at DESC, id OFFSET ${offset} LIMIT ${limit}`,
        sql<{ count: number }[]>`SELECT count(*)::int AS count FROM alert WHERE ${where}`,
      ]);
      return { results: alertsOf(rows).alerts, count: total?.count ?? 0 };
    });
  }

  async function summary(): Promise<AlertSummary> {
    const [row] = await run(
      (sql) => sql<(Omit<AlertSummary, 'last_sent_at'> & { last_sent_at: Date | null })[]>`
        WITH pending AS (
          SELECT raised_at, reason, deliveries @> '[{"accepted": true}]' AS reached FROM alert WHERE state = 'pending'
        ), failed AS (
          SELECT raised_at, reason, deliveries @> '[{"accepted": true}]' AS reached FROM alert
          WHERE state = 'failed' AND raised_at >= now() - make_interval(days => ${FAILED_SHOWN_DAYS})
        )
        SELECT (SELECT count(*)::int FROM pending) AS pending,
          (SELECT coalesce(greatest(0, round(extract(epoch FROM now() - min(raised_at)))), 0)::float8
            FROM pending WHERE NOT reached) AS oldest_pending_seconds,
          (SELECT count(*)::int FROM pending WHERE reached) AS partly_sent,
          (SELECT reason FROM pending WHERE reason IS NOT NULL ORDER BY reached, raised_at LIMIT 1) AS pending_reason,
          (SELECT count(*)::int FROM failed) AS failed,
          (SELECT count(*)::int FROM failed WHERE NOT reached) AS failed_unreached,
          (SELECT reason FROM failed ORDER BY raised_at DESC LIMIT 1) AS failed_reason,
          (SELECT max(sent_at) FROM alert WHERE state = 'sent') AS last_sent_at`,
    );
    if (row === undefined) throw new Error('no summary');
    return { ...row, last_sent_at: row.last_sent_at?.toISOString() ?? null };
  }

  async function prune(suppressedBefore: string, otherBefore: string): Promise<number> {
    const { count } = await run(
      (sql) => sql`
        DELETE FROM alert
        WHERE (state = 'suppressed' AND raised_at < ${suppressedBefore})
          OR (state IN ('sent', 'failed') AND raised_at < ${otherBefore})
          OR id IN (SELECT id FROM alert WHERE state = 'suppressed' ORDER BY raised_at DESC OFFSET ${MOST_SUPPRESSED})`,
    );
    return count;
  }

  return { known, apply, takeDue, idsOf, inherit, mergeState, mergeAlert, list, summary, prune };
}

async function readState(sql: Sql | TransactionSql, module: string): Promise<Known | undefined> {
  const [row] = await sql<StateRow[]>`SELECT state, version FROM alert_state WHERE module = ${module}`;
  return row && knownOf(row);
}

/** Version 0 belongs to a module that nobody has written about. */
async function lockState(transaction: TransactionSql, module: string): Promise<Known> {
  await transaction`
    INSERT INTO alert_state (module, state, version) VALUES (${module}, ${JSON.stringify(UNTOLD)}::text::jsonb, 0)
    ON CONFLICT DO NOTHING`;
  const [row] = await transaction<StateRow[]>`
    SELECT state, version FROM alert_state WHERE module = ${module} FOR UPDATE`;
  if (row === undefined) throw new Error(`the state of ${module} was removed`);
  return knownOf(row);
}

/** The new version. */
async function writeState(
  transaction: TransactionSql,
  module: string,
  before: Known,
  state: AlertState,
): Promise<number> {
  if (before.version > 0 && sameState(before.state, state)) return before.version;
  const version = before.version + 1;
  await transaction`
    UPDATE alert_state SET state = ${JSON.stringify(state)}::text::jsonb, version = ${version} WHERE module = ${module}`;
  return version;
}

/** An alert that is there already and waits takes over what has become of it elsewhere. */
async function writeAlert(
  sql: Sql | TransactionSql,
  alert: Alert,
  runner: string,
  pauseSeconds: number,
  leaseSeconds: number | null,
): Promise<void> {
  const pause = alert.state === 'pending' ? pauseSeconds : null;
  await sql`
    INSERT INTO alert (id, module, level, message, details, remedies, since, raised_at, state, reason, sent_at, attempts,
      next_attempt_at, deliveries, runner, lease_until)
    VALUES (${alert.id}, ${alert.module}, ${alert.level}, ${alert.message},
      ${JSON.stringify(alert.details)}::text::jsonb, ${JSON.stringify(alert.remedies)}::text::jsonb, ${alert.since}, ${alert.raised_at}, ${alert.state},
      ${alert.reason}, ${alert.sent_at}, ${alert.attempts}, now() + make_interval(secs => ${pause}),
      ${JSON.stringify(alert.deliveries)}::text::jsonb, ${runner}, now() + make_interval(secs => ${leaseSeconds}))
    ON CONFLICT (id) DO UPDATE SET state = EXCLUDED.state, reason = EXCLUDED.reason, sent_at = EXCLUDED.sent_at,
      attempts = EXCLUDED.attempts, next_attempt_at = EXCLUDED.next_attempt_at, deliveries = EXCLUDED.deliveries,
      runner = EXCLUDED.runner, lease_until = EXCLUDED.lease_until
    WHERE alert.state = 'pending' AND (alert.attempts < EXCLUDED.attempts OR EXCLUDED.state = 'sent')`;
}

function knownOf({ state, version }: StateRow): Known {
  return { state: stateOf(state), version: Number(version) };
}

// Stores alerts in our own database for all processes: a module's state changes under a row lock,
// and the holder of the lease sends an alert. All decisive times are the database's.

import type { RunSql } from '@holdfast/kit/kept-database';
import type { Sql, TransactionSql } from '@holdfast/kit/postgres';
import type { Remembered } from './memory.ts';
import type { Alert, AlertEvaluation, AlertFilter, AlertSummary } from './port.ts';
import {
  alertGivenUp,
  type AlertPolicy,
  type AlertState,
  type Applied,
  mergeStates,
  observationOf,
  reduce,
  sameState,
  stateAfter,
  UNREPORTED,
} from './rules.ts';
import { type AlertRow, alertsOf, stateOf } from './schemas.ts';

export interface Taking {
  runner: string;
  most: number;
  leaseSeconds: number;
  /** Alerts that are being sent already. */
  except: readonly string[];
  /** False: alerts of other runners are left to them. */
  takeOver: boolean;
}

/** Time for runners to record what they sent after a start of the database server. */
const GRACE_SECONDS = 15;
/** How long health shows an alert that was given up. */
const FAILED_SHOWN_DAYS = 7;
/** The most muted alerts to keep, for modules that flap. */
const MAX_SUPPRESSED = 10_000;

interface StateRow {
  state: unknown;
}

/** The interface of the table. */
export type AlertTable = Pick<PostgresAlertTable, keyof PostgresAlertTable>;

export class PostgresAlertTable {
  readonly #run: RunSql;

  constructor(run: RunSql) {
    this.#run = run;
  }

  async known(module: string): Promise<AlertState | undefined> {
    const rows = await this.#run((sql) => sql<StateRow[]>`SELECT state FROM alert_state WHERE module = ${module}`);
    return rows[0] && stateOf(rows[0].state);
  }

  /** Feeds one evaluation to the engine; a raised alert belongs to `runner` for `leaseSeconds`. */
  async apply(
    evaluation: AlertEvaluation,
    policy: AlertPolicy,
    id: string,
    runner: string,
    leaseSeconds: number,
  ): Promise<Applied> {
    const { module, at } = evaluation;
    const decide = (before: AlertState): Applied => {
      const step = reduce(before, { ...evaluation, atMs: Date.parse(at) }, policy, id);
      return { state: step.state, observation: observationOf(step, evaluation, policy, id) };
    };
    const seen = await this.known(module);
    const first = seen && decide(seen);
    if (seen !== undefined && first?.observation.kind === 'none' && sameState(first.state, seen)) return first;
    return this.#run((sql) =>
      sql.begin(async (transaction) => {
        const before = await lockState(transaction, module);
        const applied = decide(before);
        await writeState(transaction, module, before, applied.state);
        if ('alert' in applied.observation)
          await writeAlert(transaction, applied.observation.alert, runner, 0, leaseSeconds);
        return applied;
      }),
    );
  }

  /** Pending alerts that are due, oldest first; they belong to `runner` for `leaseSeconds`. */
  async takeDue({ runner, most, leaseSeconds, except, takeOver }: Taking): Promise<Alert[]> {
    const rows = await this.#run(
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
    for (const { id, module } of unreadable) await this.#giveUp(id, module);
    return alerts.toSorted((a, b) => a.raised_at.localeCompare(b.raised_at));
  }

  /** An unreadable alert can't be sent, so its level is unknown to recipients again. */
  async #giveUp(id: string, module: string): Promise<void> {
    await this.#change(module, async (transaction, before) => {
      await transaction`
        UPDATE alert SET state = 'failed', next_attempt_at = NULL, reason = 'This database row can''t be read.'
        WHERE id = ${id}`;
      return alertGivenUp(before, id);
    });
  }

  /** The pending alerts that belong to `runner`. */
  async idsOf(runner: string): Promise<Set<string>> {
    const rows = await this.#run(
      (sql) => sql<{ id: string }[]>`SELECT id FROM alert WHERE state = 'pending' AND runner = ${runner}`,
    );
    return new Set(rows.map(({ id }) => id));
  }

  /** Assigns the alerts of an ended process to its successor. */
  async inherit(from: string, to: string): Promise<void> {
    await this.#run(
      (sql) => sql`
        UPDATE alert SET runner = ${to}, lease_until = NULL WHERE state = 'pending' AND runner = ${from}`,
    );
  }

  /** Merges the state that a process reached by itself. */
  async mergeState(module: string, { state, lineage }: Remembered): Promise<AlertState> {
    return this.#change(module, async (_, theirs) => mergeStates(state, theirs, lineage));
  }

  /**
   * Merges an alert that a process raised or tried to send; its next attempt is due after
   * `pauseSeconds`. Returns the new state of the module.
   */
  async mergeAlert(alert: Alert, runner: string, pauseSeconds: number): Promise<AlertState> {
    return this.#change(alert.module, async (transaction, before) => {
      await writeAlert(transaction, alert, runner, pauseSeconds, null);
      return stateAfter(before, alert);
    });
  }

  /** Changes a state under its lock; resolves with the new one. */
  async #change(
    module: string,
    work: (transaction: TransactionSql, before: AlertState) => Promise<AlertState>,
  ): Promise<AlertState> {
    return this.#run((sql) =>
      sql.begin(async (transaction) => {
        const before = await lockState(transaction, module);
        const state = await work(transaction, before);
        await writeState(transaction, module, before, state);
        return state;
      }),
    );
  }

  async list(filter: AlertFilter, offset: number, limit: number): Promise<{ results: Alert[]; count: number }> {
    const { module = null, level = null, state = null, since = null, until = null } = filter;
    return this.#run(async (sql) => {
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

  async summary(): Promise<AlertSummary> {
    const [row] = await this.#run(
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

  async prune(suppressedBefore: string, otherBefore: string): Promise<number> {
    const { count } = await this.#run(
      (sql) => sql`
        DELETE FROM alert
        WHERE (state = 'suppressed' AND raised_at < ${suppressedBefore})
          OR (state IN ('sent', 'failed') AND raised_at < ${otherBefore})
          OR id IN (SELECT id FROM alert WHERE state = 'suppressed' ORDER BY raised_at DESC OFFSET ${MAX_SUPPRESSED})`,
    );
    return count;
  }
}

/** A module without a row has the state `UNREPORTED`. */
async function lockState(transaction: TransactionSql, module: string): Promise<AlertState> {
  await transaction`
    INSERT INTO alert_state (module, state, version) VALUES (${module}, ${JSON.stringify(UNREPORTED)}::text::jsonb, 0)
    ON CONFLICT DO NOTHING`;
  const [row] = await transaction<StateRow[]>`SELECT state FROM alert_state WHERE module = ${module} FOR UPDATE`;
  if (row === undefined) throw new Error(`the state of ${module} was removed`);
  return stateOf(row.state);
}

/** Earlier releases compare `version` to detect a change. */
async function writeState(
  transaction: TransactionSql,
  module: string,
  before: AlertState,
  state: AlertState,
): Promise<void> {
  if (sameState(before, state)) return;
  await transaction`
    UPDATE alert_state SET state = ${JSON.stringify(state)}::text::jsonb, version = version + 1
    WHERE module = ${module}`;
}

/** Inserts an alert, or updates a pending one with its progress elsewhere. */
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

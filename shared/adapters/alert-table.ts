// Alerts in our own database, shared by every process: a module's state changes under a lock on its row, an alert is
// sent by whoever holds its lease. The times of leases are the database's.

import { type AlertPolicy, type AlertState, mergeStates, reduce, UNTOLD } from '../domain/alerts.ts';
import type { Alert, AlertEvaluation, AlertFilter, AlertPage, AlertSummary, Attempt } from '../ports/alerts.ts';
import type { Snapshot } from './alert-memory.ts';
import { sameState } from './alert-memory.ts';
import { type AlertRow, alertOf, storedStateSchema } from './alert-rows.ts';
import {
  afterAttempt,
  type Applied,
  type AlertStore,
  FAILED_SHOWN_DAYS,
  type Known,
  observationOf,
  stateAfter,
} from './alert-store.ts';
import type { RunSql } from './kept-database.ts';
import type { Sql, TransactionSql } from './postgres.ts';

export interface AlertTable extends AlertStore {
  /** Undefined when the module was never heard of. */
  known(module: string): Promise<Known | undefined>;
  /** Takes over what a process did while the database was away; all of it or nothing. */
  merge(what: Snapshot): Promise<Map<string, Known>>;
  prune(suppressedBefore: string, otherBefore: string): Promise<number>;
}

interface StateRow {
  state: unknown;
  version: string;
}

export function alertTable(run: RunSql, nowMs: () => number = () => Date.now()): AlertTable {
  async function apply(evaluation: AlertEvaluation, policy: AlertPolicy, id: string): Promise<Applied> {
    const { module, at } = evaluation;
    const decide = (known: Known): Applied => {
      const step = reduce(known.state, { ...evaluation, atMs: Date.parse(at) }, policy, id);
      const observation = observationOf(step, evaluation, policy, id);
      return { state: step.state, version: known.version, observation };
    };
    const seen = await known(module);
    const first = seen && decide(seen);
    if (seen !== undefined && first?.observation.kind === 'none' && sameState(first.state, seen.state)) return first;
    return run((sql) =>
      sql.begin(async (transaction) => {
        const known = await lockState(transaction, module);
        const applied = decide(known);
        const version = await writeState(transaction, module, known, applied.state);
        if ('alert' in applied.observation) await insertAlert(transaction, applied.observation.alert);
        return { ...applied, version };
      }),
    );
  }

  async function takeDue(runner: string, most: number, leaseSeconds: number): Promise<Alert[]> {
    const rows = await run(
      (sql) => sql<AlertRow[]>`
        UPDATE alert SET runner = ${runner}, lease_until = now() + make_interval(secs => ${leaseSeconds})
        WHERE id IN (
          SELECT id FROM alert
          WHERE state = 'pending' AND next_attempt_at <= now() AND (lease_until IS NULL OR lease_until < now())
          ORDER BY raised_at LIMIT ${most} FOR UPDATE SKIP LOCKED)
        RETURNING *`,
    );
    return rows.map(alertOf).toSorted((a, b) => a.raised_at.localeCompare(b.raised_at));
  }

  /** A success is written down whoever holds the lease by now; anything else only by its holder. */
  async function settle(runner: string, alert: Alert, attempt: Attempt): Promise<Known | undefined> {
    const after = afterAttempt(alert, attempt, nowMs());
    return run((sql) =>
      sql.begin(async (transaction) => {
        const { count } = await transaction`
          UPDATE alert SET state = ${after.state}, reason = ${after.reason}, sent_at = ${after.sent_at},
            attempts = ${after.attempts}, deliveries = ${JSON.stringify(after.deliveries)}::text::jsonb,
            next_attempt_at = now() + make_interval(secs => ${attempt.pauseSeconds}), lease_until = NULL
          WHERE id = ${alert.id} AND state = 'pending' AND (runner = ${runner} OR ${after.state === 'sent'})`;
        if (count === 0) return undefined;
        const known = await lockState(transaction, alert.module);
        const state = stateAfter(known.state, after, nowMs());
        return { state, version: await writeState(transaction, alert.module, known, state) };
      }),
    );
  }

  async function merge(what: Snapshot): Promise<Map<string, Known>> {
    return run((sql) =>
      sql.begin(async (transaction) => {
        const states = new Map<string, Known>();
        for (const [module, ours] of Object.entries(what.states).toSorted(([a], [b]) => a.localeCompare(b))) {
          const theirs = await lockState(transaction, module);
          const fresh = theirs.version === ours.version || theirs.version === 0;
          const state = fresh ? ours.state : mergeStates(ours.state, theirs.state);
          states.set(module, { state, version: await writeState(transaction, module, theirs, state) });
        }
        for (const alert of what.alerts) await insertAlert(transaction, alert);
        return states;
      }),
    );
  }

  async function list(filter: AlertFilter, offset: number, limit: number): Promise<Omit<AlertPage, 'complete'>> {
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
      return { results: rows.map(alertOf), count: total?.count ?? 0 };
    });
  }

  async function summary(): Promise<AlertSummary> {
    const [row] = await run(
      (sql) => sql<(Omit<AlertSummary, 'last_sent_at'> & { last_sent_at: Date | null })[]>`
        WITH pending AS (
          SELECT raised_at, reason FROM alert WHERE state = 'pending'
        ), failed AS (
          SELECT raised_at, reason FROM alert
          WHERE state = 'failed' AND raised_at >= now() - make_interval(days => ${FAILED_SHOWN_DAYS})
        )
        SELECT (SELECT count(*)::int FROM pending) AS pending,
          (SELECT coalesce(greatest(0, round(extract(epoch FROM now() - min(raised_at)))), 0)::float8 FROM pending)
            AS oldest_pending_seconds,
          (SELECT reason FROM pending ORDER BY raised_at LIMIT 1) AS pending_reason,
          (SELECT count(*)::int FROM failed) AS failed,
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
          OR (state IN ('sent', 'failed') AND raised_at < ${otherBefore})`,
    );
    return count;
  }

  const known = (module: string): Promise<Known | undefined> => run((sql) => readState(sql, module));

  return { apply, known, takeDue, settle, merge, list, summary, prune };
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
async function insertAlert(transaction: TransactionSql, alert: Alert): Promise<void> {
  await transaction`
    INSERT INTO alert (id, module, level, message, details, since, raised_at, state, reason, sent_at, attempts,
      next_attempt_at, deliveries)
    VALUES (${alert.id}, ${alert.module}, ${alert.level}, ${alert.message},
      ${JSON.stringify(alert.details)}::text::jsonb, ${alert.since}, ${alert.raised_at}, ${alert.state},
      ${alert.reason}, ${alert.sent_at}, ${alert.attempts}, ${alert.next_attempt_at},
      ${JSON.stringify(alert.deliveries)}::text::jsonb)
    ON CONFLICT (id) DO UPDATE SET state = EXCLUDED.state, reason = EXCLUDED.reason, sent_at = EXCLUDED.sent_at,
      attempts = EXCLUDED.attempts, next_attempt_at = EXCLUDED.next_attempt_at, deliveries = EXCLUDED.deliveries,
      lease_until = NULL
    WHERE alert.state = 'pending' AND alert.attempts < EXCLUDED.attempts`;
}

function knownOf({ state, version }: StateRow): Known {
  return { state: storedStateSchema.parse(state), version: Number(version) };
}

// One place that keeps alerts and what the engine remembers: the database, or the memory of a process. Both have this
// face, and the documents in them change by the same rules.

import type { AlertPolicy, AlertState, Decision, HoldReason, Step } from '../domain/alerts.ts';
import { alertGivenUp, alertSent } from '../domain/alerts.ts';
import type {
  Alert,
  AlertEvaluation,
  AlertFilter,
  AlertPage,
  AlertSummary,
  Attempt,
  Observation,
} from '../ports/alerts.ts';

/** The state of one module, with the count of its changes. */
export interface Known {
  state: AlertState;
  version: number;
}

export interface Applied extends Known {
  observation: Observation;
}

export interface AlertStore {
  /** Feeds one evaluation to the engine; `id` becomes the alert's if there is one. */
  apply(evaluation: AlertEvaluation, policy: AlertPolicy, id: string): Promise<Applied>;
  /** Pending alerts that are due, oldest first; they belong to `runner` for `leaseSeconds`. */
  takeDue(runner: string, most: number, leaseSeconds: number): Promise<Alert[]>;
  /** Writes down an attempt; answers with the state of the module if that changed. */
  settle(runner: string, alert: Alert, attempt: Attempt): Promise<Known | undefined>;
  list(filter: AlertFilter, offset: number, limit: number): Promise<Omit<AlertPage, 'complete'>>;
  summary(): Promise<AlertSummary>;
}

/** How long a given up alert is shown by health. */
export const FAILED_SHOWN_DAYS = 7;

/** What a step of the engine means for the alerts. */
export function observationOf(
  { state, decision }: Step,
  evaluation: AlertEvaluation,
  policy: AlertPolicy,
  id: string,
): Observation {
  if (decision.kind === 'none') return decision;
  if (decision.kind === 'recover') return { kind: 'recovered', from: decision.from };
  const raised = decision.kind === 'raise';
  const alert: Alert = {
    id,
    module: evaluation.module,
    level: decision.level,
    message: storable(evaluation.message),
    details: evaluation.details.map(storable),
    since: new Date(state.sinceMs ?? Date.parse(evaluation.at)).toISOString(),
    raised_at: evaluation.at,
    state: raised ? 'pending' : 'suppressed',
    reason: reasonOf(decision, policy),
    sent_at: null,
    attempts: 0,
    next_attempt_at: raised ? evaluation.at : null,
    deliveries: [],
  };
  return { kind: raised ? 'raised' : 'suppressed', alert };
}

function reasonOf(decision: Decision, { cooldownSeconds }: AlertPolicy): string | null {
  if (decision.kind !== 'suppress') return null;
  const reasons: Record<HoldReason, string> = {
    cooldown: `An alert of this module at this level or above was sent less than ${cooldownSeconds} s before; this one is told when that time has passed and it still stands.`,
    still_waiting: 'An earlier alert of this module at this level or above still waits to be sent.',
    nobody: 'Nobody is set up to be told; set ALERT_EMAIL_TO or ALERT_SMS_TO.',
  };
  return reasons[decision.reason];
}

/** PostgreSQL takes every character but this one. */
function storable(text: string): string {
  return text.replaceAll('\0', '');
}

/** The alert after an attempt. An outcome takes the place of the earlier one for the same recipient. */
export function afterAttempt(alert: Alert, attempt: Attempt, nowMs: number): Alert {
  const { deliveries, state, reason, pauseSeconds } = attempt;
  const tried = new Set(deliveries.map(({ channel, recipient }) => `${channel} ${recipient}`));
  const earlier = alert.deliveries.filter(({ channel, recipient }) => !tried.has(`${channel} ${recipient}`));
  return {
    ...alert,
    state,
    reason: reason === null ? null : storable(reason),
    attempts: alert.attempts + 1,
    sent_at: state === 'sent' ? new Date(nowMs).toISOString() : null,
    next_attempt_at: pauseSeconds === null ? null : new Date(nowMs + pauseSeconds * 1000).toISOString(),
    deliveries: [...earlier, ...deliveries.map((each) => ({ ...each, detail: storable(each.detail) }))],
  };
}

/** What an attempt means for the engine: the first recipient starts the cooldown, a vain end lifts it. */
export function stateAfter(state: AlertState, after: Alert, nowMs: number): AlertState {
  if (after.deliveries.some(({ accepted }) => accepted)) return alertSent(state, after.id, nowMs);
  return after.state === 'failed' ? alertGivenUp(state, after.id) : state;
}

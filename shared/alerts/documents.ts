// How alerts come to be and change, the same in the database and in memory.

import {
  alertGivenUp,
  type AlertPolicy,
  alertSent,
  type AlertState,
  type Decision,
  type HoldReason,
  type Step,
} from './engine.ts';
import type { Alert, AlertEvaluation, Attempt, Observation } from './port.ts';

/** The state of one module, with the count of its changes. */
export interface Known {
  state: AlertState;
  version: number;
}

export interface Applied extends Known {
  observation: Observation;
}

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
    remedies: evaluation.remedies.map(storable),
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

/** PostgreSQL takes every text but one with NUL or with half a surrogate pair. */
function storable(text: string): string {
  return text.replaceAll('\0', '').toWellFormed();
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

/** What has become of an alert, for the engine: the first recipient starts the cooldown, a vain end lifts it. */
export function stateAfter(state: AlertState, after: Alert): AlertState {
  const reached = after.deliveries.filter(({ accepted }) => accepted).map(({ at }) => Date.parse(at));
  if (reached.length > 0) return alertSent(state, after.id, Math.min(...reached));
  return after.state === 'failed' ? alertGivenUp(state, after.id) : state;
}

export function reachedSomebody({ deliveries }: Alert): boolean {
  return deliveries.some(({ accepted }) => accepted);
}

/** By their content. */
export function sameState(one: AlertState, other: AlertState): boolean {
  return (
    one.told === other.told &&
    one.heldBack === other.heldBack &&
    one.sinceMs === other.sinceMs &&
    one.raised?.id === other.raised?.id &&
    one.raised?.atMs === other.raised?.atMs &&
    one.raised?.sent === other.raised?.sent &&
    one.history?.failuresInRow === other.history?.failuresInRow &&
    one.history?.pollsInRow === other.history?.pollsInRow
  );
}

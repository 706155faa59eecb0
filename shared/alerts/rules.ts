// Decides when to alert: a pure reducer over every evaluation of one module, including good ones.
// Also creates and updates alerts, in the same way for the database and for memory.

import { type History, type Status, urgency } from '../settings/status.ts';
import type { Alert, AlertEvaluation, Attempt, Level, Observation } from './port.ts';

/** One evaluation of one module, with the history for the next one. */
export interface Evaluation extends History {
  status: Status;
  /** True if the evaluator wants an alert (alert_min_level, measurements in a row). */
  shouldAlert: boolean;
  atMs: number;
}

/** The last raised alert of a module. */
export interface Raised {
  id: string;
  level: Level;
  /** When it reached a recipient; until then, when it was raised. */
  atMs: number;
  /** True once it has reached a recipient. */
  sent: boolean;
}

/** The engine's state of one module. */
export interface AlertState {
  /**
   * The level that recipients know, or will know from a pending alert; falls with the status, `ok`
   * after a recovery.
   */
  told: Status;
  raised: Raised | null;
  /** The level that is muted only by the cooldown, or because there are no recipients. */
  heldBack: Level | null;
  /** Since when the module is not ok. */
  sinceMs: number | null;
  /**
   * The history of the last evaluation, so that a restart continues the count; null while the
   * module is ok.
   */
  history: History | null;
}

export const UNREPORTED: AlertState = { told: 'ok', raised: null, heldBack: null, sinceMs: null, history: null };

/** Caps the counts: nothing depends on higher ones, and an unchanged state is not written again. */
const MAX_ROW_LENGTH = 100;

export interface AlertPolicy {
  cooldownSeconds: number;
  /** False while there are no recipients. */
  anybody: boolean;
}

/** Why an alert is not sent. */
export type HoldReason = 'cooldown' | 'still_waiting' | 'nobody';

export type Decision =
  | { kind: 'none' }
  | { kind: 'raise'; level: Level }
  | { kind: 'suppress'; level: Level; reason: HoldReason }
  | { kind: 'recover'; from: Level };

export interface Step {
  state: AlertState;
  decision: Decision;
}

/**
 * Returns the next state and the decision. A level is alerted if it is higher than the known one;
 * the known level falls with the status, even if that warrants no alert, because a restart counts
 * measurements in a row from zero. During the cooldown only a level above the last alert is sent;
 * any other is muted, and sent after the cooldown if it persists. `id` is the id of a raised alert.
 */
export function reduce(state: AlertState, evaluation: Evaluation, policy: AlertPolicy, id: string): Step {
  const { status, shouldAlert, atMs } = evaluation;
  const now = { sinceMs: status === 'ok' ? null : (state.sinceMs ?? atMs), history: historyOf(evaluation) };
  const reported = urgency(status) < urgency(state.told) ? status : state.told;
  const level = shouldAlert ? status : 'ok';
  if (level === 'ok' || urgency(level) <= urgency(reported)) {
    const quiet: AlertState = { ...state, told: reported, heldBack: null, ...now };
    const recovered = status === 'ok' && state.told !== 'ok';
    return { state: quiet, decision: recovered ? { kind: 'recover', from: state.told as Level } : { kind: 'none' } };
  }
  const reason = holdReason(level, state.raised, atMs, policy);
  if (reason === undefined) {
    const raised = { id, level, atMs, sent: false };
    return { state: { told: level, raised, heldBack: null, ...now }, decision: { kind: 'raise', level } };
  }
  const held: AlertState =
    reason === 'still_waiting'
      ? { ...state, told: level, heldBack: null, ...now }
      : { ...state, told: reported, heldBack: level, ...now };
  const known = state.heldBack !== null && urgency(level) <= urgency(state.heldBack);
  return { state: held, decision: known ? { kind: 'none' } : { kind: 'suppress', level, reason } };
}

/** An alert reached a recipient: its cooldown begins now. */
export function alertSent(state: AlertState, id: string, atMs: number): AlertState {
  if (state.raised?.id !== id || state.raised.sent) return state;
  return { ...state, raised: { ...state.raised, atMs, sent: true } };
}

/** An alert reached no recipient and is not retried: its level is unknown to people again. */
export function alertGivenUp(state: AlertState, id: string): AlertState {
  if (state.raised?.id !== id || state.raised.sent) return state;
  return { ...state, raised: null, told: 'ok', heldBack: null };
}

/** True if an ok evaluation would change nothing. */
export function isAtRest({ told: reported, heldBack, sinceMs }: AlertState): boolean {
  return reported === 'ok' && heldBack === null && sinceMs === null;
}

/**
 * Merges the state of a process that was cut off (`ours`) with what happened elsewhere meanwhile
 * (`theirs`). If their last alert is in `lineage` (the last one known to both, and ours since; ''
 * is none), no other process has alerted, and ours wins. Otherwise nothing that either has sent is
 * sent again.
 */
export function mergeStates(ours: AlertState, theirs: AlertState, lineage: readonly string[]): AlertState {
  if (theirs.raised?.id === ours.raised?.id)
    return { ...ours, raised: ours.raised?.sent === true ? ours.raised : theirs.raised };
  if (lineage.includes(theirs.raised?.id ?? '')) return ours;
  const since = [ours.sinceMs, theirs.sinceMs].filter((ms) => ms !== null);
  return {
    told: urgency(ours.told) >= urgency(theirs.told) ? ours.told : theirs.told,
    raised: (ours.raised?.atMs ?? -1) >= (theirs.raised?.atMs ?? -1) ? ours.raised : theirs.raised,
    heldBack: ours.heldBack ?? theirs.heldBack,
    sinceMs: since.length === 0 ? null : Math.min(...since),
    history: ours.history ?? theirs.history,
  };
}

function historyOf({ status, failuresInRow, pollsInRow }: Evaluation): History | null {
  if (status === 'ok') return null;
  return { failuresInRow: Math.min(failuresInRow, MAX_ROW_LENGTH), pollsInRow: Math.min(pollsInRow, MAX_ROW_LENGTH) };
}

/** A clock set back must not mute a module for longer than the cooldown. */
function holdReason(
  level: Level,
  raised: Raised | null,
  atMs: number,
  { cooldownSeconds, anybody }: AlertPolicy,
): HoldReason | undefined {
  if (!anybody) return 'nobody';
  if (raised === null || urgency(level) > urgency(raised.level)) return undefined;
  if (!raised.sent) return 'still_waiting';
  return Math.abs(atMs - raised.atMs) < cooldownSeconds * 1000 ? 'cooldown' : undefined;
}

/** The effect of an evaluation. */
export interface Applied {
  state: AlertState;
  observation: Observation;
}

/** Derives the alert of an engine step. */
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
    cooldown: `Muted by the cooldown: an alert of this module at this level or above was sent less than ${cooldownSeconds} s before. This one is sent after that time if the problem persists.`,
    still_waiting: 'An earlier alert of this module at this level or above is still pending.',
    nobody: 'No alert recipients: set ALERT_EMAIL_TO or ALERT_SMS_TO.',
  };
  return reasons[decision.reason];
}

/** PostgreSQL rejects text with NUL or with a lone surrogate. */
function storable(text: string): string {
  return text.replaceAll('\0', '').toWellFormed();
}

/** The alert after an attempt. An outcome replaces the earlier one of the same recipient. */
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

/**
 * Updates the engine after an attempt: the first recipient starts the cooldown, a failed end lifts
 * it.
 */
export function stateAfter(state: AlertState, after: Alert): AlertState {
  const reached = after.deliveries.filter(({ accepted }) => accepted).map(({ at }) => Date.parse(at));
  if (reached.length > 0) return alertSent(state, after.id, Math.min(...reached));
  return after.state === 'failed' ? alertGivenUp(state, after.id) : state;
}

export function wasDelivered({ deliveries }: Alert): boolean {
  return deliveries.some(({ accepted }) => accepted);
}

/** Compares by content. */
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

const FIRST_SECONDS = 5;
const MAX_FIRST_SECONDS = 50;
const AFTERWARDS_SECONDS = 300;
const AFTER_A_REFUSAL_FOR_GOOD_SECONDS = 3600;
const GIVEN_UP_AFTER_SECONDS = 3 * 86_400;

/** Until an alert is this old, it is retried often, and no failure is final. */
export const AT_FIRST_SECONDS = 600;

interface LastAttempt {
  /** The pause that a service asked for; it is kept, within the same bounds. */
  requestedSeconds?: number;
  /** True if a retry can't help until something is changed. */
  permanent?: boolean;
}

/**
 * Seconds until the next attempt, after `attempts` failed ones, for an alert that is `ageSeconds`
 * old: 5, 10, 20, 40, 50 within the first ten minutes, then up to five minutes, or an hour after a
 * permanent rejection; undefined after three days, when it is given up.
 */
export function retryPauseSeconds(
  attempts: number,
  ageSeconds: number,
  { requestedSeconds = 0, permanent = false }: LastAttempt = {},
): number | undefined {
  if (ageSeconds >= GIVEN_UP_AFTER_SECONDS) return undefined;
  if (ageSeconds >= AT_FIRST_SECONDS && permanent) return AFTER_A_REFUSAL_FOR_GOOD_SECONDS;
  const longest = ageSeconds < AT_FIRST_SECONDS ? MAX_FIRST_SECONDS : AFTERWARDS_SECONDS;
  const growing = FIRST_SECONDS * 2 ** Math.min(Math.max(attempts, 1) - 1, 20);
  return Math.min(Math.max(growing, requestedSeconds), longest);
}

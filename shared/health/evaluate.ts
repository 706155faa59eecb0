// Evaluates the findings of a health module to one status and one sentence, which names the worst
// finding.

import { type History, type ModuleThresholds, NO_HISTORY, type Status, urgency } from '../settings/status.ts';

/**
 * Two thresholds. If `critical` is the smaller one, lower is worse, as with days left. A value at a
 * threshold has reached it.
 */
export interface Limits {
  warning: number;
  critical: number;
}

/** A measured value that the thresholds judge. */
export interface Figure {
  kind: 'figure';
  /** What was measured: `public.cot_router`. */
  subject: string;
  value: number;
  limits: Limits;
  /** The value in words: `50 % dead rows`. */
  says: string;
  remedy?: string | undefined;
  /** A threshold in words; default: the number. */
  format?: (limit: number) => string;
  /** Decides only when both thresholds are equal. */
  lowerIsWorse?: boolean;
}

/** Something that failed now; the number of failures in a row decides its level. */
export interface Failure {
  kind: 'failure';
  says: string;
  remedy?: string | undefined;
}

/** Something that needs no threshold. */
export interface Fact {
  kind: 'fact';
  status: Status;
  says: string;
  remedy?: string | undefined;
}

/**
 * `remedy`: what to do about this finding, with a command to paste if there is one; at most 300
 * characters.
 */
export type Finding = Figure | Failure | Fact;

export interface Verdict extends History {
  status: Status;
  message: string;
  /** Each finding that is not ok, with its threshold, worst first; at most MAX_DETAILS. */
  details: string[];
  /**
   * What to do about those findings, worst first, without duplicates; general remedies of the
   * module follow elsewhere.
   */
  remedies: string[];
  shouldAlert: boolean;
}

export const MAX_DETAILS = 20;

/** Findings without a threshold come before those with one. */
const UNWEIGHED = Number.MAX_VALUE;

interface Judged {
  status: Status;
  says: string;
  /** The text with its threshold, if `says` leaves it out. */
  detail?: string;
  /** Among equals, the larger one is worse. */
  weight: number;
  remedy?: string | undefined;
}

/**
 * Judges the findings of one measurement. `well` is the message if all are ok. Failures in a row
 * are compared with the module's `warning` and `critical`; a failure below both is a note, never
 * ok.
 */
export function evaluate(
  findings: readonly Finding[],
  well: string,
  thresholds: ModuleThresholds,
  before: History = NO_HISTORY,
): Verdict {
  const failuresInRow = findings.some(({ kind }) => kind === 'failure') ? before.failuresInRow + 1 : 0;
  const judged = findings.map((finding) => ({
    ...judge(finding, limitsOf(thresholds), failuresInRow),
    remedy: finding.remedy,
  }));
  const worstFirst = judged.toSorted((a, b) => urgency(b.status) - urgency(a.status) || b.weight - a.weight);
  const worst = worstFirst[0];
  const status = worst?.status ?? 'ok';
  const alike = judged.filter((each) => each.status === status).length - 1;
  const message =
    worst === undefined || status === 'ok' ? well : `${worst.says}${alike > 0 ? ` (and ${alike} more)` : ''}.`;
  const alerts = alerting(status, thresholds, before);
  return {
    status,
    message,
    details: detailsOf(worstFirst),
    remedies: remediesOf(worstFirst),
    failuresInRow,
    ...alerts,
  };
}

function remediesOf(worstFirst: readonly Judged[]): string[] {
  const wanted = worstFirst.filter(({ status }) => status !== 'ok').flatMap(({ remedy }) => remedy ?? []);
  return [...new Set(wanted)].slice(0, MAX_DETAILS);
}

function detailsOf(worstFirst: readonly Judged[]): string[] {
  return worstFirst
    .filter((each) => each.status !== 'ok')
    .slice(0, MAX_DETAILS)
    .map(({ says, detail = says }) => `${detail}.`);
}

/** The verdict for a module that could not measure: critical, regardless of thresholds. */
export function evaluateFailure(message: string, thresholds: ModuleThresholds, before: History = NO_HISTORY): Verdict {
  const text = message.replace(/\.$/, '');
  return {
    status: 'critical',
    message: `${text}.`,
    details: [`${text}.`],
    remedies: [],
    failuresInRow: before.failuresInRow + 1,
    ...alerting('critical', thresholds, before),
  };
}

/**
 * The thresholds called `warning` and `critical`, or with a prefix `days_warning` and
 * `days_critical`.
 */
export function limitsOf(thresholds: ModuleThresholds, prefix = ''): Limits {
  return { warning: Number(thresholds[`${prefix}warning`]), critical: Number(thresholds[`${prefix}critical`]) };
}

function alerting(
  status: Status,
  thresholds: ModuleThresholds,
  before: History,
): Pick<Verdict, 'pollsInRow' | 'shouldAlert'> {
  const bad = urgency(status) >= urgency(thresholds.alert_min_level);
  const pollsInRow = bad ? before.pollsInRow + 1 : 0;
  return { pollsInRow, shouldAlert: bad && pollsInRow >= Number(thresholds['alert_after_polls'] ?? 1) };
}

function judge(finding: Finding, failureLimits: Limits, failuresInRow: number): Judged {
  if (finding.kind === 'figure') return judgeFigure(finding);
  if (finding.kind === 'fact') return { status: finding.status, says: finding.says, weight: UNWEIGHED };
  const level = levelOf(failuresInRow, failureLimits, false);
  const times = failuresInRow === 1 ? '' : ` (${failuresInRow} times in a row)`;
  const says = `${finding.says}${times}`;
  const { warning, critical } = failureLimits;
  const limits = `warning from ${warning}, critical from ${critical} times in a row`;
  return { status: level === 'ok' ? 'note' : level, says, detail: `${says}; ${limits}`, weight: UNWEIGHED };
}

function judgeFigure({ subject, value, limits, says, format = String, lowerIsWorse = false }: Figure): Judged {
  if (!Number.isFinite(value)) return { status: 'critical', says: `${subject}: no value`, weight: UNWEIGHED };
  const status = levelOf(value, limits, lowerIsWorse);
  const lower = isLowerWorse(limits, lowerIsWorse);
  const reached = status === 'ok' ? undefined : limits[status];
  const limit = reached === undefined ? '' : `; ${status} ${lower ? 'at' : 'from'} ${format(reached)}`;
  return { status, says: `${subject}: ${says}${limit}`, weight: lower ? -value : value };
}

function levelOf(value: number, limits: Limits, lowerIsWorse: boolean): 'ok' | 'warning' | 'critical' {
  const lower = isLowerWorse(limits, lowerIsWorse);
  const reaches = (limit: number): boolean => (lower ? value <= limit : value >= limit);
  if (reaches(limits.critical)) return 'critical';
  return reaches(limits.warning) ? 'warning' : 'ok';
}

function isLowerWorse({ warning, critical }: Limits, whenEqual: boolean): boolean {
  return critical === warning ? whenEqual : critical < warning;
}

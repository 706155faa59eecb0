// The alerts that were raised, what waits to be sent, and what people have been told. They outlive the process, are
// shared by all processes over one database, and go on without the database.

import type { Level } from '../domain/alerts.ts';
import type { History } from '../domain/evaluate.ts';
import type { Status } from '../domain/status.ts';
import type { Channel } from './notifier.ts';

export const ALERT_STATES = ['pending', 'sent', 'suppressed', 'failed'] as const;

export type AlertProgress = (typeof ALERT_STATES)[number];

/** What became of an alert for one recipient. */
export interface AlertDelivery {
  channel: Channel;
  recipient: string;
  accepted: boolean;
  /** The last answer of the service. */
  detail: string;
  /** ISO 8601; of the last attempt. */
  at: string;
}

/** One alert. Times are ISO 8601. */
export interface Alert {
  id: string;
  module: string;
  level: Level;
  message: string;
  /** Every finding that is not ok, with its figure and its threshold, worst first. */
  details: string[];
  /** What to do about just these findings, worst first. */
  remedies: string[];
  /** Since when the module has not been ok. */
  since: string;
  raised_at: string;
  state: AlertProgress;
  /** Why it is suppressed, still pending, or failed; null when there is nothing to explain. */
  reason: string | null;
  /** When it had reached everybody. */
  sent_at: string | null;
  attempts: number;
  /** Of a pending one. */
  next_attempt_at: string | null;
  deliveries: AlertDelivery[];
}

/** One evaluation of one module, as the scheduler has it. */
export interface AlertEvaluation extends History {
  module: string;
  status: Status;
  shouldAlert: boolean;
  message: string;
  details: string[];
  remedies: string[];
  /** ISO 8601. */
  at: string;
}

/** What one attempt brought. */
export interface Attempt {
  /** The outcome for each recipient that was tried. */
  deliveries: AlertDelivery[];
  /** `sent`: everybody has it; `pending`: to be tried again; `failed`: given up. */
  state: 'sent' | 'pending' | 'failed';
  reason: string | null;
  /** Seconds until the next attempt of a pending one. */
  pauseSeconds: number | null;
}

export interface AlertFilter {
  module?: string | undefined;
  level?: Level | undefined;
  state?: AlertProgress | undefined;
  /** ISO 8601, inclusive: raised at that time or later. */
  since?: string | undefined;
  /** ISO 8601, exclusive: raised before that time. */
  until?: string | undefined;
}

export interface AlertPage {
  /** Newest first. */
  results: Alert[];
  /** All that match. */
  count: number;
  /** False when the database does not answer, and only what happened without it is shown. */
  complete: boolean;
}

/** Figures for health and metrics. */
export interface AlertSummary {
  pending: number;
  /** Of the one that waits longest and has reached nobody; 0 when there is none. */
  oldest_pending_seconds: number;
  /** Pending ones that somebody has, but not everybody. */
  partly_sent: number;
  /** Why one is still waiting; of one that nobody has, if there is any. */
  pending_reason: string | null;
  /** Given up within the last seven days: they reached nobody, or not everybody. */
  failed: number;
  /** Of those, how many reached nobody. */
  failed_unreached: number;
  /** The newest of those. */
  failed_reason: string | null;
  /** When an alert was sent last, ISO 8601. */
  last_sent_at: string | null;
}

export interface Alerts {
  /**
   * Tells the engine one evaluation; called for every one, ok too. Answers with what it decided. Needs no database.
   */
  observe(evaluation: AlertEvaluation): Promise<Observation>;
  /** What the last evaluation of a module left behind, also before a restart. */
  history(module: string): Promise<History>;
  /** Alerts whose next attempt is due, about `most`; nobody else takes them until they are settled, or for three minutes. */
  takeDue(most: number): Promise<Alert[]>;
  /** Writes down what an attempt brought; needs no database. */
  settle(alert: Alert, attempt: Attempt): Promise<void>;
  list(filter: AlertFilter, offset: number, limit: number): Promise<AlertPage>;
  /** Rejects when the database does not answer: what waits there cannot be seen then. */
  summary(): Promise<AlertSummary>;
  /** What makes a restart without the database forget something; null when nothing does. */
  trouble(): Promise<string | null>;
  /** Removes what is no longer pending and was raised before these times (ISO 8601); resolves with the number. */
  prune(suppressedBefore: string, otherBefore: string): Promise<number>;
}

/** What the engine decided about one evaluation; the alert when there is one. */
export type Observation =
  | { kind: 'none' }
  | { kind: 'raised' | 'suppressed'; alert: Alert }
  | { kind: 'recovered'; from: Level };

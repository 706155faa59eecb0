// Declares the ports of alerts: the alert store, transports and heartbeat. Alerts outlive the
// process, are shared by all processes of one database, and continue without the database.

import type { History, Status } from '../settings/status.ts';

export const ALERT_STATES = ['pending', 'sent', 'suppressed', 'failed'] as const;

export type AlertProgress = (typeof ALERT_STATES)[number];

/** The delivery of an alert to one recipient. */
export interface AlertDelivery {
  channel: Channel;
  recipient: string;
  accepted: boolean;
  /** The last answer of the service. */
  detail: string;
  /** Time of the last attempt, ISO 8601. */
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
  /** What to do about these findings, worst first. */
  remedies: string[];
  /** Since when the module has not been ok. */
  since: string;
  raised_at: string;
  state: AlertProgress;
  /** Why it is suppressed, pending or failed; null if it needs no reason. */
  reason: string | null;
  /** When it had reached every recipient. */
  sent_at: string | null;
  attempts: number;
  /** Null unless it is pending. */
  next_attempt_at: string | null;
  deliveries: AlertDelivery[];
}

/** One evaluation of one module, from the scheduler. */
export interface AlertEvaluation extends History {
  module: string;
  status: Status;
  shouldAlert: boolean;
  message: string;
  details: string[];
  remedies: string[];
  /** ISO 8601. */
  at: string;
  /** Of a local module while there are other processes, whose results come by our own database. */
  isShared?: boolean;
}

/** The outcome of one attempt. */
export interface Attempt {
  /** The delivery to each attempted recipient. */
  deliveries: AlertDelivery[];
  /** `sent`: every recipient has it; `pending`: to be retried; `failed`: given up. */
  state: 'sent' | 'pending' | 'failed';
  reason: string | null;
  /** Seconds until the next attempt, if pending. */
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
  /** The number of all matches. */
  count: number;
  /** False if the database is unavailable and only alerts since then are listed. */
  complete: boolean;
}

/** Figures for health and metrics. */
export interface AlertSummary {
  pending: number;
  /** Age of the oldest one that reached no recipient; 0 if there is none. */
  oldest_pending_seconds: number;
  /** Pending ones that reached some recipients, but not all. */
  partly_sent: number;
  /** Why one is pending; preferably of one that reached no recipient. */
  pending_reason: string | null;
  /** Given up within the last seven days: they did not reach every recipient. */
  failed: number;
  /** How many of those reached no recipient. */
  failed_unreached: number;
  /** The reason of the newest of those. */
  failed_reason: string | null;
  /** When an alert was last sent, ISO 8601. */
  last_sent_at: string | null;
}

export interface Alerts {
  /**
   * Feeds every evaluation to the engine, including ok ones, and returns its decision. Needs no
   * database.
   */
  observe(evaluation: AlertEvaluation): Promise<Observation>;
  /** The history of the last evaluation of a module, even from before a restart. */
  history(module: string): Promise<History>;
  /**
   * About `most` alerts whose next attempt is due; reserved until they are settled, or for three
   * minutes.
   */
  takeDue(most: number): Promise<Alert[]>;
  /** Records the outcome of an attempt; needs no database. */
  settle(alert: Alert, attempt: Attempt): Promise<void>;
  list(filter: AlertFilter, offset: number, limit: number): Promise<AlertPage>;
  /** Rejects if the database is unavailable, as its pending alerts are unknown then. */
  summary(): Promise<AlertSummary>;
  /** Why a restart without the database would lose alerts; null if it would not. */
  trouble(): Promise<string | null>;
  /**
   * Removes alerts that are not pending and older than these times (ISO 8601); resolves with the
   * number.
   */
  prune(suppressedBefore: string, otherBefore: string): Promise<number>;
}

/** The engine's decision about one evaluation, with the alert if there is one. */
export type Observation =
  | { kind: 'none' }
  | { kind: 'raised' | 'suppressed'; alert: Alert }
  | { kind: 'recovered'; from: Level };

/** Channels for messages; the settings name the service of each. */
export const CHANNELS = ['email', 'sms'] as const;

export type Channel = (typeof CHANNELS)[number];

/** The outcome of sending a message to one recipient. */
export interface SendOutcome {
  recipient: string;
  /** True once the service is responsible for delivery. */
  accepted: boolean;
  /** The answer of the service, or why it could not be reached; never a secret. */
  detail: string;
  /** The pause that the service asked for. */
  retryAfterSeconds?: number;
  /** Set if the service will never accept it until a setting or an account is changed. */
  permanent?: true;
}

export interface Notifier {
  /**
   * Sends one message to recipients and returns an outcome for each, in order. Never rejects, and
   * ends within SEND_WITHIN_MS regardless of the service; nothing is sent after it has resolved.
   */
  send(message: Message, recipients: readonly string[]): Promise<SendOutcome[]>;
}

/** The longest duration of a send: a mail server may check a mail for long before it accepts it. */
export const SEND_WITHIN_MS = 90_000;

/** One channel that is set up. */
export interface AlertTransport {
  /** The name of the service: `SMTP (mail.example.org)`, `Resend`, `Twilio` or `Brevo`. */
  by: string;
  recipients: readonly string[];
  notifier: Notifier;
}

/** The channels that are set up. */
export type AlertTransports = Partial<Record<Channel, AlertTransport>>;

/** The state of the heartbeat to an external monitor, as a dead host cannot alert. */
export interface HeartbeatState {
  /** ISO 8601; null before the first one. */
  last_ok_at: string | null;
  failures_in_row: number;
  /** The error of the last one; null if it succeeded. */
  error: string | null;
}

export interface Heartbeat {
  /** Rejects with an AppError that does not name the address, which may contain a secret. */
  beat(): Promise<void>;
  state(): Promise<HeartbeatState>;
}

/** One message in every form that a channel needs. */
export interface Message {
  /**
   * Unique, and the same for every attempt, so that services and mail clients can drop duplicates.
   */
  id: string;
  /** Plain ASCII, one line. */
  subject: string;
  text: string;
  html: string;
  /** For SMS: printable ASCII, at most 300 characters, one line. */
  brief: string;
}

/** A level that can raise an alert. */
export type Level = Exclude<Status, 'ok'>;

/** The ports that this feature needs, by their names in Deps. */
export interface AlertPorts {
  alerts: Alerts;
  notify: AlertTransports;
  /** Undefined if HEARTBEAT_URL is unset. */
  heartbeat: Heartbeat | undefined;
}

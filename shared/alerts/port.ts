// The alerts that were raised, what waits to be sent, and what people have been told. They outlive the process, are
// shared by all processes over one database, and go on without the database.

import type { History, Status } from '../settings/status.ts';

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

/** How a message reaches people: by e-mail or by SMS, each through whatever service the settings name. */
export const CHANNELS = ['email', 'sms'] as const;

export type Channel = (typeof CHANNELS)[number];

/** What became of a message for one recipient. */
export interface SendOutcome {
  recipient: string;
  /** True once the service has taken responsibility for it. */
  accepted: boolean;
  /** What the service answered, or why it could not be asked; never a secret. */
  detail: string;
  /** The service asked to be left alone for that long. */
  retryAfterSeconds?: number;
  /** The service will not take it however often it is asked, until somebody changes a setting or an account. */
  permanent?: true;
}

export interface Notifier {
  /**
   * Sends one message to some recipients and answers for each of them, in their order. Never rejects, and ends within
   * SEND_WITHIN_MS whatever the service does; nothing is sent any more after it has answered.
   */
  send(message: Message, recipients: readonly string[]): Promise<SendOutcome[]>;
}

/** The longest that a send may take: a mail server may look long at a mail before it takes it. */
export const SEND_WITHIN_MS = 90_000;

/** One channel that is set up. */
export interface AlertTransport {
  /** The service, as people call it: `SMTP (mail.example.org)`, `Resend`, `Twilio`, `Brevo`. */
  by: string;
  recipients: readonly string[];
  notifier: Notifier;
}

/** The channels that are set up. */
export type AlertTransports = Partial<Record<Channel, AlertTransport>>;

/** A sign of life for somebody elsewhere: a dead host cannot alert. */
export interface HeartbeatState {
  /** ISO 8601; null before the first one. */
  last_ok_at: string | null;
  failures_in_row: number;
  /** Of the last one; null when it succeeded. */
  error: string | null;
}

export interface Heartbeat {
  /** Rejects with an AppError that does not name the address: it may hold a secret. */
  beat(): Promise<void>;
  state(): Promise<HeartbeatState>;
}

/** One message in every form that a channel may need. */
export interface Message {
  /** Unique and the same for every attempt, so that a service or a mail client can drop what it has seen already. */
  id: string;
  /** Plain ASCII, one line. */
  subject: string;
  text: string;
  html: string;
  /** For SMS: printable ASCII, at most 300 characters, one line. */
  brief: string;
}

/** A level that can be alerted. */
export type Level = Exclude<Status, 'ok'>;

/** What this feature asks of the outside, by the names in Deps. */
export interface AlertPorts {
  alerts: Alerts;
  notify: AlertTransports;
  /** Undefined when HEARTBEAT_URL is unset. */
  heartbeat: Heartbeat | undefined;
}

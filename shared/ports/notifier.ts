// How a message reaches people: by e-mail or by SMS, each through whatever service the settings name.

import type { Message } from '../domain/alert-message.ts';

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
export interface Outlet {
  /** The service, as people call it: `SMTP (mail.example.org)`, `Resend`, `Twilio`, `Brevo`. */
  by: string;
  recipients: readonly string[];
  notifier: Notifier;
}

/** The channels that are set up. */
export type Outlets = Partial<Record<Channel, Outlet>>;

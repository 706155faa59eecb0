// Sends email with Resend and SMS with Twilio or Brevo over their HTTP APIs. Runs on Node and in
// workerd.

import { z } from 'zod';
import type { Secret } from '@holdfast/kit/secret';
import { base64 } from '@holdfast/kit/text';
import { type Answer, askService, limitOf, outcomeOf, type ServiceReply, type Service } from './http-service.ts';
import type { Message, Notifier, SendOutcome } from './port.ts';

interface ServiceOptions {
  /** The platform's fetch. */
  fetch: typeof globalThis.fetch;
  /** Base URL of the API; for another region, or for tests. */
  baseUrl?: string;
  /** Time limit of all calls of a send together (Resend), or of each call (SMS). */
  withinMs?: number;
}

export interface ResendOptions extends ServiceOptions {
  apiKey: Secret;
  /** `address` or `Name <address>`, in a domain verified by Resend. */
  from: string;
}

type Verdict = Omit<SendOutcome, 'recipient'>;

const NO_TIME_LEFT: Verdict = {
  accepted: false,
  detail: 'No time left to send to this recipient alone through Resend',
};

/**
 * Sends email with `POST {baseUrl}/emails`: one call for all recipients. If Resend rejects the
 * mail itself, which may be because of one recipient, it is sent to each recipient separately, as
 * long as that is useful. Source: resend.com/docs/api-reference/emails/send-email; docs/alerts.md
 * says why its package is not used.
 */
export function resendNotifier(options: ResendOptions): Notifier {
  const { from, fetch, withinMs, baseUrl = 'https://api.resend.com' } = options;
  const key = options.apiKey.reveal();
  const service: Service = { name: 'Resend', credential: 'the API key', secrets: [key], fetch, withinMs };

  async function ask(message: Message, recipients: readonly string[], ms: number): Promise<Answer> {
    const mail = mailOf(message, from, recipients);
    const headers = {
      authorization: `Bearer ${key}`,
      'content-type': 'application/json',
      'user-agent': 'holdfast',
      'idempotency-key': await idempotencyKeyOf(message.id, mail),
    };
    return askService(service, `${baseUrl}/emails`, { method: 'POST', headers, body: JSON.stringify(mail) }, ms);
  }

  /**
   * Sends to each recipient; the first failure that is not about the mail itself applies to all
   * others.
   */
  async function askForEach(message: Message, recipients: readonly string[], endMs: number): Promise<SendOutcome[]> {
    const outcomes: SendOutcome[] = [];
    let ended: Verdict | undefined;
    for (const recipient of recipients) {
      const answer = ended === undefined ? await askWithRetry(message, recipient, endMs) : undefined;
      const verdict = ended ?? (answer === undefined ? NO_TIME_LEFT : outcomeOf(service, answer, RESEND_ANSWER));
      outcomes.push({ recipient, ...verdict });
      if (!verdict.accepted && !(answer !== undefined && isAboutTheMail(answer))) ended = verdict;
    }
    return outcomes;
  }

  /** Waits once if Resend requests a pause, as it does after a few calls within a second. */
  async function askWithRetry(message: Message, recipient: string, endMs: number): Promise<Answer | undefined> {
    const leftMs = (): number => Math.max(1, Math.round(endMs - performance.now()));
    if (leftMs() === 1) return undefined;
    const answer = await ask(message, [recipient], leftMs());
    if (answer.status !== 429) return answer;
    const pauseMs = (answer.retryAfterSeconds ?? 1) * 1000;
    if (pauseMs >= leftMs()) return answer;
    await new Promise((waited) => setTimeout(waited, pauseMs));
    return ask(message, [recipient], leftMs());
  }

  return {
    send: async (message, recipients) => {
      if (recipients.length === 0) return [];
      const endMs = performance.now() + limitOf(service);
      const answer = await ask(message, recipients, limitOf(service));
      if (isAboutTheMail(answer) && new Set(recipients).size > 1) return askForEach(message, recipients, endMs);
      const outcome = outcomeOf(service, answer, RESEND_ANSWER);
      return recipients.map((recipient) => ({ recipient, ...outcome }));
    },
  };
}

/** Not 409: Resend is still processing the same mail. */
function isAboutTheMail({ status = 0 }: Answer): boolean {
  return status >= 400 && status < 500 && ![401, 408, 409, 429].includes(status);
}

function mailOf({ subject, text, html }: Message, from: string, recipients: readonly string[]) {
  const headers = { 'Auto-Submitted': 'auto-generated', 'X-Auto-Response-Suppress': 'All' };
  return { from, to: [...recipients], subject, text, html, headers };
}

/**
 * Resend sends once per key in 24 hours, and rejects another mail with a known key. So the key has
 * the id of the message and a digest of the mail.
 */
async function idempotencyKeyOf(id: string, mail: ReturnType<typeof mailOf>): Promise<string> {
  const digest = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(JSON.stringify(mail)));
  const hex = [...new Uint8Array(digest, 0, 12)].map((byte) => byte.toString(16).padStart(2, '0')).join('');
  return `${id.replaceAll(/[^\x21-\x7e]/g, '-').slice(0, 200)}/${hex}`;
}

export interface TwilioOptions extends ServiceOptions {
  accountSid: string;
  authToken: Secret;
  /** A number of the account, or a sender name. */
  from: string;
}

/**
 * Sends SMS with Twilio: `POST {baseUrl}/2010-04-01/Accounts/{SID}/Messages.json`, 201 if accepted.
 * Source: twilio.com/docs/messaging/api/message-resource.
 */
export function twilioNotifier(options: TwilioOptions): Notifier {
  const { accountSid, from, fetch, withinMs, baseUrl = 'https://api.twilio.com' } = options;
  const token = options.authToken.reveal();
  const basic = base64(`${accountSid}:${token}`);
  const credential = 'the account SID and token';
  const service: Service = { name: 'Twilio', credential, secrets: [token, basic], fetch, withinMs };
  const address = `${baseUrl}/2010-04-01/Accounts/${encodeURIComponent(accountSid)}/Messages.json`;
  return onePerRecipient(service, TWILIO_ANSWER, address, {
    headers: { authorization: `Basic ${basic}`, 'content-type': 'application/x-www-form-urlencoded' },
    bodyOf: (to, content) => new URLSearchParams({ To: to, From: from, Body: content }).toString(),
  });
}

export interface BrevoOptions extends ServiceOptions {
  apiKey: Secret;
}

/** Brevo allows a name of at most 11 letters and digits. */
const BREVO_SENDER = 'Holdfast';

/**
 * Sends SMS with Brevo: `POST {baseUrl}/v3/transactionalSMS/send`, 201 if accepted.
 * Source: developers.brevo.com/reference/sendtransacsms.
 */
export function brevoNotifier(options: BrevoOptions): Notifier {
  const { fetch, withinMs, baseUrl = 'https://api.brevo.com' } = options;
  const key = options.apiKey.reveal();
  const service: Service = { name: 'Brevo', credential: 'the API key', secrets: [key], fetch, withinMs };
  const fixed = { sender: BREVO_SENDER, type: 'transactional', unicodeEnabled: false };
  return onePerRecipient(service, BREVO_ANSWER, `${baseUrl}/v3/transactionalSMS/send`, {
    headers: { 'api-key': key, 'content-type': 'application/json' },
    bodyOf: (to, content) => JSON.stringify({ ...fixed, recipient: to.replace(/^\+/, ''), content }),
  });
}

interface Form {
  headers: Record<string, string>;
  bodyOf(recipient: string, content: string): string;
}

/** All calls at once. */
function onePerRecipient(service: Service, answer: z.ZodType<ServiceReply>, address: string, form: Form): Notifier {
  const headers = { ...form.headers, accept: 'application/json' };
  return {
    send: ({ brief }, recipients) =>
      Promise.all(
        recipients.map(async (recipient) => {
          const init = { method: 'POST', headers, body: form.bodyOf(recipient, brief) };
          return { recipient, ...outcomeOf(service, await askService(service, address, init), answer) };
        }),
      ),
  };
}

const text = z.string().optional().catch(undefined);
const word = z.coerce.string().optional().catch(undefined);

const joined = (...words: (string | undefined)[]): string => words.filter(Boolean).join(' ');

const RESEND_ANSWER = z
  .object({ id: text, name: text, message: text })
  .transform(({ id, name, message }): ServiceReply => ({ id, reason: joined(name, message) }));

const TWILIO_ANSWER = z
  .object({ sid: text, code: word, message: word })
  .transform(({ sid, code, message }): ServiceReply => ({ id: sid, reason: joined(code, message) }));

const BREVO_ANSWER = z
  .object({ messageId: z.union([z.number(), z.string()]).optional().catch(undefined), code: word, message: word })
  .transform(({ messageId, code, message }): ServiceReply => ({
    id: messageId?.toString(),
    reason: joined(code, message),
  }));

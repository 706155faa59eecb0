// E-mail by Resend: one call for all recipients, and one for each when it does not take that. Runs on Node and in workerd.
// Its HTTP API and not its package, which imports what a bundle for workerd cannot have and takes no fetch of ours.
// Source: resend.com/docs/api-reference/emails/send-email.

import { z } from 'zod';
import type { Message } from '../domain/alert-message.ts';
import type { Secret } from '../domain/secret.ts';
import type { Notifier, SendOutcome } from '../ports/notifier.ts';
import { type Answer, askService, limitOf, outcomeOf, type Said, type Service } from './ask-service.ts';

export interface ResendOptions {
  apiKey: Secret;
  /** `address` or `Name <address>`, of a domain that Resend has verified. */
  from: string;
  /** The platform's. */
  fetch: typeof globalThis.fetch;
  /** Where the API is, without path; for tests. */
  baseUrl?: string;
  /** The longest that all calls of a send together may take. */
  withinMs?: number;
}

type Mail = ReturnType<typeof mailOf>;

type Verdict = Omit<SendOutcome, 'recipient'>;

/**
 * E-mail by `POST {baseUrl}/emails`. When Resend refuses the mail for what is in it, which may be one recipient, it is
 * asked for each of them, one after the other, as long as that is of use.
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

  /** The answer for each; the first that is not about the mail itself goes for all who are left. */
  async function askForEach(message: Message, recipients: readonly string[], endMs: number): Promise<SendOutcome[]> {
    const outcomes: SendOutcome[] = [];
    let ended: Verdict | undefined;
    for (const recipient of recipients) {
      const answer = ended === undefined ? await askPatiently(message, recipient, endMs) : undefined;
      const verdict = ended ?? (answer === undefined ? NO_TIME_LEFT : outcomeOf(service, answer, RESEND_SAYS));
      outcomes.push({ recipient, ...verdict });
      if (!verdict.accepted && !(answer !== undefined && isAboutTheMail(answer))) ended = verdict;
    }
    return outcomes;
  }

  /** Waits once when Resend asks for a pause, which it does after a few calls within a second. */
  async function askPatiently(message: Message, recipient: string, endMs: number): Promise<Answer | undefined> {
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
      const outcome = outcomeOf(service, answer, RESEND_SAYS);
      return recipients.map((recipient) => ({ recipient, ...outcome }));
    },
  };
}

const NO_TIME_LEFT: Verdict = {
  accepted: false,
  detail: 'There was no time left to ask Resend for this recipient alone',
};

/** 409: Resend is still busy with the same mail, which may yet be sent. */
function isAboutTheMail({ status = 0 }: Answer): boolean {
  return status >= 400 && status < 500 && ![401, 408, 409, 429].includes(status);
}

function mailOf({ subject, text, html }: Message, from: string, recipients: readonly string[]) {
  const headers = { 'Auto-Submitted': 'auto-generated', 'X-Auto-Response-Suppress': 'All' };
  return { from, to: [...recipients], subject, text, html, headers };
}

/**
 * Resend sends once per key in 24 hours, and refuses another mail with a key that it has seen: so the key has the id
 * of the message, and changes with whatever else is in the mail.
 */
async function idempotencyKeyOf(id: string, mail: Mail): Promise<string> {
  const digest = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(JSON.stringify(mail)));
  const hex = [...new Uint8Array(digest, 0, 12)].map((byte) => byte.toString(16).padStart(2, '0')).join('');
  return `${id.replaceAll(/[^\x21-\x7e]/g, '-').slice(0, 200)}/${hex}`;
}

const text = z.string().optional().catch(undefined);

const RESEND_SAYS = z
  .object({ id: text, name: text, message: text })
  .transform(({ id, name, message }): Said => ({ id, reason: [name, message].filter(Boolean).join(' ') }));

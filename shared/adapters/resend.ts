// E-mail by Resend: one call for all recipients. Runs on Node and in workerd.
// Its HTTP API and not its package, which imports what a bundle for workerd cannot have and takes no fetch of ours.
// Source: resend.com/docs/api-reference/emails/send-email.

import { z } from 'zod';
import type { Message } from '../domain/alert-message.ts';
import type { Secret } from '../domain/secret.ts';
import type { Notifier } from '../ports/notifier.ts';
import { askService, outcomeOf, type Said, type Service } from './ask-service.ts';

export interface ResendOptions {
  apiKey: Secret;
  /** `address` or `Name <address>`, of a domain that Resend has verified. */
  from: string;
  /** The platform's. */
  fetch: typeof globalThis.fetch;
  /** Where the API is, without path; for tests. */
  baseUrl?: string;
  /** The longest that the call may take. */
  withinMs?: number;
}

type Mail = ReturnType<typeof mailOf>;

/** E-mail by `POST {baseUrl}/emails`. When Resend refuses the mail because of one recipient, all get that answer. */
export function resendNotifier(options: ResendOptions): Notifier {
  const { from, fetch, withinMs, baseUrl = 'https://api.resend.com' } = options;
  const key = options.apiKey.reveal();
  const service: Service = { name: 'Resend', credential: 'the API key', secrets: [key], fetch, withinMs };

  return {
    send: async (message, recipients) => {
      if (recipients.length === 0) return [];
      const mail = mailOf(message, from, recipients);
      const headers = {
        authorization: `Bearer ${key}`,
        'content-type': 'application/json',
        'user-agent': 'holdfast',
        'idempotency-key': await idempotencyKeyOf(message.id, mail),
      };
      const init = { method: 'POST', headers, body: JSON.stringify(mail) };
      const outcome = outcomeOf(service, await askService(service, `${baseUrl}/emails`, init), RESEND_SAYS);
      return recipients.map((recipient) => ({ recipient, ...outcome }));
    },
  };
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

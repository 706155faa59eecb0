// SMS by the HTTP APIs of Twilio and Brevo: one call per recipient, all at once. Runs on Node and in workerd.
// Sources: twilio.com/docs/messaging/api/message-resource, developers.brevo.com/reference/sendtransacsms.

import { z } from 'zod';
import { base64 } from '../domain/base64.ts';
import type { Secret } from '../domain/secret.ts';
import type { Notifier } from '../ports/notifier.ts';
import { askService, outcomeOf, type Said, type Service } from './ask-service.ts';

/** Brevo allows a name of at most 11 letters and digits. */
const BREVO_SENDER = 'Holdfast';

interface Common {
  /** The platform's. */
  fetch: typeof globalThis.fetch;
  /** Where the API is, without path; for another region, or for tests. */
  baseUrl?: string;
  /** The longest that a call may take. */
  withinMs?: number;
}

export interface TwilioOptions extends Common {
  accountSid: string;
  authToken: Secret;
  /** A number of the account, or a sender name. */
  from: string;
}

/** SMS by Twilio: `POST {baseUrl}/2010-04-01/Accounts/{SID}/Messages.json`, 201 when it is taken. */
export function twilioNotifier(options: TwilioOptions): Notifier {
  const { accountSid, from, fetch, withinMs, baseUrl = 'https://api.twilio.com' } = options;
  const token = options.authToken.reveal();
  const basic = base64(`${accountSid}:${token}`);
  const service: Service = {
    name: 'Twilio',
    credential: 'the account SID and token',
    secrets: [token, basic],
    fetch,
    withinMs,
  };
  return perRecipient(
    service,
    TWILIO_SAYS,
    `${baseUrl}/2010-04-01/Accounts/${encodeURIComponent(accountSid)}/Messages.json`,
    {
      headers: { authorization: `Basic ${basic}`, 'content-type': 'application/x-www-form-urlencoded' },
      bodyOf: (to, text) => new URLSearchParams({ To: to, From: from, Body: text }).toString(),
    },
  );
}

export interface BrevoOptions extends Common {
  apiKey: Secret;
}

/** SMS by Brevo: `POST {baseUrl}/v3/transactionalSMS/send`, 201 when it is taken; the sender is shown as Holdfast. */
export function brevoNotifier(options: BrevoOptions): Notifier {
  const { fetch, withinMs, baseUrl = 'https://api.brevo.com' } = options;
  const key = options.apiKey.reveal();
  const service: Service = { name: 'Brevo', credential: 'the API key', secrets: [key], fetch, withinMs };
  return perRecipient(service, BREVO_SAYS, `${baseUrl}/v3/transactionalSMS/send`, {
    headers: { 'api-key': key, 'content-type': 'application/json' },
    bodyOf: (to, content) =>
      JSON.stringify({
        sender: BREVO_SENDER,
        recipient: to.replace(/^\+/, ''),
        content,
        type: 'transactional',
        unicodeEnabled: false,
      }),
  });
}

interface Form {
  headers: Record<string, string>;
  bodyOf(recipient: string, text: string): string;
}

function perRecipient(service: Service, said: z.ZodType<Said>, address: string, form: Form): Notifier {
  const headers = { ...form.headers, accept: 'application/json' };
  return {
    send: ({ brief }, recipients) =>
      Promise.all(
        recipients.map(async (recipient) => {
          const init = { method: 'POST', headers, body: form.bodyOf(recipient, brief) };
          return { recipient, ...outcomeOf(service, await askService(service, address, init), said) };
        }),
      ),
  };
}

const text = z.coerce.string().optional().catch(undefined);
const WORDS = { code: text, message: text };

const reasonOf = ({ code, message }: { code?: string | undefined; message?: string | undefined }): string =>
  [code, message].filter(Boolean).join(' ');

const TWILIO_SAYS = z
  .object({ sid: z.string().optional().catch(undefined), ...WORDS })
  .transform((body): Said => ({ id: body.sid, reason: reasonOf(body) }));

const BREVO_SAYS = z
  .object({ messageId: z.union([z.number(), z.string()]).optional().catch(undefined), ...WORDS })
  .transform((body): Said => ({ id: body.messageId?.toString(), reason: reasonOf(body) }));

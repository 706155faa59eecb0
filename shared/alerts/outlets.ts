// From the settings to the channels on which alerts go out, and to what the alerts call this stack.

import { z } from 'zod';
import {
  isEmailAddress,
  isIpAddress,
  isWildcardAddress,
  readSender,
  senderInWords,
  urlHost,
} from '@holdfast/kit/addresses';
import { base64 } from '@holdfast/kit/encoding';
import type { Secret } from '@holdfast/kit/secret';
import type { Mode } from '../settings/rules.ts';
import type { Settings } from '../settings/table.ts';
import { type Answer, askService, limitOf, outcomeOf, type Said, type Service } from './ask-service.ts';
import type { Message, Place } from './message.ts';
import type { Channel, Notifier, Outlet, Outlets, SendOutcome } from './port.ts';

// E-mail by Resend: one call for all recipients, and one for each when it does not take that. Runs on Node and in workerd.
// Its HTTP API and not its package, which imports what a bundle for workerd cannot have and takes no fetch of ours.
// Source: resend.com/docs/api-reference/emails/send-email.

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

// SMS by the HTTP APIs of Twilio and Brevo: one call per recipient, all at once. Runs on Node and in workerd.
// Sources: twilio.com/docs/messaging/api/message-resource, developers.brevo.com/reference/sendtransacsms.

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
      bodyOf: (to, textOfOutlets) => new URLSearchParams({ To: to, From: from, Body: textOfOutlets }).toString(),
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
  bodyOf(recipient: string, textOfOutlets: string): string;
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

const textOfOutlets = z.coerce.string().optional().catch(undefined);
const WORDS = { code: textOfOutlets, message: textOfOutlets };

const reasonOf = ({ code, message }: { code?: string | undefined; message?: string | undefined }): string =>
  [code, message].filter(Boolean).join(' ');

const TWILIO_SAYS = z
  .object({ sid: z.string().optional().catch(undefined), ...WORDS })
  .transform((body): Said => ({ id: body.sid, reason: reasonOf(body) }));

const BREVO_SAYS = z
  .object({ messageId: z.union([z.number(), z.string()]).optional().catch(undefined), ...WORDS })
  .transform((body): Said => ({ id: body.messageId?.toString(), reason: reasonOf(body) }));

/** Mail by SMTP needs sockets, so each host brings its own. */
export type SmtpFactory = (url: Secret, from: string) => Notifier;

type SenderSettings = Pick<Settings, 'ALERT_EMAIL_FROM' | 'SMTP_URL' | 'SERVER_ADDRESS'>;

/** The channels that are set up completely; setting-rules.ts refuses those that are half set up. */
export function outletsOf(settings: Settings, smtp: SmtpFactory): Outlets {
  const [email, sms] = [emailOutlet(settings, smtp), smsOutlet(settings)];
  return { ...(email === undefined ? {} : { email }), ...(sms === undefined ? {} : { sms }) };
}

/** How many receive alerts on each channel. */
export function recipientsOf(outlets: Outlets): Partial<Record<Channel, number>> {
  return Object.fromEntries(Object.entries(outlets).map(([channel, { recipients }]) => [channel, recipients.length]));
}

function emailOutlet(settings: Settings, smtp: SmtpFactory): Outlet | undefined {
  const { ALERT_EMAIL_TO: recipients, RESEND_API_KEY: apiKey, SMTP_URL: url, RESEND_URL: baseUrl } = settings;
  if (recipients === undefined) return undefined;
  const from = senderOf(settings);
  if (apiKey !== undefined)
    return { by: 'Resend', recipients, notifier: resendNotifier({ apiKey, from, fetch, baseUrl }) };
  if (url === undefined) return undefined;
  return { by: `SMTP (${new URL(url.reveal()).host})`, recipients, notifier: smtp(url, from) };
}

function smsOutlet(settings: Settings): Outlet | undefined {
  const { ALERT_SMS_TO: recipients, SMS_PROVIDER: provider } = settings;
  if (recipients === undefined) return undefined;
  if (provider === 'brevo' && settings.BREVO_API_KEY !== undefined) {
    const options = { apiKey: settings.BREVO_API_KEY, fetch, baseUrl: settings.BREVO_URL };
    return { by: 'Brevo', recipients, notifier: brevoNotifier(options) };
  }
  const { TWILIO_ACCOUNT_SID: accountSid, TWILIO_AUTH_TOKEN: authToken, TWILIO_FROM: from } = settings;
  if (provider !== 'twilio' || accountSid === undefined || authToken === undefined || from === undefined)
    return undefined;
  const options = { accountSid, authToken, from, fetch, baseUrl: settings.TWILIO_URL };
  return { by: 'Twilio', recipients, notifier: twilioNotifier(options) };
}

/** ALERT_EMAIL_FROM; else the mail account itself if it is an address; else holdfast at this server. Always sendable. */
export function senderOf({ ALERT_EMAIL_FROM: from, SMTP_URL: url, SERVER_ADDRESS: server }: SenderSettings): string {
  const given = readSender(from ?? '');
  if (!('fault' in given)) return senderInWords(given);
  const user = url === undefined ? '' : decodeURIComponent(new URL(url.reveal()).username);
  if (isEmailAddress(user)) return user;
  const here = `holdfast@${server}`;
  const sendable = server !== undefined && !isIpAddress(server) && isEmailAddress(here);
  return senderInWords({ name: 'Holdfast', address: sendable ? here : 'holdfast@localhost' });
}

/** This stack, as alerts speak of it. `listen` is the address of --listen, on which console and portal speak TLS. */
export function placeOf(settings: Settings, listen: string | undefined, deployed: Mode = 'embedded'): Place {
  const { SERVER_ADDRESS: name = '127.0.0.1' } = settings;
  return { name, url: addressesOf(settings, listen, deployed).console };
}

/** Where console and portal are for a browser. */
export function addressesOf(settings: Settings, listen: string | undefined, deployed: Mode = 'embedded'): Addresses {
  const { SERVER_ADDRESS: address = '127.0.0.1', DEPLOY_MODE: mode, LISTEN_ADDRESS: local } = settings;
  if (mode === 'subdomain') return { console: `https://monitor.${address}`, portal: `https://${address}` };
  // The ports of management itself are not bound on the machine, and the proxy has one host for both.
  if (deployed !== 'embedded') {
    const host = `https://${urlHost(address)}`;
    return { console: `${host}/monitor`, portal: `${host}/portal` };
  }
  const open = listen ?? local;
  const host = `${listen === undefined ? 'http' : 'https'}://${urlHost(isWildcardAddress(open) ? address : open)}`;
  return { console: `${host}:${settings.API_PORT}`, portal: `${host}:${settings.PORTAL_PORT}` };
}

/** Where a browser finds the two faces, without a slash at the end. */
export interface Addresses {
  console: string;
  portal: string;
}

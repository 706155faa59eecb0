// Sets up the channels for alerts, names this stack in them, and sends test messages.

import {
  isEmailAddress,
  isIpAddress,
  isWildcardAddress,
  readSender,
  formatSender,
  urlHost,
} from '@holdfast/kit/addresses';
import { AppError } from '@holdfast/kit/app-error';
import { counted } from '@holdfast/kit/format';
import type { Log } from '@holdfast/kit/log';
import type { Secret } from '@holdfast/kit/secret';
import { maskAddresses, maskRecipient, oneLine, shortened } from '@holdfast/kit/text';
import type { Mode } from '../settings/rules.ts';
import type { Settings } from '../settings/table.ts';
import { brevoNotifier, resendNotifier, twilioNotifier } from './http-notifiers.ts';
import { type Place, testMessage } from './message.ts';
import type { Channel, Notifier, AlertTransport, AlertTransports, SendOutcome } from './port.ts';

/** SMTP needs sockets, so each host provides its own. */
export type SmtpFactory = (url: Secret, from: string) => Notifier;

type SenderSettings = Pick<Settings, 'ALERT_EMAIL_FROM' | 'SMTP_URL' | 'SERVER_ADDRESS'>;

/** The channels that are set up completely; setting-rules.ts rejects those that are half set up. */
export function transportsOf(settings: Settings, smtp: SmtpFactory): AlertTransports {
  const [email, sms] = [emailTransport(settings, smtp), smsTransport(settings)];
  return { ...(email === undefined ? {} : { email }), ...(sms === undefined ? {} : { sms }) };
}

/** The number of recipients on each channel. */
export function recipientsOf(transports: AlertTransports): Partial<Record<Channel, number>> {
  return Object.fromEntries(
    Object.entries(transports).map(([channel, { recipients }]) => [channel, recipients.length]),
  );
}

function emailTransport(settings: Settings, smtp: SmtpFactory): AlertTransport | undefined {
  const { ALERT_EMAIL_TO: recipients, RESEND_API_KEY: apiKey, SMTP_URL: url, RESEND_URL: baseUrl } = settings;
  if (recipients === undefined) return undefined;
  const from = senderOf(settings);
  if (apiKey !== undefined)
    return { by: 'Resend', recipients, notifier: resendNotifier({ apiKey, from, fetch, baseUrl }) };
  if (url === undefined) return undefined;
  return { by: `SMTP (${new URL(url.reveal()).host})`, recipients, notifier: smtp(url, from) };
}

function smsTransport(settings: Settings): AlertTransport | undefined {
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

/**
 * ALERT_EMAIL_FROM; else the mail account itself if it is an address; else holdfast at this server.
 * Always sendable.
 */
export function senderOf({ ALERT_EMAIL_FROM: from, SMTP_URL: url, SERVER_ADDRESS: server }: SenderSettings): string {
  const given = readSender(from ?? '');
  if (!('fault' in given)) return formatSender(given);
  const user = url === undefined ? '' : decodeURIComponent(new URL(url.reveal()).username);
  if (isEmailAddress(user)) return user;
  const here = `holdfast@${server}`;
  const sendable = server !== undefined && !isIpAddress(server) && isEmailAddress(here);
  return formatSender({ name: 'Holdfast', address: sendable ? here : 'holdfast@localhost' });
}

/**
 * This stack as alerts name it. `listen` is the address of --listen, on which console and portal
 * use TLS.
 */
export function placeOf(settings: Settings, listen: string | undefined, deployed: Mode = 'embedded'): Place {
  const { SERVER_ADDRESS: name = '127.0.0.1' } = settings;
  return { name, url: addressesOf(settings, listen, deployed).console };
}

/** The addresses of console and portal for a browser. */
export function addressesOf(settings: Settings, listen: string | undefined, deployed: Mode = 'embedded'): Addresses {
  const { SERVER_ADDRESS: address = '127.0.0.1', DEPLOY_MODE: mode, LISTEN_ADDRESS: local } = settings;
  if (mode === 'subdomain') return { console: `https://monitor.${address}`, portal: `https://${address}` };
  // The ports of management itself are not bound on the machine, and the proxy has one host for
  // both.
  if (deployed !== 'embedded') {
    const host = `https://${urlHost(address)}`;
    return { console: `${host}/monitor`, portal: `${host}/portal` };
  }
  const open = listen ?? local;
  const host = `${listen === undefined ? 'http' : 'https'}://${urlHost(isWildcardAddress(open) ? address : open)}`;
  return { console: `${host}:${settings.API_PORT}`, portal: `${host}:${settings.PORTAL_PORT}` };
}

/** The addresses of console and portal, without a trailing slash. */
export interface Addresses {
  console: string;
  portal: string;
}

export interface TestMessageDeps {
  notify: AlertTransports;
  place: Place;
  log: Log;
}

export interface TestOutcome {
  /** True if the service accepted it for every recipient. */
  delivered: boolean;
  /** The service, the number of recipients, and each failure; addresses are masked. */
  detail: string;
}

/** How to set up a channel. */
export const SET_UP: Record<Channel, string> = {
  email: 'Email is not set up. Set ALERT_EMAIL_TO, and SMTP_URL or RESEND_API_KEY with ALERT_EMAIL_FROM, then restart.',
  sms: 'SMS is not set up. Set ALERT_SMS_TO and SMS_PROVIDER with its credentials (TWILIO_ACCOUNT_SID, TWILIO_AUTH_TOKEN and TWILIO_FROM, or BREVO_API_KEY), then restart.',
};

const MAX_REPORTED = 300;

/**
 * Sends a test message to all recipients of a channel. The outcome masks their addresses.
 * Throws `conflict` with the remedy if the channel is not set up.
 */
export async function sendTestMessage({ notify, place, log }: TestMessageDeps, channel: Channel): Promise<TestOutcome> {
  const transport = notify[channel];
  if (transport === undefined || transport.recipients.length === 0) throw new AppError('conflict', SET_UP[channel]);
  const { recipients, notifier, by } = transport;
  const outcomes = await notifier.send(testMessage(place, channel, crypto.randomUUID()), recipients);
  const accepted = outcomes.filter((outcome) => outcome.accepted).length;
  const delivered = accepted === recipients.length;
  const fields = { channel, by, delivered, recipients: recipients.length, accepted };
  if (delivered) log.info('alert.test', fields);
  else log.warn('alert.test', fields);
  return { delivered, detail: detailOf(transport, outcomes, accepted) };
}

function detailOf({ by, recipients }: AlertTransport, outcomes: readonly SendOutcome[], accepted: number): string {
  const all = counted(recipients.length, 'recipient');
  const took = accepted === recipients.length ? all : `${accepted} of ${all}`;
  const wrong = outcomes
    .filter((outcome) => !outcome.accepted)
    .map(({ recipient, detail }) => {
      const message = shortened(oneLine(maskAddresses(detail, recipients)), MAX_REPORTED).replace(/\.$/, '');
      return ` ${maskRecipient(recipient)}: ${message}.`;
    });
  return `${by} accepted it for ${took}.${wrong.join('')}`;
}

// Sends a test message now to everybody on one channel, and says what became of it without naming anybody.

import { AppError } from '@holdfast/kit/app-error';
import { counted } from '@holdfast/kit/format';
import type { Log } from '@holdfast/kit/log';
import { maskAddresses, maskRecipient, oneLine, shortened } from '@holdfast/kit/text';
import { type Place, testMessage } from './message.ts';
import type { Channel, Outlet, Outlets, SendOutcome } from './port.ts';

export interface TestMessageDeps {
  notify: Outlets;
  place: Place;
  log: Log;
}

export interface TestOutcome {
  /** True when the service has taken it for every recipient. */
  delivered: boolean;
  /** By which service, for how many, and what went wrong for whom; addresses are masked. */
  detail: string;
}

/** What is missing of a channel that is not set up. */
export const SET_UP: Record<Channel, string> = {
  email:
    'E-mail is not set up: set ALERT_EMAIL_TO, and SMTP_URL or RESEND_API_KEY with ALERT_EMAIL_FROM; then restart.',
  sms: 'SMS is not set up: set ALERT_SMS_TO, and SMS_PROVIDER with what it needs (TWILIO_ACCOUNT_SID, TWILIO_AUTH_TOKEN and TWILIO_FROM, or BREVO_API_KEY); then restart.',
};

const MOST_SAID = 300;

/** Throws `conflict` with the remedy when the channel is not set up. */
export async function sendTestMessage({ notify, place, log }: TestMessageDeps, channel: Channel): Promise<TestOutcome> {
  const outlet = notify[channel];
  if (outlet === undefined || outlet.recipients.length === 0) throw new AppError('conflict', SET_UP[channel]);
  const { recipients, notifier, by } = outlet;
  const outcomes = await notifier.send(testMessage(place, channel, crypto.randomUUID()), recipients);
  const accepted = outcomes.filter((outcome) => outcome.accepted).length;
  const delivered = accepted === recipients.length;
  const fields = { channel, by, delivered, recipients: recipients.length, accepted };
  if (delivered) log.info('alert.test', fields);
  else log.warn('alert.test', fields);
  return { delivered, detail: detailOf(outlet, outcomes, accepted) };
}

function detailOf({ by, recipients }: Outlet, outcomes: readonly SendOutcome[], accepted: number): string {
  const all = counted(recipients.length, 'recipient');
  const took = accepted === recipients.length ? all : `${accepted} of ${all}`;
  const wrong = outcomes
    .filter((outcome) => !outcome.accepted)
    .map(({ recipient, detail }) => {
      const said = shortened(oneLine(maskAddresses(detail, recipients)), MOST_SAID).replace(/\.$/, '');
      return ` ${maskRecipient(recipient)}: ${said}.`;
    });
  return `${by} took it for ${took}.${wrong.join('')}`;
}

// The states of an alert in words.

import type { AlertProgress, Channel } from '../../../shared/alerts/port.ts';
import type { Status } from '../../../shared/settings/status.ts';

export const ALERT_WORDS: Record<AlertProgress, StateWords> = {
  sent: { status: 'ok', word: 'Sent', means: 'Everybody who is to be told has it.' },
  pending: {
    status: 'note',
    word: 'On its way',
    means: 'Somebody does not have it yet; it is tried again, with growing pauses.',
  },
  suppressed: {
    status: 'note',
    word: 'Not sent',
    means: 'Kept back on purpose: the same was told shortly before, or nobody is set up to be told.',
  },
  failed: {
    status: 'critical',
    word: 'Failed',
    means: 'Given up: nobody has it, or not everybody. Send a test below to see what is wrong.',
  },
};

export const CHANNEL_NAMES: Record<Channel, string> = { email: 'E-mail', sms: 'SMS' };

// The states of an alert in words.
export interface StateWords {
  status: Status;
  word: string;
  means: string;
}

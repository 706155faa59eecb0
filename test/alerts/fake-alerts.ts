// Alerts in memory, and channels that keep what they are given.

import type { Alert, Alerts, Message, AlertTransport, SendOutcome } from '../../shared/alerts/port.ts';
import { AlertStore } from '../../shared/alerts/store.ts';

/** The real engine without a database, with these alerts in it already. */
export function alertsHolding(kept: Alert[], nowMs?: () => number): Alerts {
  return new AlertStore({
    table: undefined,
    reads: undefined,
    journal: {
      load: () => ({ runners: ['before'], states: {}, held: kept.map((alert) => ({ alert, stored: false })) }),
      save: async () => undefined,
      trouble: () => undefined,
    },
    policy: { cooldownSeconds: 300, anybody: true },
    runner: 'me',
    clock: { wallMs: nowMs ?? Date.now, steadyMs: nowMs ?? (() => performance.now()) },
    log: { info: () => undefined, warn: () => undefined, error: () => undefined },
  });
}

/** A channel; `answer` decides what its service says for each recipient. */
export function fakeTransport(
  recipients: string[],
  answer: (recipient: string) => Omit<SendOutcome, 'recipient'> = () => ({ accepted: true, detail: '250 OK' }),
): AlertTransport & { sent: Message[] } {
  const sent: Message[] = [];
  return {
    by: 'SMTP (mail.example.org)',
    recipients,
    sent,
    notifier: {
      send: async (message, to) => {
        sent.push(message);
        return to.map((recipient) => ({ recipient, ...answer(recipient) }));
      },
    },
  };
}

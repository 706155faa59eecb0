// Sends pending alerts: each is taken under a lease and sent to every recipient who does not have
// it yet. It counts as sent once every recipient has it. Failures are retried with growing pauses,
// then given up visibly. Alerts of one module are sent in the order in which they were raised.

import { maskAddresses } from '@holdfast/kit/text';
import { alertMessage } from '../shared/alerts/message.ts';
import {
  type Alert,
  type AlertDelivery,
  type Attempt,
  type Channel,
  CHANNELS,
  type Message,
} from '../shared/alerts/port.ts';
import { AT_FIRST_SECONDS, retryPauseSeconds } from '../shared/alerts/rules.ts';
import { healthModuleOf } from '../shared/health/modules/index.ts';
import type { Deps } from '../shared/http/deps.ts';

const CONCURRENCY = 10;
/** The next alert of a module waits this long for the one before it, but not for a slow service. */
const IN_ORDER_MS = 5_000;

interface Tried extends AlertDelivery {
  retryAfterSeconds?: number;
  permanent?: true;
}

export async function run(deps: Deps, now: Date): Promise<{ attempts: number }> {
  if (Object.keys(deps.notify).length === 0) return { attempts: 0 };
  const due = await deps.alerts.takeDue(CONCURRENCY);
  const inOrder = due.toSorted((a, b) => Date.parse(a.raised_at) - Date.parse(b.raised_at));
  const modules = Map.groupBy(inOrder, ({ module }) => module);
  await Promise.all([...modules.values()].map((alerts) => attemptEach(deps, alerts, now)));
  return { attempts: due.length };
}

async function attemptEach(deps: Deps, alerts: readonly Alert[], now: Date): Promise<void> {
  const attempts: Promise<void>[] = [];
  for (const alert of alerts) {
    const attempt = attemptOne(deps, alert, now);
    attempts.push(attempt);
    if (alert !== alerts.at(-1)) await Promise.race([attempt, pause(IN_ORDER_MS)]);
  }
  await Promise.all(attempts);
}

function pause(ms: number): Promise<void> {
  return new Promise((over) => {
    setTimeout(over, ms);
  });
}

async function attemptOne(deps: Deps, alert: Alert, now: Date): Promise<void> {
  const remedy = [...alert.remedies, ...(healthModuleOf(alert.module)?.remedy ?? [])];
  const message = alertMessage({ alert, place: deps.place, remedy, now });
  const tried = (await Promise.all(CHANNELS.map((channel) => sendBy(deps, channel, alert, message)))).flat();
  const attempt = attemptOf(alert, tried, now);
  await deps.alerts.settle(alert, attempt);
  report(deps, alert, attempt);
}

/** Sends to recipients of this channel who do not have it yet. */
async function sendBy(deps: Deps, channel: Channel, alert: Alert, message: Message): Promise<Tried[]> {
  const transport = deps.notify[channel];
  const waiting = (transport?.recipients ?? []).filter((recipient) => !hasIt(alert, channel, recipient));
  if (transport === undefined || waiting.length === 0) return [];
  const at = deps.monitored.now().toISOString();
  const outcomes = await transport.notifier.send(message, waiting);
  return outcomes.map((outcome) => ({ ...outcome, channel, at, detail: maskAddresses(outcome.detail, waiting) }));
}

function hasIt({ deliveries }: Alert, channel: Channel, recipient: string): boolean {
  return deliveries.some((each) => each.accepted && each.channel === channel && each.recipient === recipient);
}

function attemptOf(alert: Alert, tried: readonly Tried[], now: Date): Attempt {
  const deliveries = tried.map(({ channel, recipient, accepted, detail, at }) => ({
    channel,
    recipient,
    accepted,
    detail,
    at,
  }));
  const refused = tried.filter(({ accepted }) => !accepted);
  if (refused.length === 0) return { deliveries, state: 'sent', reason: null, pauseSeconds: null };
  const reason = [...new Set(refused.map(({ detail }) => detail))].join('; ');
  const ageSeconds = (now.getTime() - Date.parse(alert.raised_at)) / 1000;
  const permanent = refused.every((each) => each.permanent === true);
  const isTaken = [...alert.deliveries, ...deliveries].some(({ accepted }) => accepted);
  if (permanent && isTaken && ageSeconds >= AT_FIRST_SECONDS)
    return { deliveries, state: 'failed', reason: `not every recipient has it: ${reason}`, pauseSeconds: null };
  const requestedSeconds = Math.max(...refused.map(({ retryAfterSeconds }) => retryAfterSeconds ?? 0));
  const pauseSeconds = retryPauseSeconds(alert.attempts + 1, ageSeconds, { requestedSeconds, permanent });
  if (pauseSeconds === undefined) return { deliveries, state: 'failed', reason, pauseSeconds: null };
  return { deliveries, state: 'pending', reason, pauseSeconds };
}

function report({ log }: Deps, alert: Alert, { state, reason, pauseSeconds, deliveries }: Attempt): void {
  const { id, module, level } = alert;
  const accepted = deliveries.filter((each) => each.accepted).length;
  const fields = { alert: id, module, level, attempt: alert.attempts + 1, accepted };
  if (state === 'sent') log.info('alert.sent', fields);
  else if (state === 'pending') log.warn('alert.not_sent', { ...fields, reason, retry_in_seconds: pauseSeconds });
  else log.error('alert.given_up', { ...fields, reason });
}

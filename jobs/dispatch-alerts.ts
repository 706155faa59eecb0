// Sends the alerts that wait: each is taken under a lease, sent to everybody who does not have it yet, and counts as sent
// only when everybody has it. What fails is tried again after a pause that grows, and given up visibly.

import { alertMessage, type Message } from '../shared/domain/alert-message.ts';
import { maskAddresses } from '../shared/domain/masking.ts';
import { retryPauseSeconds } from '../shared/domain/retry-pause.ts';
import { healthModuleOf } from '../shared/health/index.ts';
import type { Deps } from '../shared/http/deps.ts';
import type { Alert, AlertDelivery, Attempt } from '../shared/ports/alerts.ts';
import { type Channel, CHANNELS } from '../shared/ports/notifier.ts';

const AT_ONCE = 10;

interface Tried extends AlertDelivery {
  retryAfterSeconds?: number;
}

export async function run(deps: Deps, now: Date): Promise<{ attempts: number }> {
  if (Object.keys(deps.notify).length === 0) return { attempts: 0 };
  const due = await deps.alerts.takeDue(AT_ONCE);
  await Promise.all(due.map((alert) => attemptOne(deps, alert, now)));
  return { attempts: due.length };
}

async function attemptOne(deps: Deps, alert: Alert, now: Date): Promise<void> {
  const remedy = healthModuleOf(alert.module)?.remedy ?? [];
  const message = alertMessage({ alert, place: deps.place, remedy, now });
  const tried = (await Promise.all(CHANNELS.map((channel) => sendBy(deps, channel, alert, message)))).flat();
  const attempt = attemptOf(alert, tried, now);
  await deps.alerts.settle(alert, attempt);
  report(deps, alert, attempt);
}

/** To those on this channel who do not have it yet. */
async function sendBy(deps: Deps, channel: Channel, alert: Alert, message: Message): Promise<Tried[]> {
  const outlet = deps.notify[channel];
  const waiting = (outlet?.recipients ?? []).filter((recipient) => !hasIt(alert, channel, recipient));
  if (outlet === undefined || waiting.length === 0) return [];
  const at = deps.monitored.now().toISOString();
  const outcomes = await outlet.notifier.send(message, waiting);
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
  const asked = Math.max(...refused.map(({ retryAfterSeconds }) => retryAfterSeconds ?? 0));
  const pauseSeconds = retryPauseSeconds(alert.attempts + 1, ageSeconds, asked);
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

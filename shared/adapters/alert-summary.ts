// The figures of alerts that are kept in memory alone; the database counts its own.

import type { Alert, AlertSummary } from '../ports/alerts.ts';
import { reachedSomebody } from './alert-documents.ts';

export function alertSummary(alerts: readonly Alert[], nowMs: number): AlertSummary {
  const inOrder = alerts.toSorted((a, b) => a.raised_at.localeCompare(b.raised_at));
  const pending = inOrder.filter(({ state }) => state === 'pending');
  const unreached = pending.filter((alert) => !reachedSomebody(alert));
  const failed = inOrder.filter(({ state }) => state === 'failed');
  const sent = inOrder.flatMap(({ sent_at: at }) => at ?? []).toSorted();
  const oldest = unreached[0];
  return {
    pending: pending.length,
    oldest_pending_seconds:
      oldest === undefined ? 0 : Math.max(0, Math.round((nowMs - Date.parse(oldest.raised_at)) / 1000)),
    partly_sent: pending.length - unreached.length,
    pending_reason: [...unreached, ...pending].find(({ reason }) => reason !== null)?.reason ?? null,
    failed: failed.length,
    failed_unreached: failed.filter((alert) => !reachedSomebody(alert)).length,
    failed_reason: failed.at(-1)?.reason ?? null,
    last_sent_at: sent.at(-1) ?? null,
  };
}

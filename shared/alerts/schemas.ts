// How alerts are stored, in the database and in the journal: checked when they are read.

import { z } from 'zod';
import { STATUSES } from '../settings/status.ts';
import type { Snapshot } from './memory.ts';
import { type Alert, ALERT_STATES, CHANNELS } from './port.ts';
import { type AlertState, UNREPORTED } from './rules.ts';

const level = z.enum(STATUSES).exclude(['ok']);

const stateSchema: z.ZodType<AlertState> = z.object({
  told: z.enum(STATUSES),
  raised: z.object({ id: z.string(), level, atMs: z.number(), sent: z.boolean() }).nullable(),
  heldBack: level.nullable(),
  sinceMs: z.number().nullable(),
  history: z.object({ failuresInRow: z.number(), pollsInRow: z.number() }).nullable(),
});

const deliverySchema = z.object({
  channel: z.enum(CHANNELS),
  recipient: z.string(),
  accepted: z.boolean(),
  detail: z.string(),
  at: z.string(),
});

export const alertSchema: z.ZodType<Alert> = z.object({
  id: z.string(),
  module: z.string(),
  level,
  message: z.string(),
  details: z.array(z.string()),
  // A journal of an earlier release has none.
  remedies: z.array(z.string()).default([]),
  since: z.iso.datetime(),
  raised_at: z.iso.datetime(),
  state: z.enum(ALERT_STATES),
  reason: z.string().nullable(),
  sent_at: z.iso.datetime().nullable(),
  attempts: z.int(),
  next_attempt_at: z.iso.datetime().nullable(),
  deliveries: z.array(deliverySchema),
});

/** The whole journal. */
export const snapshotSchema: z.ZodType<Snapshot> = z.object({
  runners: z.array(z.string()),
  states: z.record(z.string(), z.object({ state: stateSchema, dirty: z.boolean(), lineage: z.array(z.string()) })),
  held: z.array(z.object({ alert: alertSchema, stored: z.boolean() })),
});

/** An unreadable state counts as none, so the module is judged from scratch. */
export function stateOf(stored: unknown): AlertState {
  const read = stateSchema.safeParse(stored);
  return read.success ? read.data : UNREPORTED;
}

type Times = 'since' | 'raised_at' | 'sent_at' | 'next_attempt_at';

/** A row of the table. */
export type AlertRow = Omit<Alert, Times> & { since: Date; raised_at: Date } & Record<
    'sent_at' | 'next_attempt_at',
    Date | null
  >;

/**
 * The schema drops columns that only the table has. Rows that it rejects are returned separately.
 */
export function alertsOf(rows: readonly AlertRow[]): { alerts: Alert[]; unreadable: AlertRow[] } {
  const alerts: Alert[] = [];
  const unreadable: AlertRow[] = [];
  for (const row of rows) {
    const read = alertSchema.safeParse({
      ...row,
      since: isoOf(row.since),
      raised_at: isoOf(row.raised_at),
      sent_at: row.sent_at && isoOf(row.sent_at),
      next_attempt_at: row.next_attempt_at && isoOf(row.next_attempt_at),
    });
    if (read.success) alerts.push(read.data);
    else unreadable.push(row);
  }
  return { alerts, unreadable };
}

/** Undefined for an invalid time, such as infinity. */
function isoOf(time: Date): string | undefined {
  return Number.isNaN(time.getTime()) ? undefined : time.toISOString();
}

// How long a certificate still lasts, and how that is judged wherever it was seen.

import { counted } from '../domain/amounts.ts';
import { type Finding, limitsOf } from '../domain/evaluate.ts';
import type { ModuleThresholds } from '../domain/thresholds.ts';

const DAY_MS = 86_400_000;

/** Whole days until an ISO 8601 time, rounded down. */
export function daysUntil(end: string, now: Date): number {
  return Math.floor((Date.parse(end) - now.getTime()) / DAY_MS);
}

/** Days left against the limits of the module; null counts as no figure, which is never ok. */
export function certificateEnds(subject: string, daysLeft: number | null, thresholds: ModuleThresholds): Finding {
  return {
    kind: 'figure',
    subject,
    value: daysLeft ?? Number.NaN,
    limits: limitsOf(thresholds),
    lowerIsWorse: true,
    says: `the certificate ends in ${counted(daysLeft ?? 0, 'day')}`,
    inWords: (limit) => counted(limit, 'day'),
  };
}

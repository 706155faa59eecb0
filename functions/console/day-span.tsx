// From one day to another, as a form asks for it: days of the stack's zone, the last one with it. Lists take instants.

import { beginOfDay, endOfDay } from '@holdfast/kit/time';
import type { PageContext } from '../pages/page-routes.ts';
import { Field } from '../pages/parts/field.tsx';

export interface DaySpan {
  /** As they were sent. */
  from: string;
  to: string;
  /** ISO 8601, for lists: `since` inclusive, `until` exclusive. */
  since: string | undefined;
  until: string | undefined;
}

/** Of the address; what is no day filters nothing. */
export function daySpanOf({ req }: PageContext, timeZone: string): DaySpan {
  const from = req.query('since') ?? '';
  const to = req.query('until') ?? '';
  return { from, to, since: beginOfDay(from, timeZone), until: endOfDay(to, timeZone) };
}

/** A day was named that there is not. */
export function isFaulty({ from, to, since, until }: DaySpan): boolean {
  return (from !== '' && since === undefined) || (to !== '' && until === undefined);
}

/** For the heading of the filters. */
export function spanInWords({ from, to, since, until }: DaySpan): string[] {
  return [...(since === undefined ? [] : [`from ${from}`]), ...(until === undefined ? [] : [`to ${to}`])];
}

export function DaySpanFields({ from, to, since, until }: DaySpan) {
  const fault = (text: string, instant: string | undefined): string | undefined =>
    text === '' || instant !== undefined ? undefined : 'is no day, and filters nothing; write it as 2026-01-31';
  return (
    <>
      <Field name="since" label="From (day)" type="date" value={from} error={fault(from, since)} />
      <Field name="until" label="To (day, with it)" type="date" value={to} error={fault(to, until)} />
    </>
  );
}

/** The address of the same list as CSV. */
export function csvAddress(path: string, filter: Readonly<Record<string, string | undefined>>): string {
  const given = Object.entries(filter).filter((pair): pair is [string, string] => pair[1] !== undefined);
  return `${path}?${new URLSearchParams([...given, ['format', 'csv']]).toString()}`;
}

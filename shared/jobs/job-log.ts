// The log of a job: lines for people, each with its time.

import type { OpsJob } from './port.ts';

/** A line of the log of a job. */
export function said(now: Date, text: string): string {
  return `${now.toISOString()} ${text}`;
}

/** What the last line says, without its time. */
export function lastSaid({ log }: OpsJob): string {
  return textOf(log.at(-1) ?? '');
}

export function textOf(line: string): string {
  return line.replace(/^\S+ /, '');
}

export function timeOf(line: string): Date {
  return new Date(line.slice(0, line.indexOf(' ')));
}

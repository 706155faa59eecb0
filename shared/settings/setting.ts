// What one variable is, and the sections that they stand in.

import type { Kind } from './kinds.ts';

export const SECTIONS = {
  retention: 'Retention (nothing is ever deleted while these are unset)',
  database: 'Database tuning (needs a restart of the database)',
  deployment: 'Deployment',
  secrets: 'Passwords (generated once and kept when unset)',
  people: 'People and sign-in',
  alerts: 'Alerts',
  places: 'Where each part stands (set by the stack itself; set one to use a part that stands elsewhere)',
} as const;

export type Section = keyof typeof SECTIONS;

/** One variable. `initial` is the text used when nothing sets it; without it the value may be undefined. */
export interface Setting<T = unknown> {
  kind: Kind<T>;
  section: Section;
  /** What it does, in one line. */
  about: string;
  /** A good value, for messages and the template. */
  example: string;
  initial: string | undefined;
}

interface Description {
  section: Section;
  about: string;
  example: string;
}

/** A variable that may be unset. */
export function optional<T>(kind: Kind<T>, description: Description): Setting<T | undefined> {
  return { kind, ...description, initial: undefined };
}

/** A variable whose default doubles as its example. */
export function withDefault<T>(kind: Kind<T>, initial: string, description: Omit<Description, 'example'>): Setting<T> {
  return { kind, ...description, example: initial, initial };
}

/**
 * What has to be put right before a start: every problem is listed at once, with its remedy.
 * One thing to put right before the start: which variable, what it holds (secrets as ***), what to do.
 */
export interface Problem {
  name: string;
  value: string | undefined;
  message: string;
  remedy: string;
}

/** The two lines that a person reads for one problem. */
export function describeProblem(problem: Problem): string {
  const shown = problem.value === undefined ? problem.name : `${problem.name}=${printable(problem.value)}`;
  return `${shown}: ${problem.message}\n    Remedy: ${problem.remedy}`;
}

function printable(value: string): string {
  const oneLine = value.replaceAll(/\p{Cc}/gu, '?');
  return oneLine.length > 120 ? `${oneLine.slice(0, 120)}...` : oneLine;
}

/** The files that the settings came from, compared with what this process has read at its start. */
export interface ConfigurationFiles {
  /** Names of the settings and thresholds whose value would be another one after a restart. Values are never told. */
  changedSinceStart(): Promise<string[]>;
}

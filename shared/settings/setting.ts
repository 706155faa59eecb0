// Defines the shape of one setting and the sections that group them.

import type { Kind } from './kinds.ts';

export const SECTIONS = {
  retention: 'Retention (nothing is deleted while these are unset)',
  database: 'Database tuning (needs a restart of the database)',
  stream: 'Stream of events (light core)',
  deployment: 'Deployment',
  secrets: 'Passwords (generated once and kept when unset)',
  people: 'People and sign-in',
  alerts: 'Alerts',
  backup: 'Backups (none are made while BACKUP_TARGET is unset)',
  places: 'Service addresses (set automatically; override one to use an external service)',
} as const;

export type Section = keyof typeof SECTIONS;

/**
 * One variable. `initial` is the text used when it is unset; without it the value may be undefined.
 */
export interface Setting<T = unknown> {
  kind: Kind<T>;
  section: Section;
  /** Its effect, in one line. */
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
 * A problem to correct before the start. All are listed at once: the variable, its value (secrets
 * as ***), and the remedy.
 */
export interface Problem {
  name: string;
  value: string | undefined;
  message: string;
  remedy: string;
}

/** The two lines that display one problem. */
export function describeProblem(problem: Problem): string {
  const shown = problem.value === undefined ? problem.name : `${problem.name}=${printable(problem.value)}`;
  return `${shown}: ${problem.message}\n    Remedy: ${problem.remedy}`;
}

function printable(value: string): string {
  const oneLine = value.replaceAll(/\p{Cc}/gu, '?');
  return oneLine.length > 120 ? `${oneLine.slice(0, 120)}...` : oneLine;
}

/**
 * Compares the files that the settings came from with the values this process read at its start.
 */
export interface ConfigurationFiles {
  /**
   * Names of the settings and thresholds that a restart would change. Values are never included.
   */
  changedSinceStart(): Promise<string[]>;
}

// What the first process of a container has to do that others are given: the kernel ends it by no signal that it does not
// handle, and nobody but the log is told why it failed.

import { writeSync } from 'node:fs';
import type { StackError } from './app-error.ts';

const SIGNALS = ['SIGTERM', 'SIGINT'] as const;

/** Until the program of `role` handles its signals itself, they end it here; what it does not catch ends it with one line. */
export function behaveAsFirst(role: string): void {
  for (const signal of SIGNALS)
    process.on(signal, () => {
      if (process.listenerCount(signal) === 1) process.exit(0);
    });
  process.on('uncaughtException', (error) => {
    writeLine(failureLine(role, error, new Date()));
    process.exit(1);
  });
}

/** One JSON line, as the programs write them. */
export function failureLine(role: string, error: unknown, now: Date): string {
  const message = error instanceof Error ? (error.stack ?? error.message) : String(error);
  const said = hasRemedy(error) ? { error: error.message, remedy: error.remedy } : { error: message };
  return `${JSON.stringify({ time: now.toISOString(), level: 'error', role, event: `${role}.failed`, ...said })}\n`;
}

/** By its name: each program is bundled with a class of its own. */
function hasRemedy(error: unknown): error is StackError {
  return error instanceof Error && error.name === 'StackError' && 'remedy' in error;
}

function writeLine(text: string): void {
  try {
    writeSync(1, text);
  } catch {
    // A closed pipe: there is nobody to tell.
  }
}

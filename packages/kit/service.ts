// What every long-running program of ours does alike: it tells its supervisor that it listens, ends
// in order at a signal, and says in its log why it failed.

import { writeSync } from 'node:fs';
import { messageOf, StackError } from './app-error.ts';
import type { JsonLog } from './log.ts';

/** Tells the supervisor that the process listens. */
export const LISTENING = { kind: 'listening' } as const;

type StopSignal = (typeof STOP_SIGNALS)[number];

const SIGNALS = ['SIGTERM', 'SIGINT'] as const;
/** `disconnect`: the supervisor is gone. */
const STOP_SIGNALS = [...SIGNALS, 'disconnect'] as const;

/** Without a supervisor there is nobody to tell. */
export function tellSupervisor(message: { kind: string }): void {
  if (process.connected) process.send?.(message, undefined, undefined, () => undefined);
}

/**
 * At the first signal, or when the supervisor is gone: lets `close` end what runs, then ends the
 * process.
 */
export function stopInOrder(log: JsonLog, role: string, close: (signal: StopSignal) => Promise<unknown>): void {
  let stopping = false;
  for (const signal of STOP_SIGNALS)
    process.once(signal, () => {
      if (stopping) return;
      stopping = true;
      log.info(`${role}.stopping`, { signal });
      void close(signal).then(() => leave(log, 0));
    });
  // A supervisor that was killed before this is gone as well.
  if (process.send !== undefined && !process.connected) process.emit('disconnect');
}

/** Starts a program that stopInOrder ends; a failure is its last line. */
export function runService(log: JsonLog, role: string, start: () => Promise<void>): void {
  start().catch((error: unknown) => {
    const remedy = error instanceof StackError ? ` Remedy: ${error.remedy}.` : '';
    log.error(`${role}.failed`, { error: `${messageOf(error)}${remedy}` });
    leave(log, 1);
  });
}

/** Ends the process once its log is written. */
export function leave(log: JsonLog, code: number): never {
  log.flush();
  process.exit(code);
}

/**
 * For the first process of a container, which the kernel ends by no signal that it does not handle:
 * until the program of `role` handles its signals itself, they end it here; what it does not catch
 * ends it with one line.
 */
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
  const reported = hasRemedy(error) ? { error: error.message, remedy: error.remedy } : { error: message };
  return `${JSON.stringify({ time: now.toISOString(), level: 'error', role, event: `${role}.failed`, ...reported })}\n`;
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

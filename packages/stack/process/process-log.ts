// Opens and rotates the log of a process, and finds the reason for its end: the last error since
// its start.

import {
  closeSync,
  copyFileSync,
  fstatSync,
  openSync,
  readdirSync,
  readSync,
  renameSync,
  statSync,
  truncateSync,
} from 'node:fs';
import { join } from 'node:path';

const MAX_READ_BYTES = 8192;
/** Enough for a reason with two long paths and its remedy. */
const MAX_ERROR_LENGTH = 1000;

export interface ProcessLog {
  /** Opens the log for a process that `use` starts. Closes our own copy of the descriptor. */
  open<T>(use: (descriptor: number) => T): T;
  /** The text written since the last `open`; undefined if the log can't be read. */
  sinceOpened(): string | undefined;
}

/** The log of one process in the file `path`. */
export function processLog(path: string): ProcessLog {
  let begin = 0;

  function open<T>(use: (descriptor: number) => T): T {
    begin = sizeOf(path);
    const descriptor = openSync(path, 'a', 0o600);
    try {
      return use(descriptor);
    } finally {
      closeSync(descriptor);
    }
  }

  function sinceOpened(): string | undefined {
    try {
      const file = openSync(path, 'r');
      try {
        return readAfter(file, begin);
      } finally {
        closeSync(file);
      }
    } catch {
      return undefined;
    }
  }

  return { open, sinceOpened };
}

function readAfter(file: number, begin: number): string {
  const { size } = fstatSync(file);
  const from = Math.max(size < begin ? 0 : begin, size - MAX_READ_BYTES);
  const buffer = Buffer.alloc(Math.max(size - from, 0));
  const length = readSync(file, buffer, 0, buffer.length, from);
  return buffer.subarray(0, length).toString('utf8');
}

function sizeOf(path: string): number {
  try {
    return statSync(path).size;
  } catch {
    return 0;
  }
}

/** The last error in a PostgreSQL log. */
export function databaseComplaint(text: string | undefined): string | undefined {
  const bind = text?.match(/could not bind .*/g)?.at(-1);
  return bind ?? text?.match(/(?:FATAL|PANIC): .*|could not .*|invalid value.*/g)?.at(-1);
}

/** The last error in a log of ours: its text, or the stack trace of a crash. */
export function errorInLog(text: string | undefined): string | undefined {
  const last = text?.trim().split('\n').at(-1) ?? '';
  if (!last.startsWith('{')) return last === '' ? undefined : last.slice(0, MAX_ERROR_LENGTH);
  try {
    const line = JSON.parse(last) as { level?: unknown; error?: unknown };
    return line.level === 'error' ? String(line.error).slice(0, MAX_ERROR_LENGTH) : undefined;
  } catch {
    return undefined;
  }
}

const LIMIT_BYTES = 16 * 1024 ** 2;
const KEPT = 3;

/**
 * Rotates every *.log in `directory` over the limit; NAME.log.1 is the newest old one. Copies and
 * truncates the log, because its writers keep it open and append.
 */
export function rotateLogs(directory: string, limitBytes = LIMIT_BYTES, kept = KEPT): string[] {
  const names = readdirSync(directory).filter((name) => name.endsWith('.log'));
  const large = names.filter((name) => statSync(join(directory, name)).size > limitBytes);
  for (const name of large) rotate(join(directory, name), kept);
  return large;
}

function rotate(path: string, kept: number): void {
  for (let age = kept - 1; age >= 1; age--) {
    try {
      renameSync(`${path}.${age}`, `${path}.${age + 1}`);
    } catch {
      // No log of that age yet.
    }
  }
  copyFileSync(path, `${path}.1`);
  truncateSync(path, 0);
}

const ROTATE_EVERY_MS = 60_000;

/** Returns its end. */
export function rotateRegularly(directory: string): () => Promise<void> {
  const timer = setInterval(() => {
    try {
      rotateLogs(directory);
    } catch {
      // Full disk: the logs stay as they are. Retries in a minute.
    }
  }, ROTATE_EVERY_MS);
  timer.unref();
  return async () => clearInterval(timer);
}

// Events as JSON lines on a file descriptor, collected for a moment and written together.

import { writeSync } from 'node:fs';
import type { Fields, Log } from '../ports/log.ts';

const MAX_WAIT_MS = 50;
const MAX_BUFFERED = 64 * 1024;

export interface JsonLog extends Log {
  /** Writes what is still collected; called before the process ends. */
  flush(): void;
}

export interface JsonLogOptions {
  /** Name of the process, in every line. */
  role: string;
  now?: () => Date;
  /** Where the text goes; default: standard output. */
  write?: (text: string) => void;
}

/** A log whose lines carry `time, level, role, event` and the fields of the event. */
export function jsonLog({ role, now = () => new Date(), write = writeStdout }: JsonLogOptions): JsonLog {
  let buffered = '';
  let timer: NodeJS.Timeout | undefined;

  function flush(): void {
    clearTimeout(timer);
    timer = undefined;
    if (buffered === '') return;
    const text = buffered;
    buffered = '';
    write(text);
  }

  function append(level: string, event: string, fields: Fields = {}): void {
    buffered += `${JSON.stringify({ time: now().toISOString(), level, role, event, ...fields })}\n`;
    if (buffered.length >= MAX_BUFFERED) flush();
    else timer ??= setTimeout(flush, MAX_WAIT_MS).unref();
  }

  return {
    info: (event, fields) => append('info', event, fields),
    warn: (event, fields) => append('warn', event, fields),
    error: (event, fields) => append('error', event, fields),
    flush,
  };
}

function writeStdout(text: string): void {
  try {
    writeSync(1, text);
  } catch {
    // A full disk or a closed pipe must not stop the service; the line is lost.
  }
}

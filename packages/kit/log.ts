// Where events go: one JSON line each, with a dotted event name (`http.request`, `process.died`).

import { writeSync } from 'node:fs';
import { MINUTE_MS } from './time.ts';

export type Fields = Readonly<Record<string, unknown>>;

export interface Log {
  info(event: string, fields?: Fields): void;
  warn(event: string, fields?: Fields): void;
  error(event: string, fields?: Fields): void;
}

const MAX_WAIT_MS = 50;
const MAX_BUFFERED = 64 * 1024;

/**
 * Events as JSON lines on a file descriptor, collected for a moment and written together. One line
 * per request runs through here, so that time and head are made once and the bytes are kept outside
 * the heap.
 */
export interface JsonLog extends Log {
  /** Writes what is still collected; called before the process ends. */
  flush(): void;
}

export interface JsonLogOptions {
  /** Name of the process, in every line. */
  role: string;
  now?: () => Date;
  /** Where the text goes; default: standard output. The bytes are valid during the call only. */
  write?: (bytes: Uint8Array) => void;
}

/** A log whose lines carry `time, level, role, event` and the fields of the event. */
export function jsonLog({ role, now = () => new Date(), write = writeStdout }: JsonLogOptions): JsonLog {
  const buffer = Buffer.allocUnsafeSlow(MAX_BUFFERED);
  let used = 0;
  let timeMs = Number.NaN;
  let time = '';
  let timer: NodeJS.Timeout | undefined;

  function flush(): void {
    clearTimeout(timer);
    timer = undefined;
    if (used === 0) return;
    const length = used;
    used = 0;
    write(buffer.subarray(0, length));
  }

  function append(head: string, fields: Fields): void {
    const rest = JSON.stringify(fields);
    const line = `{"time":"${timeNow()}",${head}${rest === '{}' ? '' : `,${rest.slice(1, -1)}`}}\n`;
    if (line.length * 3 > MAX_BUFFERED - used) flush();
    if (line.length * 3 > MAX_BUFFERED) write(Buffer.from(line));
    else used += buffer.write(line, used);
    timer ??= setTimeout(flush, MAX_WAIT_MS).unref();
  }

  function timeNow(): string {
    const date = now();
    if (date.getTime() !== timeMs) {
      timeMs = date.getTime();
      time = date.toISOString();
    }
    return time;
  }

  function at(level: string): Log['info'] {
    const heads = new Map<string, string>();
    return function line(event, fields = {}) {
      let head = heads.get(event);
      if (head === undefined) {
        head = JSON.stringify({ level, role, event }).slice(1, -1);
        heads.set(event, head);
      }
      append(head, fields);
    };
  }

  return { info: at('info'), warn: at('warn'), error: at('error'), flush };
}

function writeStdout(bytes: Uint8Array): void {
  try {
    writeSync(1, bytes);
  } catch {
    // A full disk or a closed pipe must not stop the service; the line is lost.
  }
}

const LINES_PER_MINUTE = 20;

/**
 * So many lines a minute and counts of the rest: no client fills the log. `steadyMs` never goes
 * back.
 */
export class MinuteLimit<Kind extends string> {
  readonly #steadyMs: () => number;
  readonly #most: number;
  #counts: Partial<Record<Kind, number>> = {};
  #lines = 0;
  #sinceMs: number;

  constructor(steadyMs: () => number, linesPerMinute = LINES_PER_MINUTE) {
    this.#steadyMs = steadyMs;
    this.#most = linesPerMinute;
    this.#sinceMs = steadyMs();
  }

  /** How many of this kind there were in this minute, with this one. */
  count(kind: Kind): number {
    return (this.#counts[kind] = (this.#counts[kind] ?? 0) + 1);
  }

  /** True when this minute has room for one more line, which is taken. */
  takeLine(): boolean {
    if (this.#lines >= this.#most) return false;
    this.#lines += 1;
    return true;
  }

  /**
   * When the minute is over: what was counted in it, and the next one begins. Undefined until then.
   */
  nextMinute(): Partial<Record<Kind, number>> | undefined {
    if (this.#steadyMs() - this.#sinceMs < MINUTE_MS) return undefined;
    const counts = this.#counts;
    this.#sinceMs = this.#steadyMs();
    this.#lines = 0;
    this.#counts = {};
    return counts;
  }
}

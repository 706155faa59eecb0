// Waits for what a release needs to start, watches its start phases, and delays the next start
// after a failure. Without this, a start that lost its database, or a program with a failed Spring
// context, would hang forever.

import { closeSync, fstatSync, mkdirSync, openSync, readFileSync, readSync, rmSync, writeSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { messageOf } from '@holdfast/kit/app-error';
import { writeFileAtomically } from '@holdfast/kit/files';
import type { Log } from '@holdfast/kit/log';

/** In the root of the volume, to outlive the container. */
const FAILED_STARTS = '.holdfast-failed-starts';
const FIRST_PAUSE_MS = 5_000;
/** A start itself takes about as long. */
const MAX_PAUSE_MS = 60_000;
const PHASES: readonly CorePhase[] = ['config', 'messaging', 'streaming', 'api'];
const LATECOMERS_MS = 180_000;
const CONTEXT_FAILED = /\bApplication run failed\b/;

export interface StartFault {
  program: string;
  reason: string;
}

/**
 * Watches a start from the moment the programs are started. `steadyMs`: a monotonic clock in
 * milliseconds.
 */
export class StartWatch {
  readonly #phaseWithinMs: number;
  readonly #steadyMs: () => number;
  readonly #reached = new Set<CorePhase>();
  #since: number;
  #failed: string | undefined;

  constructor(phaseWithinMs: number, steadyMs: () => number = () => performance.now()) {
    this.#phaseWithinMs = phaseWithinMs;
    this.#steadyMs = steadyMs;
    this.#since = steadyMs();
  }

  /** Retention and plugins wait for the API and start after it. */
  get isOver(): boolean {
    return this.isReady && this.#steadyMs() - this.#since > LATECOMERS_MS;
  }

  get isReady(): boolean {
    return PHASES.every((phase) => this.#reached.has(phase));
  }

  /** False if the phase was already reached. */
  reach(phase: CorePhase): boolean {
    if (this.#reached.has(phase)) return false;
    this.#reached.add(phase);
    this.#since = this.#steadyMs();
    return true;
  }

  /** Checks an output line of `program`. */
  readLine(line: string, program: string): void {
    if (CONTEXT_FAILED.test(line)) this.#failed ??= program;
  }

  fault(): StartFault | undefined {
    if (this.#failed !== undefined)
      return {
        program: this.#failed,
        reason: 'its start failed (Application run failed), but the process keeps running',
      };
    if (this.isReady || this.#steadyMs() - this.#since < this.#phaseWithinMs) return undefined;
    const missing = PHASES.filter((phase) => !this.#reached.has(phase)).join(', ');
    return { program: 'core', reason: `no progress for ${this.#phaseWithinMs / 1000} s. Still missing: ${missing}` };
  }
}

/** The pause before this start: none after a good start, then 5 s, 10 s, 20 s, up to a minute. */
export function pauseBeforeStart(home: string): { failed: number; pauseMs: number } {
  const failed = failedStarts(home);
  return { failed, pauseMs: failed === 0 ? 0 : Math.min(MAX_PAUSE_MS, FIRST_PAUSE_MS * 2 ** (failed - 1)) };
}

export function noteFailedStart(home: string): void {
  writeFileAtomically(join(home, FAILED_STARTS), `${failedStarts(home) + 1}\n`);
}

export function noteGoodStart(home: string): void {
  rmSync(join(home, FAILED_STARTS), { force: true });
}

function failedStarts(home: string): number {
  try {
    const failed = Number(readFileSync(join(home, FAILED_STARTS), 'utf8'));
    return Number.isInteger(failed) && failed > 0 ? Math.min(failed, 100) : 0;
  } catch {
    return 0;
  }
}

/** Phases of a start. `streaming`: devices can connect. */
export type CorePhase = 'config' | 'messaging' | 'streaming' | 'api';

const STARTED = /Started TAK Server (config|messaging|api) Microservice/i;
const STREAMING = /NioServer - Server started/;
const MAX_LINE_LENGTH = 64 * 1024;
const READ_BYTES = 256 * 1024;

export function phaseIn(line: string): CorePhase | undefined {
  const started = STARTED.exec(line)?.[1]?.toLowerCase();
  if (started === 'config' || started === 'messaging' || started === 'api') return started;
  return STREAMING.test(line) ? 'streaming' : undefined;
}

/** Splits chunks into lines. Truncates a line that is too long. */
export function linesOf(each: (line: string) => void): (chunk: Buffer) => void {
  let rest = '';
  return function take(chunk) {
    const lines = (rest + chunk.toString('latin1')).split('\n');
    rest = (lines.pop() ?? '').slice(-MAX_LINE_LENGTH);
    for (const line of lines) each(line);
  };
}

export interface Output {
  write(chunk: Buffer): void;
  close(): void;
}

/**
 * Appends to a file, which may be truncated meanwhile. Calls `failed` once per failure, such as a
 * full disk.
 */
export function outputFile(path: string, failed: (error: unknown) => void): Output {
  mkdirSync(dirname(path), { recursive: true, mode: 0o750 });
  const file = openSync(path, 'a', 0o640);
  let isFailing = false;
  let isClosed = false;
  return {
    write(chunk) {
      if (isClosed) return;
      try {
        writeSync(file, chunk);
        isFailing = false;
      } catch (error) {
        if (!isFailing) failed(error);
        isFailing = true;
      }
    },
    close() {
      isClosed = true;
      closeSync(file);
    },
  };
}

/**
 * Returns a function that reads what was appended since the last call. Starts over if the file was
 * truncated.
 */
export function follow(path: string, take: (chunk: Buffer) => void): () => void {
  let at: number | undefined;
  const look = (): void => {
    let file: number;
    try {
      file = openSync(path, 'r');
    } catch {
      at = 0;
      return;
    }
    try {
      const { size } = fstatSync(file);
      at ??= size;
      if (size < at) at = 0;
      const chunk = Buffer.allocUnsafe(Math.min(READ_BYTES, size - at));
      const length = readSync(file, chunk, 0, chunk.length, at);
      at += length;
      if (length > 0) take(chunk.subarray(0, length));
    } finally {
      closeSync(file);
    }
  };
  look();
  return look;
}

/**
 * What a release needs at its start: a device that connects before the directory answers stays in
 * the anonymous group.
 */
export interface Awaited {
  /** `database`, `directory` */
  name: string;
  /** Rejects while it is unavailable. */
  check: () => Promise<void>;
}

interface WaitOptions {
  log: Log;
  signal: AbortSignal;
  tryEveryMs?: number;
  sayEveryMs?: number;
}

/**
 * Waits until each was available once, and logs what is missing. Rejects with the reason of the
 * signal.
 */
export async function waitForAll(awaited: readonly Awaited[], options: WaitOptions): Promise<void> {
  const reasons = new Map<string, string>(awaited.map(({ name }) => [name, 'not checked yet']));
  const say = (): void => {
    for (const [name, reason] of reasons) options.log.info('core.waits', { for: name, reason });
  };
  const timer = setInterval(say, options.sayEveryMs ?? 10_000);
  try {
    await Promise.all(awaited.map((each) => waitFor(each, reasons, options)));
  } finally {
    clearInterval(timer);
  }
}

async function waitFor(
  { name, check }: Awaited,
  reasons: Map<string, string>,
  { log, signal, tryEveryMs = 1_000 }: WaitOptions,
): Promise<void> {
  for (;;) {
    signal.throwIfAborted();
    try {
      await check();
      reasons.delete(name);
      log.info('core.found', { what: name });
      return;
    } catch (error) {
      reasons.set(name, messageOf(error));
    }
    await delay(tryEveryMs, undefined, { signal });
  }
}

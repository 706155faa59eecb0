// What the programs of a release write: their output goes into logs/takserver.log, and the lines that say how far the start has come
// are heard, in that output and in the logs of the programs.

import { closeSync, fstatSync, mkdirSync, openSync, readSync, writeSync } from 'node:fs';
import { dirname } from 'node:path';

/** Of a start, as people follow it. `streaming`: devices can connect. */
export type CorePhase = 'config' | 'messaging' | 'streaming' | 'api';

const STARTED = /Started TAK Server (config|messaging|api) Microservice/i;
const STREAMING = /NioServer - Server started/;
const LONGEST_LINE = 64 * 1024;
const READ_BYTES = 256 * 1024;

export function phaseIn(line: string): CorePhase | undefined {
  const started = STARTED.exec(line)?.[1]?.toLowerCase();
  if (started === 'config' || started === 'messaging' || started === 'api') return started;
  return STREAMING.test(line) ? 'streaming' : undefined;
}

/** Cuts what comes in pieces into lines; one without an end is cut. */
export function linesOf(each: (line: string) => void): (chunk: Buffer) => void {
  let rest = '';
  return function take(chunk) {
    const lines = (rest + chunk.toString('latin1')).split('\n');
    rest = (lines.pop() ?? '').slice(-LONGEST_LINE);
    for (const line of lines) each(line);
  };
}

export interface Output {
  write(chunk: Buffer): void;
  close(): void;
}

/** Appends, so that the file may be emptied meanwhile. `failed` hears of a full disk once, until writing works again. */
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

/** What is appended to a file from now on, each time somebody looks; one that was emptied is read from its beginning. */
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

// Keeps the logs of the embedded stack bounded: a log over its limit is copied beside itself and emptied. Every writer
// appends, so none has to open its file again.

import { copyFileSync, readdirSync, renameSync, statSync, truncateSync } from 'node:fs';
import { join } from 'node:path';

const LIMIT_BYTES = 16 * 1024 ** 2;
const KEPT = 3;

/** Rotates every *.log of `directory` that is over the limit; NAME.log.1 is the newest old one. */
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
      // There is no log of that age yet.
    }
  }
  copyFileSync(path, `${path}.1`);
  truncateSync(path, 0);
}

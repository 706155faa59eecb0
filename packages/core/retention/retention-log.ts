// Writes {data_dir}/logs/takserver-retention.log in the layout of a release: each run with what it
// deleted. The log is bounded, and a full disk stops nothing.

import { appendFileSync, mkdirSync, renameSync, statSync } from 'node:fs';
import { join } from 'node:path';

export type RetentionLog = Record<'info' | 'warn' | 'error', (text: string) => void>;

const NAME = 'takserver-retention.log';
const MAX_BYTES = 4 * 1024 ** 2;
const KEPT = 3;

/** Each text says "retention" itself: whoever reads on knows a line without its head. */
export function retentionLog(dataDirectory: string, now: () => Date, maxBytes = MAX_BYTES): RetentionLog {
  const directory = join(dataDirectory, 'logs');
  const path = join(directory, NAME);

  function line(level: string, text: string): void {
    try {
      mkdirSync(directory, { recursive: true, mode: 0o700 });
      if ((statSync(path, { throwIfNoEntry: false })?.size ?? 0) >= maxBytes) rotate(path);
      const message = text.replaceAll(/\s*[\r\n]+\s*/g, ' ');
      appendFileSync(path, `${moment(now())} [retention] ${level.padEnd(5)} holdfast.retention - ${message}\n`, {
        mode: 0o600,
      });
    } catch {
      // A full disk: the same stands in the log of the process, and in the table.
    }
  }

  return {
    info: (text) => line('INFO', text),
    warn: (text) => line('WARN', text),
    error: (text) => line('ERROR', text),
  };
}

function rotate(path: string): void {
  for (let age = KEPT; age >= 1; age--) {
    const older = age === 1 ? path : `${path}.${age - 1}`;
    if (statSync(older, { throwIfNoEntry: false }) !== undefined) renameSync(older, `${path}.${age}`);
  }
}

/** `2026-01-31-04:00:00.012`, in the zone of the process. */
function moment(at: Date): string {
  const two = (value: number): string => String(value).padStart(2, '0');
  const day = [at.getFullYear(), two(at.getMonth() + 1), two(at.getDate())].join('-');
  const time = [at.getHours(), at.getMinutes(), at.getSeconds()].map(two).join(':');
  return `${day}-${time}.${String(at.getMilliseconds()).padStart(3, '0')}`;
}

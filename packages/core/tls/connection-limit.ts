// How many connections the core holds at once: what its memory and its file descriptors allow.

import { readFileSync } from 'node:fs';
import { totalmem } from 'node:os';

export interface ConnectionLimit {
  /** Of 8089. */
  streaming: number;
  /** Of 8443 and of 8446, each. */
  http: number;
  /** What it follows from, for the log. */
  reason: string;
}

/** An idle TLS connection of the stream takes some 50 KB; the rest is for events on their way. */
const BYTES_OF_ONE = 64 * 1024;
const MEMORY_SHARE = 0.5;
/** For the database, files, logs and libraries. */
const OTHER_FILES = 256;
/** Of all connections; HTTP clients come and go, so each of both ports needs fewer. */
const HTTP_SHARE = 0.125;
const MIN_STREAMING = 256;
const MAX_STREAMING = 100_000;
const UNLIMITED = Number.MAX_SAFE_INTEGER;

/** `memoryBytes` that the process may use, `files` that it may open. */
export function connectionLimit({ memoryBytes, files }: { memoryBytes: number; files: number }): ConnectionLimit {
  const byMemory = Math.floor((memoryBytes * MEMORY_SHARE) / BYTES_OF_ONE);
  const byFiles = files - OTHER_FILES;
  const all = Math.min(byMemory, byFiles);
  const http = Math.max(MIN_STREAMING / 2, Math.floor(Math.min(all, MAX_STREAMING) * HTTP_SHARE));
  const streaming = Math.min(MAX_STREAMING, Math.max(MIN_STREAMING, all - 2 * http));
  const mib = Math.floor(memoryBytes / 1024 ** 2);
  if (all - 2 * http > MAX_STREAMING) return { streaming, http, reason: 'the limits of one core' };
  const reason = byMemory <= byFiles ? `${mib} MiB of memory` : `${files} file descriptors (ulimit -n)`;
  return { streaming, http, reason };
}

/** Of this process, by its cgroup and its limits; where one is unknown, the other decides. */
export function ownConnectionLimit(): ConnectionLimit {
  const constrained = process.constrainedMemory();
  const memoryBytes = Math.min(totalmem(), constrained > 0 ? constrained : UNLIMITED);
  return connectionLimit({ memoryBytes, files: openFilesLimit() });
}

/** Node.js raises the soft limit to the hard one as it starts. */
function openFilesLimit(): number {
  const [, soft = ''] = /^Max open files\s+(\S+)/m.exec(readFileSync('/proc/self/limits', 'utf8')) ?? [];
  return /^\d+$/.test(soft) ? Number(soft) : UNLIMITED;
}

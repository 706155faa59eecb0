// What this process and its disk use, as the operating system counts it.

import { statfs } from 'node:fs/promises';
import { availableParallelism } from 'node:os';
import { getHeapStatistics } from 'node:v8';

export interface OwnProcess {
  startedAt: Date;
  /** `heapCapBytes`: with more the process ends. */
  memory(): { heapUsedBytes: number; heapCommittedBytes: number; heapCapBytes: number };
  /** `usage` is of all processors, 0 to 1, since it was asked last. */
  cpu(): { count: number; usage: number };
  /** Of the disk that holds the files of the core. */
  disk(): Promise<{ totalBytes: number; freeBytes: number; usableBytes: number }>;
}

const SHORTEST_MS = 1_000;

export function ownProcess(dataDir: string): OwnProcess {
  let last = { atMs: performance.now() - process.uptime() * 1000, microseconds: 0 };
  let usage = 0;

  return {
    startedAt: new Date(Date.now() - process.uptime() * 1000),

    memory() {
      const { heapUsed, heapTotal } = process.memoryUsage();
      return {
        heapUsedBytes: heapUsed,
        heapCommittedBytes: heapTotal,
        heapCapBytes: getHeapStatistics().heap_size_limit,
      };
    },

    cpu() {
      const count = availableParallelism();
      const atMs = performance.now();
      if (atMs - last.atMs >= SHORTEST_MS) {
        const { user, system } = process.cpuUsage();
        usage = Math.min(1, (user + system - last.microseconds) / 1000 / (atMs - last.atMs) / count);
        last = { atMs, microseconds: user + system };
      }
      return { count, usage };
    },

    async disk() {
      const { bsize, blocks, bfree, bavail } = await statfs(dataDir);
      return { totalBytes: blocks * bsize, freeBytes: bfree * bsize, usableBytes: bavail * bsize };
    },
  };
}

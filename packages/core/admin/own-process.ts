// What this process and its disk use, as the operating system counts it.

import { statfs } from 'node:fs/promises';
import { availableParallelism } from 'node:os';
import { getHeapStatistics } from 'node:v8';

const SHORTEST_MS = 1_000;

export class OwnProcess {
  readonly startedAt = new Date(Date.now() - process.uptime() * 1000);
  readonly #dataDir: string;
  #last = { atMs: performance.now() - process.uptime() * 1000, microseconds: 0 };
  #usage = 0;

  constructor(dataDir: string) {
    this.#dataDir = dataDir;
  }

  /** `heapCapBytes`: with more the process ends. */
  memory(): { heapUsedBytes: number; heapCommittedBytes: number; heapCapBytes: number } {
    const { heapUsed, heapTotal } = process.memoryUsage();
    return {
      heapUsedBytes: heapUsed,
      heapCommittedBytes: heapTotal,
      heapCapBytes: getHeapStatistics().heap_size_limit,
    };
  }

  /** `usage` is of all processors, 0 to 1, since it was asked last. */
  cpu(): { count: number; usage: number } {
    const count = availableParallelism();
    const atMs = performance.now();
    if (atMs - this.#last.atMs >= SHORTEST_MS) {
      const { user, system } = process.cpuUsage();
      this.#usage = Math.min(1, (user + system - this.#last.microseconds) / 1000 / (atMs - this.#last.atMs) / count);
      this.#last = { atMs, microseconds: user + system };
    }
    return { count, usage: this.#usage };
  }

  /** Of the disk that holds the files of the core. */
  async disk(): Promise<{ totalBytes: number; freeBytes: number; usableBytes: number }> {
    const { bsize, blocks, bfree, bavail } = await statfs(this.#dataDir);
    return { totalBytes: blocks * bsize, freeBytes: bfree * bsize, usableBytes: bavail * bsize };
  }
}

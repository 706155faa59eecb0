// What this Node.js process uses, asked for at that moment: nothing is sampled in between.

import { readdir } from 'node:fs/promises';
import { performance } from 'node:perf_hooks';
import { setImmediate as soon } from 'node:timers/promises';
import type { ProcessStatus } from '../ports/process-status.ts';

export function nodeProcess(): ProcessStatus {
  return {
    async figures() {
      const asked = performance.now();
      await soon();
      const lag = performance.now() - asked;
      const { user, system } = process.cpuUsage();
      const { rss, heapUsed, heapTotal } = process.memoryUsage();
      const { active, idle } = performance.eventLoopUtilization();
      return {
        cpuSeconds: (user + system) / 1e6,
        residentBytes: rss,
        heapUsedBytes: heapUsed,
        heapTotalBytes: heapTotal,
        openFiles: await openFiles(),
        startedMs: performance.timeOrigin,
        loopActiveSeconds: active / 1000,
        loopIdleSeconds: idle / 1000,
        loopLagSeconds: lag / 1000,
      };
    },
  };
}

/** Without the one that lists them. */
async function openFiles(): Promise<number | null> {
  return readdir('/proc/self/fd').then(
    ({ length }) => length - 1,
    () => null,
  );
}

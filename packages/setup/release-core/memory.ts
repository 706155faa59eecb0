// The heaps of a release's programs, from the memory of their container. Its own script takes them from the machine, and then
// the kernel ends one program after the other.

import { readFileSync } from 'node:fs';
import { StackError } from '@holdfast/kit/app-error';

const MIB = 1024 ** 2;
/** Five programs of 5.7 with the least heaps were seen to take 2,072 MiB soon after their start, without a device. */
const SEEN_MIB = 2072;
const MIN_BYTES = 3072 * MIB;

interface Share {
  percent: number;
  /** What the program needs to come up at all. */
  minMib: number;
}

/**
 * In the proportions of the release's own script. Of api, messaging and config each keeps caches outside of its heap, which may
 * grow to the size of the heap; what is left of 100 is for what a JVM has besides: threads, classes, buffers of the network.
 */
const SHARES: Record<string, Share> = {
  API_MAX_HEAP: { percent: 16, minMib: 448 },
  MESSAGING_MAX_HEAP: { percent: 16, minMib: 448 },
  CONFIG_MAX_HEAP: { percent: 3, minMib: 128 },
  PLUGIN_MANAGER_MAX_HEAP: { percent: 3, minMib: 128 },
  RETENTION_MAX_HEAP: { percent: 3, minMib: 128 },
};

/** In MiB, by the names that setenv.sh reads; what the operator has set stays. Throws a StackError for less than 3 GiB. */
export function heapsFor(memoryBytes: number, environment: NodeJS.ProcessEnv): Record<string, string> {
  if (memoryBytes < MIN_BYTES)
    throw new StackError(
      `The core may use ${Math.floor(memoryBytes / MIB)} MiB of memory; a TAK Server release needs at least ${MIN_BYTES / MIB} MiB: its five programs take ${SEEN_MIB} MiB before the first device connects.`,
      'set CORE_MEMORY=4g (3g at least) in .env, on a machine that has it, then start again',
    );
  const heaps = Object.entries(SHARES).map(([name, { percent, minMib }]) => {
    const given = environment[name]?.trim();
    const derived = Math.max(minMib, Math.floor((memoryBytes * percent) / 100 / MIB));
    return [name, given === undefined || given === '' ? String(derived) : given] as const;
  });
  return Object.fromEntries(heaps);
}

const LIMITS = ['/sys/fs/cgroup/memory.max', '/sys/fs/cgroup/memory/memory.limit_in_bytes'];
const EVENTS = '/sys/fs/cgroup/memory.events';

/** What the cap of the container allows, or the machine has; the smaller of the two. */
export function memoryOfContainer(read: (path: string) => string | undefined = textOf): number {
  const machine = Number(/^MemTotal:\s+(\d+) kB$/m.exec(read('/proc/meminfo') ?? '')?.[1] ?? 0) * 1024;
  const caps = LIMITS.map((path) => Number(read(path)?.trim() ?? Number.NaN)).filter((bytes) => bytes > 0);
  return Math.min(machine, ...caps);
}

/** How often the kernel has ended a process of this container because its memory was at the cap. */
export function endedForMemory(read: (path: string) => string | undefined = textOf): number {
  return Number(/^oom_kill (\d+)$/m.exec(read(EVENTS) ?? '')?.[1] ?? 0);
}

function textOf(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return undefined;
  }
}

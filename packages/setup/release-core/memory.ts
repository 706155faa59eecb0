// Computes the heap sizes of a release's programs from the memory of their container. The release's
// own script uses the machine's memory, and the kernel would kill one program after another.

import { readFileSync } from 'node:fs';
import { StackError } from '@holdfast/kit/app-error';

const MIB = 1024 ** 2;
/** Measured for the five programs of 5.7 with minimal heaps, after the start without devices. */
const SEEN_MIB = 2072;
const MIN_BYTES = 3072 * MIB;

interface Share {
  percent: number;
  /** The minimum for the program to start. */
  minMib: number;
}

/**
 * In the proportions of the release's own script. api, messaging and config also keep caches
 * outside of their heaps, as large as the heap. The rest is for the JVMs: threads, classes, network
 * buffers.
 */
const SHARES: Record<string, Share> = {
  API_MAX_HEAP: { percent: 16, minMib: 448 },
  MESSAGING_MAX_HEAP: { percent: 16, minMib: 448 },
  CONFIG_MAX_HEAP: { percent: 3, minMib: 128 },
  PLUGIN_MANAGER_MAX_HEAP: { percent: 3, minMib: 128 },
  RETENTION_MAX_HEAP: { percent: 3, minMib: 128 },
};

/**
 * Heap sizes in MiB, by the names of setenv.sh. Keeps values of the operator. Throws a StackError
 * below 3 GiB.
 */
export function heapsFor(memoryBytes: number, environment: NodeJS.ProcessEnv): Record<string, string> {
  if (memoryBytes < MIN_BYTES)
    throw new StackError(
      `The core may use only ${Math.floor(memoryBytes / MIB)} MiB of memory. A TAK Server release needs at least ${MIN_BYTES / MIB} MiB: its five programs take ${SEEN_MIB} MiB before the first device connects.`,
      'set CORE_MEMORY=4g (at least 3g) in .env, on a machine with enough memory, then start again',
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

/** Memory limit of the container or memory of the machine, whichever is smaller. Bytes. */
export function memoryOfContainer(read: (path: string) => string | undefined = textOf): number {
  const machine = Number(/^MemTotal:\s+(\d+) kB$/m.exec(read('/proc/meminfo') ?? '')?.[1] ?? 0) * 1024;
  const caps = LIMITS.map((path) => Number(read(path)?.trim() ?? Number.NaN)).filter((bytes) => bytes > 0);
  return Math.min(machine, ...caps);
}

/** How often the kernel killed a process of this container at the memory limit. */
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

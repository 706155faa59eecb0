// The heaps of a release's programs, from the memory that their container may use.

import { describe, expect, it } from 'vitest';
import { endedForMemory, heapsFor, memoryOfContainer } from '../release-core/memory.ts';

const GIB = 1024 ** 3;

describe('heaps', () => {
  it.each([
    [3, { API_MAX_HEAP: '491', MESSAGING_MAX_HEAP: '491', CONFIG_MAX_HEAP: '128', RETENTION_MAX_HEAP: '128' }],
    [4, { API_MAX_HEAP: '655', MESSAGING_MAX_HEAP: '655', CONFIG_MAX_HEAP: '128', PLUGIN_MANAGER_MAX_HEAP: '128' }],
    [8, { API_MAX_HEAP: '1310', MESSAGING_MAX_HEAP: '1310', CONFIG_MAX_HEAP: '245', RETENTION_MAX_HEAP: '245' }],
  ])('of a container with %i GiB come from its cap, and none is too small to start with', (gib, wanted) => {
    expect(heapsFor(gib * GIB, {})).toMatchObject(wanted);
  });

  it.each([4, 6, 8, 16])('leave room in %i GiB for the caches beside them, and for what a JVM has besides', (gib) => {
    const heaps = heapsFor(gib * GIB, {});
    // Each of these three keeps a share of the caches outside of its heap, of up to 0.99 of the
    // heap's size.
    const withCache = ['API_MAX_HEAP', 'MESSAGING_MAX_HEAP', 'CONFIG_MAX_HEAP'];
    const sizes = Object.entries(heaps).map(([name, mib]) => Number(mib) * (withCache.includes(name) ? 1.99 : 1));
    expect(sizes.reduce((sum, each) => sum + each, 0)).toBeLessThan(gib * 1024 * 0.78);
  });

  it('stay as the operator has set them', () => {
    expect(heapsFor(4 * GIB, { API_MAX_HEAP: '1500', CONFIG_MAX_HEAP: ' ' })).toMatchObject({
      API_MAX_HEAP: '1500',
      CONFIG_MAX_HEAP: '128',
    });
  });

  it('are refused for less than 3 GiB, with the figure that was seen and the setting to change', () => {
    expect(() => heapsFor(3 * GIB - 1, {})).toThrow(/may use only 3071 MiB of memory.*at least 3072 MiB.*2072 MiB/);
  });

  const files = (texts: Record<string, string>) => (path: string) => texts[path];
  const machine = { '/proc/meminfo': 'MemTotal:        8388608 kB\nMemFree: 1 kB\n' };

  it('come from the cap of the container, in both kinds of control groups, never from more than the machine has', () => {
    expect(memoryOfContainer(files({ ...machine, '/sys/fs/cgroup/memory.max': '4294967296\n' }))).toBe(4 * GIB);
    expect(memoryOfContainer(files({ ...machine, '/sys/fs/cgroup/memory.max': 'max\n' }))).toBe(8 * GIB);
    const old = '/sys/fs/cgroup/memory/memory.limit_in_bytes';
    expect(memoryOfContainer(files({ ...machine, [old]: '3221225472\n' }))).toBe(3 * GIB);
    expect(memoryOfContainer(files({ ...machine, [old]: '9223372036854771712\n' }))).toBe(8 * GIB);
    expect(memoryOfContainer(files(machine))).toBe(8 * GIB);
    expect(memoryOfContainer()).toBeGreaterThan(0);
  });

  it('that were too small show in the counter of the kernel', () => {
    expect(endedForMemory(files({ '/sys/fs/cgroup/memory.events': 'oom 3\noom_kill 2\n' }))).toBe(2);
    expect(endedForMemory(files({}))).toBe(0);
  });
});

// What processes share of their measurements, and how one takes over those of another.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { MemoryHealthCache } from '../../shared/health/cache.ts';
import type { SharedResult } from '../../shared/health/port.ts';
import { keptId } from '../../shared/health/results.ts';
import { memoryLog } from '../http/fake-deps.ts';
import { fakeHealthResults } from './fake-health-results.ts';
import { ALL, bodyOf, SHARED, resultIn, twoProcesses } from './fake-two-processes.ts';
import { healthResultsContract, resultOf } from './health-results-contract.ts';

const own = fakeHealthResults(() => 0);
healthResultsContract('in memory', (runner) => own.of(runner));

describe('health of two processes', () => {
  it('is measured by both at the start, then what is shared by one, and is the same in both', async () => {
    const both = twoProcesses();
    const { one, two } = both;
    const first = await both.pass(1);
    for (const each of [one, two]) expect(first.get(each)).toHaveLength(ALL.length);
    const later = await both.pass(300);
    for (const name of ALL) {
      const counts = [one, two].map((each) => later.get(each)?.filter((one) => one === name).length ?? 0);
      expect([name, ...counts.toSorted((a, b) => a - b)]).toEqual([name, SHARED.includes(name) ? 0 : 5, 5]);
    }
    await both.pass(2);
    expect(await bodyOf(one)).toEqual(await bodyOf(two));
  });

  it('goes on within ten seconds of the interval when the one that measured is gone', async () => {
    const both = twoProcesses();
    await both.pass(63);
    const alone = await both.pass(72, [both.two]);
    expect(new Set(alone.get(both.two))).toEqual(new Set(ALL));
    expect(await both.two.health.isComplete()).toBe(true);
  });

  it('is measured at once where it was forgotten, and then known to the other', async () => {
    const both = twoProcesses();
    const { one, two } = both;
    await both.pass(10);
    for (const name of ['core', 'disk'])
      for (const each of [one, two]) {
        await each.health.forget(name);
        const measured = await both.pass(2);
        expect([measured.get(each), measured.get(each === one ? two : one)]).toEqual([[name], []]);
        expect(await resultIn(one, name)).toEqual(await resultIn(two, name));
      }
  });

  it('is measured by both while the database does not answer', async () => {
    const both = twoProcesses();
    await both.pass(5);
    both.results.unavailable = true;
    const measured = await both.pass(75);
    for (const each of [both.one, both.two]) expect(measured.get(each)?.length).toBeGreaterThanOrEqual(ALL.length);
  });
});

describe('an adopted measurement', () => {
  const cacheAt = (clock: { nowMs: number }) =>
    new MemoryHealthCache({ intervals: { disk: 60 }, nowMs: () => clock.nowMs });
  const ofOther = (ageMs: number): SharedResult => ({
    ...resultOf('disk'),
    process: { id: 'two', name: 'TWO' },
    ageMs,
  });

  it('needs one of its own before, and never replaces a newer one', () => {
    const clock = { nowMs: 1_000_000 };
    const cache = cacheAt(clock);
    const { measurement } = resultOf('disk');
    expect(cache.adopt([ofOther(0)])).toEqual([]);
    cache.put({ ...measurement, message: 'own' });
    expect(cache.adopt([ofOther(1)])).toEqual([]);
    clock.nowMs += 5000;
    expect(cache.adopt([{ ...ofOther(0), ...resultOf('unknown') }])).toEqual([]);
    expect(cache.adopt([{ ...ofOther(100), ...resultOf('disk', { message: 'theirs' }) }])).toEqual(['disk']);
    expect(cache.states()).toMatchObject([
      { measurement: { message: 'theirs' }, since: '2026-06-15T12:34:56.789Z', since_is_exact: false },
    ]);
    expect(cache.history('disk')).toMatchObject({ failuresInRow: 2, pollsInRow: 3 });
  });

  it('does not replace the one that is being made', () => {
    const clock = { nowMs: 1_000_000 };
    const cache = cacheAt(clock);
    cache.put(resultOf('disk').measurement);
    clock.nowMs += 61_000;
    expect(cache.takeDue(clock.nowMs)).toEqual(['disk']);
    expect(cache.adopt([ofOther(0)])).toEqual([]);
  });
});

describe('the id of a process', () => {
  const directory = mkdtempSync(join(tmpdir(), 'process-id-'));
  afterAll(() => rmSync(directory, { recursive: true }));

  it('stays the same after a restart, and is made again if its file is damaged', () => {
    const log = memoryLog();
    const file = join(directory, 'management', 'process-id.txt');
    const id = keptId(file, log);
    expect(keptId(file, log)).toBe(id);
    expect(keptId(`${file}.2`, log)).not.toBe(id);
    writeFileSync(file, id.slice(1));
    const other = keptId(file, log);
    expect([other.length, keptId(file, log)]).toEqual([36, other]);
    expect(log.events).toEqual([]);
  });

  it('is new each time where it can not be kept, which is logged', () => {
    const log = memoryLog();
    const file = join(directory, 'not', 'there', 'process-id.txt');
    expect(keptId(file, log)).not.toBe(keptId(file, log));
    expect(log.events.map(({ level, event }) => [level, event])).toEqual(
      Array.from({ length: 2 }, () => ['warn', 'health.id_not_kept']),
    );
    expect(keptId(undefined, log)).not.toBe(keptId(undefined, log));
    expect(log.events).toHaveLength(2);
  });
});

// Local modules of two processes: the worst of both counts.

import { describe, expect, it } from 'vitest';
import { run as pollHealth } from '../../jobs/poll-health.ts';
import { MemoryHealthCache } from '../../shared/health/cache.ts';
import { collectMetrics } from '../../shared/health/metrics.ts';
import type { SharedResult } from '../../shared/health/port.ts';
import type { DiskUse } from '../../shared/host/port.ts';
import type { FakeDeps } from '../http/fake-deps.ts';
import { bodyOf, LOCAL, resultIn, twoProcesses } from './fake-two-processes.ts';
import { resultOf } from './health-results-contract.ts';

function setDisk(deps: FakeDeps, usedPct: number): void {
  const mount: DiskUse = {
    mount: '/',
    paths: ['/'],
    total_bytes: 1e12,
    free_bytes: (100 - usedPct) * 1e10,
    used_pct: usedPct,
    inodes_used_pct: null,
  };
  deps.monitored.disks = { use: async () => [mount] };
}

const alertEvents = (...processes: readonly FakeDeps[]): string[] =>
  processes.flatMap(({ log }) =>
    log.events
      .filter(({ event, fields }) => event.startsWith('alert.') && fields['module'] === 'disk')
      .map(({ event, fields }) => `${event} ${String(fields['level'] ?? fields['from'])}`),
  );

describe('a local module of two processes', () => {
  it('is one about the machine or the files of a process', () => {
    expect(LOCAL.toSorted()).toEqual(['alerts', 'config', 'containers', 'disk', 'dns', 'time', 'tls', 'updates']);
  });

  it('shows the worse of both in both, with the process that it comes from', async () => {
    const both = twoProcesses();
    const { one, two } = both;
    setDisk(one, 40);
    setDisk(two, 97);
    await both.pass(6);
    for (const each of [one, two])
      expect(await resultIn(each, 'disk')).toMatchObject({
        status: 'critical',
        message: expect.stringMatching(/^TWO: \/: 97 % full/),
        details: [expect.stringMatching(/^TWO: \/: 97 % full/)],
        figure: 97,
        data: {
          mounts: [{ used_pct: 97 }],
          processes: [
            { name: 'TWO', status: 'critical' },
            { name: 'ONE', status: 'ok' },
          ],
        },
      });
    expect(await bodyOf(one)).toEqual(await bodyOf(two));
    setDisk(one, 98);
    await both.pass(62);
    const { message, details } = (await resultIn(two, 'disk')) ?? {};
    expect(message).toMatch(/^ONE: \/: 98 % full/);
    expect(details).toEqual([expect.stringMatching(/^ONE: .*98 %/), expect.stringMatching(/^TWO: .*97 %/)]);
    expect(await bodyOf(one)).toEqual(await bodyOf(two));
  });

  it('keeps the counts of each apart', async () => {
    const both = twoProcesses();
    const { one, two } = both;
    two.monitored.disks = { use: () => Promise.reject(new Error('no answer')) };
    await both.pass(130);
    expect(await one.health.history('disk')).toMatchObject({ failuresInRow: 0 });
    expect(await two.health.history('disk')).toMatchObject({ failuresInRow: 3 });
    expect(await resultIn(one, 'disk')).toMatchObject({ failuresInRow: 3, message: 'TWO: no answer.' });
  });

  it('raises one alert for all, and recovers when all are good', async () => {
    const both = twoProcesses();
    const { one, two } = both;
    await both.pass(5);
    setDisk(two, 97);
    await both.pass(400);
    expect(alertEvents(one, two)).toEqual(['alert.raised critical']);
    setDisk(one, 97);
    await both.pass(400);
    setDisk(two, 40);
    await both.pass(400);
    expect(alertEvents(one, two)).toEqual(['alert.raised critical']);
    setDisk(one, 40);
    await both.pass(65);
    expect(alertEvents(one, two).toSorted()).toEqual(['alert.raised critical', 'alert.recovered critical']);
  });

  it('never recovers by a process that measured before it could know of the bad one', async () => {
    const both = twoProcesses();
    const { one, two } = both;
    await both.pass(5);
    setDisk(two, 97);
    await two.health.forget('disk');
    await one.health.forget('disk');
    const { disks } = one.monitored;
    one.monitored.disks = {
      async use() {
        one.monitored.disks = disks;
        await both.pass(1, [two]);
        return disks.use();
      },
    };
    await both.pass(1, [one]);
    await both.pass(120);
    expect(alertEvents(one, two)).toEqual(['alert.raised critical']);
  });

  it('is published before its alert is raised', async () => {
    const both = twoProcesses();
    const { one, two } = both;
    await both.pass(5);
    setDisk(two, 97);
    await two.health.forget('disk');
    const observe = two.alerts.observe.bind(two.alerts);
    const seen: (string | undefined)[] = [];
    two.alerts = Object.assign(Object.create(two.alerts) as FakeDeps['alerts'], {
      async observe(evaluation: Parameters<typeof observe>[0]) {
        await both.pass(1, [one]);
        if (evaluation.module === 'disk') seen.push((await resultIn(one, 'disk'))?.status);
        return observe(evaluation);
      },
    });
    await both.pass(1, [two]);
    expect(seen[0]).toBe('critical');
  });

  it('forgets a process that ended after two of the shortest intervals, also a module measured each hour', async () => {
    const both = twoProcesses({ disk: 3600 });
    const { one, two } = both;
    setDisk(two, 97);
    await both.pass(10);
    await both.pass(130, [one]);
    expect((await resultIn(one, 'disk'))?.status).toBe('critical');
    const later = await both.pass(20, [one]);
    expect(later.get(one)).toContain('disk');
    const { status, message, data } = (await resultIn(one, 'disk')) ?? {};
    expect(status).toBe('ok');
    expect(message).not.toContain('ONE');
    expect(data).not.toHaveProperty('processes');
    expect(alertEvents(one, two).toSorted()).toEqual(['alert.raised critical', 'alert.recovered critical']);
  });

  it('drops a result that its process no longer renews', async () => {
    const both = twoProcesses();
    const { one, two } = both;
    setDisk(two, 97);
    await both.pass(3);
    two.monitored.disks = { use: () => new Promise(() => undefined) };
    const polls = async (seconds: number): Promise<void> => {
      for (let second = 0; second < seconds; second++) {
        void pollHealth(two, both.around.now);
        await both.pass(1, [one]);
      }
    };
    await polls(140);
    expect((await resultIn(one, 'disk'))?.status).toBe('critical');
    await polls(20);
    expect((await resultIn(one, 'disk'))?.status).toBe('ok');
  });

  it('shows its own without the database, and both again with it, though nothing is measured again', async () => {
    const both = twoProcesses({ disk: 3600 });
    const { one, two } = both;
    await both.pass(5);
    both.results.unavailable = true;
    setDisk(two, 97);
    await two.health.forget('disk');
    await both.pass(200);
    expect([await resultIn(one, 'disk'), await resultIn(two, 'disk')]).toMatchObject([
      { status: 'ok', message: expect.stringMatching(/^1 file system|^\d+ file/) },
      { status: 'critical', message: expect.stringMatching(/^\//) },
    ]);
    both.results.unavailable = false;
    const measured = await both.pass(3);
    expect([...measured.values()].flat()).not.toContain('disk');
    for (const each of [one, two])
      expect(await resultIn(each, 'disk')).toMatchObject({
        status: 'critical',
        message: expect.stringMatching(/^TWO: /),
      });
  });

  it('is told to the alerts as one that others may have too, unless there are none', async () => {
    const both = twoProcesses();
    const { one, two } = both;
    const told = new Map<string, boolean | undefined>();
    const observe = one.alerts.observe.bind(one.alerts);
    one.alerts.observe = async (evaluation) => {
      told.set(evaluation.module, evaluation.isShared);
      return observe(evaluation);
    };
    await both.pass(1, [one]);
    expect([told.get('disk'), told.get('core')]).toEqual([false, false]);
    await both.pass(1, [two]);
    await both.pass(60, [one]);
    expect([told.get('disk'), told.get('core')]).toEqual([true, false]);
  });

  it('counts an older result again when its process is heard again', async () => {
    const both = twoProcesses({ disk: 3600 });
    const { one, two } = both;
    setDisk(two, 97);
    await both.pass(5);
    both.results.unavailable = true;
    await both.pass(200);
    expect((await resultIn(one, 'disk'))?.status).toBe('ok');
    both.results.unavailable = false;
    await both.pass(3);
    expect((await resultIn(one, 'disk'))?.status).toBe('critical');
  });

  it('concerns every module of a process that is heard again', () => {
    let nowMs = 1_000_000;
    const local = ['disk', 'tls'];
    const cache = new MemoryHealthCache({
      intervals: { disk: 60, tls: 3600 },
      sharing: { process: { id: 'one', name: 'ONE' }, local },
      nowMs: () => nowMs,
    });
    const ofTwo = (name: string): SharedResult => ({
      ...resultOf(name),
      process: { id: 'two', name: 'TWO' },
      ageMs: 0,
    });
    for (const name of local) cache.put({ ...resultOf(name).measurement, status: 'ok' });
    expect(cache.adopt([ofTwo('tls'), ofTwo('disk')])).toEqual(['tls', 'disk']);
    expect(cache.adopt([{ ...ofTwo('disk'), ...resultOf('disk', { status: 'critical' }), ageMs: 1 }])).toEqual([]);
    expect(cache.state('disk')).toMatchObject({ measurement: { status: 'warning' } });
    nowMs += 151_000;
    expect(cache.takeDue(nowMs)).toEqual(local);
    for (const name of local) cache.put({ ...resultOf(name).measurement, status: 'ok' });
    expect(cache.states()).toMatchObject([{ measurement: { status: 'ok' } }, { measurement: { status: 'ok' } }]);
    expect(cache.adopt([ofTwo('disk')])).toEqual(['disk', 'tls']);
    expect(cache.states()).toMatchObject([
      { measurement: { status: 'warning' } },
      { measurement: { status: 'warning' } },
    ]);
  });

  it('tells of no process that could not measure for a while', async () => {
    const both = twoProcesses();
    const { one, two } = both;
    await both.pass(5);
    await both.pass(300, [two]);
    await pollHealth(one, both.around.now);
    expect(alertEvents(one, two)).toEqual([]);
  });

  it('has metrics of each process by itself', async () => {
    const both = twoProcesses();
    const { one, two } = both;
    setDisk(one, 40);
    setDisk(two, 97);
    await both.pass(6);
    expect(await resultIn(one, 'disk')).toMatchObject({ status: 'critical' });
    const families = await collectMetrics(one);
    const valuesOf = (name: string, label: string): (number | undefined)[] =>
      families
        .filter((family) => family.name === name)
        .flatMap((family) => (family.type === 'gauge' ? family.samples : []))
        .filter(({ labels }) => Object.values(labels).includes(label))
        .map(({ value }) => value);
    expect(valuesOf('holdfast_health_status', 'disk')).toEqual([0]);
    expect(valuesOf('holdfast_disk_mount_used_ratio', '/')).toEqual([0.4]);
  });
});

describe('a process that is alone', () => {
  it('shows what it measured, and looks for others every five seconds and before it tells of its machine', async () => {
    const both = twoProcesses();
    const { one } = both;
    setDisk(one, 97);
    await both.pass(120, [one]);
    expect(both.results.reads.get('one')).toBe(120 / 5 + 2 * LOCAL.length);
    expect(await resultIn(one, 'disk')).toMatchObject({ message: expect.stringMatching(/^\/: 97/) });
    expect(await one.health.current('own')).toEqual(await one.health.current('full'));
  });

  it('looks each second for one that was there within the last hour', async () => {
    const both = twoProcesses();
    const { one, results } = both;
    await both.pass(6);
    await both.pass(3600, [one]);
    const before = results.reads.get('one') ?? 0;
    await both.pass(60, [one]);
    expect((results.reads.get('one') ?? 0) - before).toBe(60 / 5 + LOCAL.length);
    expect(before).toBeGreaterThan(3590);
  });
});

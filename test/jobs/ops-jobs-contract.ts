// What every OpsJobs must do, held against the fake and against the table.

import { randomUUID } from 'node:crypto';
import { beforeEach, describe, expect, it } from 'vitest';
import type { OpsJob, OpsJobs } from '../../shared/jobs/port.ts';

const START = Date.parse('2026-03-04T05:06:07.089Z');
const at = (minute: number): string => new Date(START + minute * 60_000).toISOString();

/** `make` gives one that is empty. */
export function opsJobsContract(what: string, make: () => OpsJobs | Promise<OpsJobs>): void {
  describe(`long work (${what})`, () => {
    let jobs: OpsJobs;
    beforeEach(async () => {
      jobs = await make();
    });
    const add = (kind = 'retention', minute = 0, input: unknown = {}): Promise<OpsJob> =>
      jobs.add({ id: randomUUID(), kind, actor: 'webadmin', input, now: at(minute) });
    const ended = async (kind: string, minute: number, state: 'succeeded' | 'failed' = 'succeeded') => {
      const job = await add(kind, minute);
      expect(await jobs.change(job.id, { state, finishedAt: at(minute + 1) })).toBe(true);
      return job;
    };

    it('is queued when it is added, and found by its id', async () => {
      const input = { limits: { cot: at(-1) }, most_rows: null, text: 'ä"\\{}' };
      const job = await add('retention', 0, input);
      expect(job).toEqual({
        id: expect.any(String),
        kind: 'retention',
        state: 'queued',
        progress: 0,
        phase: null,
        phasePercent: null,
        memory: null,
        createdAt: at(0),
        startedAt: null,
        finishedAt: null,
        eta: null,
        log: [],
        input,
        result: null,
        error: null,
        actor: 'webadmin',
      });
      expect(await jobs.get(job.id)).toEqual(job);
      expect(await jobs.open()).toEqual([job]);
    });

    it('has nothing under an id that is no job, nor under what is no id', async () => {
      for (const id of [randomUUID(), 'x', '', "'", '0'.repeat(36)]) {
        expect(await jobs.get(id)).toBeUndefined();
        expect(await jobs.change(id, { progress: 1 })).toBe(false);
      }
    });

    it('is open once of each kind: the second is refused with the id of the first', async () => {
      const first = await add();
      await expect(add()).rejects.toMatchObject({ code: 'conflict', message: expect.stringContaining(first.id) });
      await jobs.change(first.id, { state: 'running' });
      await expect(add()).rejects.toMatchObject({ code: 'conflict', message: expect.stringContaining(first.id) });
      await add('vacuum', 1);
      await jobs.change(first.id, { state: 'interrupted', finishedAt: at(2) });
      expect((await add('retention', 3)).state).toBe('queued');
      expect((await jobs.open()).map(({ kind }) => kind)).toEqual(['vacuum', 'retention']);
    });

    it('lets one of many win that are added at once', async () => {
      const added = await Promise.allSettled(Array.from({ length: 8 }, () => add()));
      const lost = added.filter((each) => each.status === 'rejected');
      expect(lost).toHaveLength(7);
      const [winner] = await jobs.open();
      for (const { reason } of lost)
        expect(reason).toMatchObject({ code: 'conflict', message: expect.stringContaining(winner?.id ?? '?') });
    });

    it('changes what is named, and nothing else', async () => {
      const { id } = await add();
      await jobs.change(id, { state: 'running', startedAt: at(1), eta: at(9), progress: 0.25, log: ['begun'] });
      await jobs.change(id, { log: ['half'] });
      expect(await jobs.get(id)).toMatchObject({ state: 'running', progress: 0.25, startedAt: at(1), eta: at(9) });
      const result = { rows: { cot: 7 }, seconds: 1.5 };
      await jobs.change(id, { state: 'failed', finishedAt: at(2), eta: null, result, error: 'out of luck', log: [] });
      expect(await jobs.get(id)).toMatchObject({
        state: 'failed',
        progress: 0.25,
        startedAt: at(1),
        finishedAt: at(2),
        eta: null,
        log: ['begun', 'half'],
        result,
        error: 'out of luck',
      });
    });

    it('says its phase, forgets it, and keeps its memory until it is given another', async () => {
      const { id } = await add('vacuum');
      const memory = { at: 2, tables: ['a"b', null] };
      await jobs.change(id, { phase: 'scanning heap', phasePercent: 12.5, memory });
      await jobs.change(id, { progress: 0.5 });
      expect(await jobs.get(id)).toMatchObject({ phase: 'scanning heap', phasePercent: 12.5, memory, progress: 0.5 });
      await jobs.change(id, { phase: null, phasePercent: null });
      expect(await jobs.get(id)).toMatchObject({ phase: null, phasePercent: null, memory });
    });

    it('changes no more once it has ended', async () => {
      const { id } = await ended('retention', 0);
      const before = await jobs.get(id);
      expect(await jobs.change(id, { state: 'running', progress: 1, log: ['late'] })).toBe(false);
      expect(await jobs.get(id)).toEqual(before);
    });

    it('keeps the last 200 lines, in order, though many add at once', async () => {
      const { id } = await add();
      await Promise.all(Array.from({ length: 9 }, (_, n) => jobs.change(id, { log: [`${n} a`, `${n} b`] })));
      const { log = [] } = (await jobs.get(id)) ?? {};
      expect(log).toHaveLength(18);
      expect(log.every((line, place) => place % 2 === 0 || line === log[place - 1]?.replace('a', 'b'))).toBe(true);
      await jobs.change(id, { log: Array.from({ length: 150 }, (_, n) => `line ${n}`) });
      await jobs.change(id, { log: Array.from({ length: 100 }, (_, n) => `more ${n}`) });
      const { log: last = [] } = (await jobs.get(id)) ?? {};
      expect([last.length, last[0], last.at(-1)]).toEqual([200, 'line 50', 'more 99']);
    });

    it('takes any text that a core may say', async () => {
      const { id } = await add();
      const odd = 'a\0b\uD800 \\u0000 "';
      expect(await jobs.change(id, { log: [odd], error: odd, result: { message: odd } })).toBe(true);
      expect(((await jobs.get(id))?.log ?? []).join()).toMatch(/^a.b. \\u0000 "$/s);
    });

    it('is listed newest first, by kind and by state, in parts', async () => {
      const one = await ended('retention', 0);
      const two = await ended('vacuum', 1, 'failed');
      const three = await add('retention', 2);
      const ids = async (filter: Parameters<OpsJobs['list']>[0], offset = 0, limit = 9) => {
        const { results, count } = await jobs.list(filter, offset, limit);
        return [results.map(({ id }) => id), count];
      };
      expect(await ids({})).toEqual([[three.id, two.id, one.id], 3]);
      expect(await ids({}, 1, 1)).toEqual([[two.id], 3]);
      expect(await ids({}, 9)).toEqual([[], 3]);
      expect(await ids({ kind: 'retention' })).toEqual([[three.id, one.id], 2]);
      expect(await ids({ state: 'failed' })).toEqual([[two.id], 1]);
      expect(await ids({ kind: 'retention', state: 'failed' })).toEqual([[], 0]);
    });

    it('is removed when it ended long ago, and never while it is open', async () => {
      await ended('retention', 0);
      const later = await ended('retention', 10);
      const open = await add('retention', 0);
      expect(await jobs.prune(at(5))).toBe(1);
      expect((await jobs.list({}, 0, 9)).results.map(({ id }) => id)).toEqual([later.id, open.id]);
      expect(await jobs.prune(at(99))).toBe(1);
      expect(await jobs.open()).toHaveLength(1);
    });
  });
}

// What every JobRuns must do, held against the fake and against the table. Leases are a few tenths of a second.

import { setTimeout as delay } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import type { JobRuns } from '../../shared/jobs/port.ts';

const SHORT = 0.2;
const LONG = 30;
let slot = Date.UTC(2026, 0, 1);
const nextSlot = (): Date => new Date((slot += 60_000));

export function jobRunsContract(what: string, make: () => JobRuns): void {
  describe(`job runs (${what})`, () => {
    it('let one of many claim a slot', async () => {
      const runs = make();
      const due = nextSlot();
      const claims = await Promise.all(['a', 'b', 'c', 'd', 'e'].map((runner) => runs.claim('one', due, runner, LONG)));
      const won = claims.filter((claim) => claim !== undefined);
      expect(won).toHaveLength(1);
      expect(won[0]).toMatchObject({ name: 'one', dueAt: due, attempt: 1 });
    });

    it('never let two slots of one job run at once, but two jobs', async () => {
      const runs = make();
      const first = await runs.claim('overlap', nextSlot(), 'a', LONG);
      expect(await runs.claim('overlap', nextSlot(), 'b', LONG)).toBeUndefined();
      expect(await runs.claim('other job', nextSlot(), 'b', LONG)).toBeDefined();
      if (first === undefined) throw new Error('no claim');
      expect(await runs.finish(first, { summary: { rows: 1 } })).toBe(true);
      expect(await runs.claim('overlap', first.dueAt, 'b', LONG)).toBeUndefined();
      expect(await runs.claim('overlap', nextSlot(), 'b', LONG)).toBeDefined();
    });

    it('hand a run over when its lease has ended, to one of many', async () => {
      const runs = make();
      const due = nextSlot();
      const dead = await runs.claim('takeover', due, 'dead', SHORT);
      if (dead === undefined) throw new Error('no claim');
      await delay(SHORT * 1000 + 50);
      const claims = await Promise.all(
        ['a', 'b', 'c'].map((runner) => runs.claim('takeover', nextSlot(), runner, LONG)),
      );
      const heirs = claims.filter((claim) => claim !== undefined);
      expect(heirs).toHaveLength(1);
      expect(heirs[0]).toMatchObject({ dueAt: due, attempt: 2 });
      expect(await runs.renew(dead, LONG)).toBe(false);
      expect(await runs.finish(dead, { error: 'late' })).toBe(false);
      if (heirs[0] !== undefined) expect(await runs.finish(heirs[0], { summary: {} })).toBe(true);
    });

    it('do not take an earlier attempt of the same runner for the present one', async () => {
      const runs = make();
      const early = await runs.claim('attempts', nextSlot(), 'a', SHORT);
      await delay(SHORT * 1000 + 50);
      const late = await runs.claim('attempts', nextSlot(), 'a', LONG);
      if (early === undefined || late === undefined) throw new Error('no claim');
      expect([await runs.renew(early, LONG), await runs.finish(early, { summary: {} })]).toEqual([false, false]);
      expect(await runs.finish(late, { summary: {} })).toBe(true);
    });

    it('keep a run with its runner while it renews', async () => {
      const runs = make();
      const claim = await runs.claim('renewed', nextSlot(), 'a', SHORT);
      if (claim === undefined) throw new Error('no claim');
      expect(await runs.renew(claim, LONG)).toBe(true);
      await delay(SHORT * 1000 + 50);
      expect(await runs.claim('renewed', nextSlot(), 'b', LONG)).toBeUndefined();
    });

    it('tell the summaries of one job, newest first, without runs that failed or go on', async () => {
      const runs = make();
      const begun = new Date(Date.now() - 60_000);
      for (const outcome of [{ summary: { rows: 1 } }, { error: 'failed' }, { summary: { rows: 2 } }]) {
        const claim = await runs.claim('told', nextSlot(), 'a', LONG);
        if (claim !== undefined) await runs.finish(claim, outcome);
        await delay(5);
      }
      await runs.claim('told', nextSlot(), 'a', LONG);
      const notices = await runs.summaries('told', begun);
      expect(notices.map(({ summary }) => summary)).toEqual([{ rows: 2 }, { rows: 1 }]);
      expect(notices[0]?.finishedAt.getTime()).toBeGreaterThan(begun.getTime());
      expect(await runs.summaries('told', new Date(Date.now() + 60_000))).toEqual([]);
      expect(await runs.summaries('another', begun)).toEqual([]);
    });

    it('prune finished runs only', async () => {
      const runs = make();
      const done = await runs.claim('pruned', nextSlot(), 'a', LONG);
      if (done === undefined) throw new Error('no claim');
      await runs.finish(done, { error: 'failed' });
      await runs.claim('unfinished', nextSlot(), 'a', LONG);
      await delay(20);
      expect(await runs.prune(new Date(Date.now() - 3_600_000))).toBe(0);
      expect(await runs.prune(new Date(Date.now() + 1000))).toBeGreaterThanOrEqual(1);
      expect(await runs.claim('unfinished', nextSlot(), 'b', LONG)).toBeUndefined();
    });
  });
}

// What every core does that begins runs of retention and tells of them.

import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { CoreRetentionRun } from '@holdfast/kit/core-wire';
import { DEFAULT_SCHEDULE, NEVER } from '@holdfast/kit/retention';
import { DAY_MS } from '@holdfast/kit/time';
import type { CoreRetention } from '../../shared/core/port.ts';
import { codeOf, type CoreRetentionWorld, isPlain } from './core-retention-contract.ts';

export interface CoreRunsWorld extends CoreRetentionWorld {
  /** Adds one event for each of these times. */
  addEvents(times: readonly Date[]): Promise<void>;
  /** Lets the run that is going on come to its end. */
  finish(): void;
}

export function coreRetentionRunsContract(what: string, make: () => Promise<CoreRunsWorld>): void {
  describe(`runs of retention at a core (${what})`, () => {
    let world: CoreRunsWorld;
    let core: CoreRetention;
    beforeAll(async () => {
      world = await make();
      ({ core } = world);
    });
    afterAll(() => world.end());

    const daysAgo = (days: number): Date => new Date(Date.now() - days * DAY_MS);
    const limit = (days: number): string => daysAgo(days).toISOString();

    async function ended(id: string): Promise<CoreRetentionRun> {
      const isOver = async (): Promise<boolean> => {
        const run = (await core.runs())?.find((each) => each.id === id);
        return run !== undefined && run.state !== 'running';
      };
      if (!(await isOver())) world.finish();
      await expect.poll(isOver, { timeout: 20_000 }).toBe(true);
      return (await core.runs())?.find((each) => each.id === id) as CoreRetentionRun;
    }

    it('has none at first', async () => {
      expect(await core.runs()).toEqual([]);
    });

    it('begins none for what its policy keeps', async () => {
      const order = { id: randomUUID(), limits: { cot: limit(40) }, maxRows: null };
      expect(await codeOf(core.begin(order))).toBe('invalid');
      await core.changePolicy({ cot: 30 });
      expect(await codeOf(core.begin({ ...order, limits: { cot: limit(20) } }))).toBe('invalid');
      expect(await codeOf(core.begin({ ...order, limits: { geochat: limit(40) } }))).toBe('invalid');
      expect(await core.runs()).toEqual([]);
    });

    it('deletes what is older than the limit, with or without a schedule, and tells of it', async () => {
      await core.changePolicy({ cot: 30 });
      await world.addEvents([10, 35, 50, 60, 70].map(daysAgo));
      const order = { id: randomUUID(), limits: { cot: limit(40) }, maxRows: null };
      const begun = await core.begin(order);
      expect(begun).toMatchObject({ id: order.id, trigger: 'order', limits: order.limits });
      isPlain(begun);
      const run = await ended(order.id);
      expect(run).toMatchObject({ state: 'done', rows: { cot: 3 }, included: { cot: 0, files: 0 }, error: null });
      expect(Date.parse(run.finishedAt ?? '')).toBeGreaterThanOrEqual(Date.parse(run.startedAt));
      isPlain(run);
    });

    it('is the same run when it is ordered again', async () => {
      await core.changeSchedule(DEFAULT_SCHEDULE);
      await world.addEvents([80, 90].map(daysAgo));
      const order = { id: randomUUID(), limits: { cot: limit(40) }, maxRows: 2 };
      await core.begin(order);
      const first = await ended(order.id);
      const again = await core.begin(order);
      expect([again.id, again.startedAt, again.rows]).toEqual([order.id, first.startedAt, { cot: 2 }]);
      const runs = (await core.runs()) ?? [];
      expect(runs.filter(({ id }) => id === order.id)).toHaveLength(1);
      expect(runs[0]?.id).toBe(order.id);
      await core.changeSchedule(NEVER);
    });

    it('ends with an error before it deletes more than was confirmed', async () => {
      await world.addEvents([80, 90, 100].map(daysAgo));
      const order = { id: randomUUID(), limits: { cot: limit(40) }, maxRows: 2 };
      await core.begin(order);
      const run = await ended(order.id);
      expect([run.state, run.error]).toEqual(['failed', expect.stringContaining('2')]);
      expect(run.rows.cot ?? 0).toBeLessThanOrEqual(2);
    });
  });
}

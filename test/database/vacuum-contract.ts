// What VacuumFacts and CoreVacuum must do together, held against the fake and against a real PostgreSQL.

import { randomUUID } from 'node:crypto';
import { beforeEach, describe, expect, it } from 'vitest';
import type { CoreVacuum, VacuumFacts, VacuumMarks, VacuumMode, VacuumOrder } from '../../shared/database/port.ts';

export interface VacuumWorld {
  facts: VacuumFacts;
  vacuum: CoreVacuum;
  /** One that waits for its lock until a test lets it go, however slow the machine is. */
  patient: CoreVacuum;
  /** A table of which half the rows were deleted; another one of that name goes. */
  make: (table: string) => Promise<void>;
  drop: (table: string) => Promise<void>;
  /** A session of that name reads the table in a transaction that stays open until it is let go. */
  hold: (table: string, application: string) => Promise<() => Promise<void>>;
  /** The statement of that job ends by itself: by its work, or by the end of its patience. */
  ended: (job: string) => Promise<void>;
  /** The server crashes and comes back. */
  crash: () => Promise<void>;
}

export const ODD_NAME = 'we ird."Ta\'ble';
const TABLE = 'vacuumed';

export function vacuumContract(what: string, world: () => VacuumWorld): void {
  const marksOf = async (table = TABLE): Promise<VacuumMarks> => {
    const marks = await world().facts.marks('public', table);
    if (marks === undefined) throw new Error(`no table ${table}`);
    return marks;
  };
  async function orderOf(mode: VacuumMode, table = TABLE): Promise<VacuumOrder> {
    return { job: randomUUID(), mode, schema: 'public', table, oid: (await marksOf(table)).oid };
  }
  async function carriedOut(order: VacuumOrder): Promise<void> {
    await world().vacuum.begin(order);
    await world().ended(order.job);
  }

  describe(`a vacuum (${what})`, () => {
    beforeEach(() => world().make(TABLE));

    it.each([TABLE, ODD_NAME])('in full writes the table %s anew, smaller, and it is the same table', async (table) => {
      const { facts, vacuum, make } = world();
      await make(table);
      const order = await orderOf('full', table);
      const before = await marksOf(table);
      expect(await marksOf(table)).toEqual(before);
      await carriedOut(order);
      expect(await facts.statement(order.job)).toEqual({ state: 'ended', error: null });
      const after = await marksOf(table);
      expect(after).toMatchObject({ oid: before.oid, vacuums: before.vacuums, dead_tuples: 0 });
      expect(after.filenode).not.toBe(before.filenode);
      expect(after.bytes).toBeLessThan(before.bytes);
      expect(await vacuum.settle(order.job)).toBeNull();
    });

    it.each([TABLE, ODD_NAME])('of the usual kind leaves the files of %s and is counted', async (table) => {
      await world().make(table);
      const order = await orderOf('standard', table);
      const before = await marksOf(table);
      await carriedOut(order);
      const { oid, filenode, vacuums } = before;
      expect(await marksOf(table)).toMatchObject({ oid, filenode, vacuums: vacuums + 1, dead_tuples: 0 });
      expect(await world().vacuum.settle(order.job)).toBeNull();
    });

    it('knows the tables, the largest first, and what each would give back', async () => {
      const tables = await world().facts.tables();
      expect(tables).toEqual(tables.toSorted((a, b) => b.bytes - a.bytes));
      const { bytes, dead_tuples } = await marksOf();
      const found = tables.find(({ table }) => table === TABLE);
      expect(found).toMatchObject({ schema: 'public', bytes, dead_tuples, allowed: true, elsewhere: false });
      expect(found?.reclaimable_bytes).toBeGreaterThan(bytes / 5);
      expect(found?.reclaimable_bytes).toBeLessThan(bytes * 0.8);
    });

    it('shows how it ended until that was taken, and nothing of a job that never was', async () => {
      const { facts, vacuum } = world();
      const order = await orderOf('full');
      expect(await facts.statement(order.job)).toBeUndefined();
      expect(await vacuum.settle(order.job)).toBeNull();
      await carriedOut(order);
      expect(await facts.statement(order.job)).toEqual({ state: 'ended', error: null });
      expect(await facts.statement(order.job.slice(0, -1))).toBeUndefined();
      expect(await facts.statement(randomUUID())).toBeUndefined();
      await vacuum.settle(order.job);
      expect(await facts.statement(order.job)).toBeUndefined();
    });

    it('gives up when somebody holds the table, names who, and has changed nothing', async () => {
      const { facts, vacuum, hold, ended } = world();
      const order = await orderOf('full');
      const before = await marksOf();
      expect(await facts.holders('full', 'public', TABLE)).toEqual([]);
      const release = await hold(TABLE, 'a long report');
      try {
        const [holder, ...others] = await facts.holders('full', 'public', TABLE);
        expect(others).toEqual([]);
        expect(holder).toMatchObject({
          application: 'a long report',
          pid: expect.any(Number),
          user: expect.any(String),
        });
        expect(Number.isNaN(Date.parse(holder?.since ?? ''))).toBe(false);
        await vacuum.begin(order);
        await ended(order.job);
        expect(await facts.statement(order.job)).toEqual({ state: 'ended', error: '55P03' });
        expect(await marksOf()).toEqual(before);
        expect(await vacuum.settle(order.job)).toMatch(/lock timeout/);
      } finally {
        await release();
      }
    });

    it('runs once for each job: a second one is refused and the first goes on', async () => {
      const { facts, patient, hold, ended } = world();
      const order = await orderOf('full');
      const release = await hold(TABLE, 'a reader');
      try {
        await patient.begin(order);
        const running = await facts.statement(order.job);
        expect(running).toMatchObject({ state: 'running', percent: null });
        await expect(patient.begin(order)).rejects.toMatchObject({ code: 'conflict' });
        expect(await facts.statement(order.job)).toMatchObject({
          state: 'running',
          pid: (running as { pid: number }).pid,
        });
      } finally {
        await release();
      }
      await ended(order.job);
      await patient.settle(order.job);
    });

    it('begins again under the same job once it has ended, and shows the later outcome', async () => {
      const { facts, vacuum, make } = world();
      await make(ODD_NAME);
      const first = await orderOf('full');
      await carriedOut(first);
      const second = { ...(await orderOf('standard', ODD_NAME)), job: first.job };
      const { vacuums } = await marksOf(ODD_NAME);
      await carriedOut(second);
      expect(await facts.statement(first.job)).toEqual({ state: 'ended', error: null });
      expect((await marksOf(ODD_NAME)).vacuums).toBe(vacuums + 1);
      await vacuum.settle(first.job);
      expect(await facts.statement(first.job)).toBeUndefined();
    });

    it('refuses a table that has gone since, or was made anew', async () => {
      const { facts, vacuum, make, drop } = world();
      const order = await orderOf('full');
      await make(TABLE);
      const before = await marksOf();
      expect(before.oid).not.toBe(order.oid);
      await expect(vacuum.begin(order)).rejects.toMatchObject({
        code: 'upstream',
        message: expect.stringContaining(TABLE),
      });
      expect(await marksOf()).toEqual(before);
      await drop(TABLE);
      expect(await facts.marks('public', TABLE)).toBeUndefined();
      expect(await facts.holders('full', 'public', TABLE)).toEqual([]);
      await expect(vacuum.begin(order)).rejects.toMatchObject({
        code: 'upstream',
        message: expect.stringContaining(TABLE),
      });
      expect(await facts.statement(order.job)).toBeUndefined();
    });

    it('is gone with a server that crashes, its table as it was', async () => {
      const { facts, vacuum, hold, crash } = world();
      const order = await orderOf('full');
      const { oid, filenode, vacuums, bytes } = await marksOf();
      const { started_at: started, max_wal_bytes: wal } = await facts.server();
      expect(wal).toBeGreaterThan(1e6);
      const release = await hold(TABLE, 'a reader');
      await vacuum.begin(order);
      await crash();
      expect(await facts.statement(order.job)).toBeUndefined();
      expect(await marksOf()).toMatchObject({ oid, filenode, vacuums, bytes });
      expect(Date.parse((await facts.server()).started_at)).toBeGreaterThanOrEqual(Date.parse(started));
      await release();
      await vacuum.settle(order.job);
      await carriedOut(order);
      expect((await marksOf()).filenode).not.toBe(filenode);
      await vacuum.settle(order.job);
    });
  });
}

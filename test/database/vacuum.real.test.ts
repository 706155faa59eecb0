// The vacuum on a real PostgreSQL: the contract, who holds a table, and what is seen of a statement that goes on.

import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { connect } from '@holdfast/kit/postgres';
import { Secret } from '@holdfast/kit/secret';
import type { CoreVacuum, VacuumMode, VacuumOrder, VacuumStatement } from '../../shared/database/port.ts';
import { coreVacuum } from '../../shared/database/vacuum/statement.ts';
import { eventually, home, newStack, query, readerUrl, stop, type TestStack } from '../e2e/embedded/embedded.ts';
import { vacuumContract } from './vacuum-contract.ts';
import { vacuumEstimates } from './vacuum-estimates.ts';
import { readerOf, realVacuum, type RealVacuum } from './vacuum-world.ts';

let stack: TestStack;
let world: RealVacuum;
const silent = { info: () => undefined, warn: () => undefined, error: () => undefined };

beforeAll(async () => {
  stack = await newStack();
  expect((await stack.start()).code).toBe(0);
  world = realVacuum(stack.file().database, readerUrl(stack));
});
afterAll(async () => {
  await world?.end();
  await stop(stack.data);
});

vacuumContract('in PostgreSQL', () => world);
vacuumEstimates(() => world);

async function orderOf(mode: VacuumMode, table: string, schema = 'public'): Promise<VacuumOrder> {
  const marks = await world.facts.marks(schema, table);
  return { job: randomUUID(), mode, schema, table, oid: marks?.oid ?? 0 };
}

const as = (url: string | undefined): CoreVacuum =>
  coreVacuum({ url: url === undefined ? url : new Secret(url), log: silent });

describe('who holds a table', () => {
  const names = async (mode: VacuumMode): Promise<string[]> =>
    (await world.facts.holders(mode, 'public', 'held')).map(({ application }) => application);

  it('is whoever reads it for FULL, and only who locks it for the usual kind, the longest first', async () => {
    await world.make('held');
    await world.sql`CREATE INDEX held_note ON held (note)`;
    const letGo = [
      await world.holding('SELECT count(*) FROM held', 'first reader'),
      await world.holding('DELETE FROM held WHERE id = 1', 'writer'),
      await world.holding('SELECT pg_advisory_lock(1)', 'bystander'),
    ];
    try {
      expect(await names('full')).toEqual(['first reader', 'writer']);
      expect(await names('standard')).toEqual([]);
    } finally {
      for (const release of letGo) await release();
    }
    const release = await world.holding('ALTER INDEX held_note SET (fillfactor = 80)', 'an index is changed');
    try {
      expect(await names('standard')).toEqual(['an index is changed']);
      expect(await names('full')).toEqual(['an index is changed']);
    } finally {
      await release();
    }
    expect(await names('full')).toEqual([]);
  });

  it('is no statement of a vacuum job, but whoever only calls itself so', async () => {
    await world.make('held');
    const order = await orderOf('standard', 'held');
    const reader = connect(new Secret(readerUrl(stack)), { name: `holdfast-vacuum ${order.job}`, max: 1 });
    await reader.begin(async (sql) => {
      await sql`SELECT count(*) FROM held`;
      expect(await names('full')).toEqual([`holdfast-vacuum ${order.job}`]);
      expect(await world.facts.statement(order.job)).toBeUndefined();
      await world.patient.begin({ ...order, mode: 'full' });
      const waits = async () => {
        const statement = await world.facts.statement(order.job);
        return statement?.state === 'running' && statement.waits;
      };
      await eventually('the vacuum waits', waits, 20_000);
      expect(await names('full')).toEqual([`holdfast-vacuum ${order.job}`]);
    });
    await world.ended(order.job);
    await world.patient.settle(order.job);
    await reader.end({ timeout: 1 });
  });
});

describe('the outcome of a statement of another process', () => {
  it('is read, and hidden before the next one', async () => {
    await world.make('elsewhere');
    const order = await orderOf('standard', 'elsewhere');
    await world.vacuum.begin(order);
    await world.ended(order.job);
    expect(await world.facts.statement(order.job)).toEqual({ state: 'ended', error: null });
    expect(await world.patient.settle(order.job)).toBeNull();
    expect(await world.facts.statement(order.job)).toBeUndefined();
    await world.patient.begin({ ...order, mode: 'full' });
    await world.ended(order.job);
    expect(await world.facts.statement(order.job)).toEqual({ state: 'ended', error: null });
    await world.vacuum.settle(order.job);
    expect(await world.facts.statement(order.job)).toBeUndefined();
  });
});

describe('a FULL that waits for a reader', () => {
  it('lets the others through again after its 5 s', async () => {
    await world.make('queued');
    const release = await world.hold('queued', 'a reader');
    const order = await orderOf('full', 'queued');
    await world.vacuum.begin(order);
    expect(await query(stack.file().database, 'SELECT count(*)::int AS n FROM queued')).toEqual([{ n: 10_000 }]);
    await world.ended(order.job);
    expect(await world.facts.statement(order.job)).toEqual({ state: 'ended', error: '55P03' });
    const [, fields] = world.logged.findLast(([event]) => event === 'vacuum.statement_ended') ?? [];
    expect(fields).toMatchObject({ table: 'queued', mode: 'full', error: expect.stringContaining('lock timeout') });
    expect(fields?.['seconds']).toBeGreaterThanOrEqual(4.9);
    expect(fields?.['seconds']).toBeLessThan(20);
    await release();
    await world.vacuum.settle(order.job);
  });

  it('is looked at without waiting for a lock', async () => {
    await world.make('queued');
    const release = await world.hold('queued', 'a reader');
    const order = await orderOf('full', 'queued');
    await world.patient.begin(order);
    const tables = await world.facts.tables();
    expect(tables.map(({ table }) => table)).toContain('queued');
    expect((await world.facts.marks('public', 'queued'))?.bytes).toBeGreaterThan(1e6);
    expect(await world.facts.statement(order.job)).toMatchObject({ state: 'running' });
    await release();
    await world.ended(order.job);
    expect(await world.patient.settle(order.job)).toBeNull();
  });
});

describe('a statement that goes on', () => {
  beforeAll(async () => {
    await world.counted(
      'CREATE TABLE large (id bigint, note text) WITH (autovacuum_enabled = false)',
      'INSERT INTO large SELECT n, repeat(md5(n::text), 8) FROM generate_series(1, 250000) n',
      'CREATE INDEX large_note ON large (note)',
      'CREATE INDEX large_id ON large (id)',
      'DELETE FROM large WHERE id % 3 = 0',
    );
  });

  type Running = Extract<VacuumStatement, { state: 'running' }>;

  /** What was seen of it, from its begin to its end. */
  async function watched(mode: VacuumMode): Promise<Running[]> {
    const seen: Running[] = [];
    const order = await orderOf(mode, 'large');
    await world.vacuum.begin(order);
    const isOver = async (): Promise<boolean> => {
      const statement = await world.facts.statement(order.job);
      if (statement?.state === 'running') seen.push(statement);
      return statement?.state !== 'running';
    };
    await eventually('the statement ends', isOver, 60_000);
    expect(await world.vacuum.settle(order.job)).toBeNull();
    expect(new Set(seen.map(({ pid }) => pid)).size).toBeLessThan(2);
    return seen;
  }

  const percentages = (seen: Running[], phase: string) =>
    seen.filter((each) => each.phase === phase && each.percent !== null).map(({ percent }) => percent ?? -1);

  it('is shown with its phase, and with a percentage where PostgreSQL counts', async () => {
    await world.sql`ALTER ROLE CURRENT_USER IN DATABASE cot SET vacuum_cost_delay = '2ms'`;
    let scanned: number[] = [];
    for (let time = 0; time < 10 && scanned.length < 2; time++) {
      await world.sql`DELETE FROM large WHERE id % 30 = ${time * 3 + 1}`;
      scanned = percentages(await watched('standard'), 'scanning heap');
    }
    await world.sql`ALTER ROLE CURRENT_USER IN DATABASE cot RESET vacuum_cost_delay`;
    expect(scanned.length).toBeGreaterThan(1);
    expect(scanned).toEqual(scanned.toSorted((a, b) => a - b));
    expect(scanned.every((each) => each >= 0 && each <= 100)).toBe(true);

    const seen: Running[] = [];
    const hasBoth = (): boolean =>
      percentages(seen, 'seq scanning heap').length > 0 && seen.some(({ phase }) => phase === 'rebuilding index');
    for (let time = 0; time < 10 && !hasBoth(); time++) seen.push(...(await watched('full')));
    expect(hasBoth()).toBe(true);
    expect(percentages(seen, 'seq scanning heap').every((each) => each >= 0 && each <= 100)).toBe(true);
    expect(percentages(seen, 'rebuilding index')).toEqual([]);
  });

  it.each([
    ['is killed', 'setInterval(() => {}, 1000)'],
    ['comes to its end', ''],
  ])('goes on when the process that began it %s, and its marks change at its end', async (_, stays) => {
    const order = await orderOf('full', 'large');
    const before = await world.facts.marks('public', 'large');
    const text = `
      import { coreVacuum } from '${home}/shared/database/vacuum/statement.ts';
      import { Secret } from '@holdfast/kit/secret';
      const log = { info() {}, warn() {}, error() {} };
      ${stays};
      await coreVacuum({ url: new Secret(process.env.OWNER), log, lockTimeoutMs: 60_000 }).begin(${JSON.stringify(order)});
      console.log('begun');`;
    const release = await world.hold('large', 'a reader');
    const env = { ...process.env, OWNER: stack.file().database };
    const child = spawn(process.execPath, ['--input-type=module', '-e', text], {
      env,
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    await once(child.stdout, 'data');
    if (stays !== '') child.kill('SIGKILL');
    if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
    expect(await world.facts.statement(order.job)).toMatchObject({ state: 'running' });
    await expect(world.vacuum.begin(order)).rejects.toMatchObject({ code: 'conflict' });
    await release();
    await world.ended(order.job);
    expect(await world.facts.statement(order.job)).toBeUndefined();
    const after = await world.facts.marks('public', 'large');
    expect(after?.oid).toBe(before?.oid);
    expect(after?.filenode).not.toBe(before?.filenode);
    expect(await world.vacuum.settle(order.job)).toBeNull();
  });

  it('tells another process how it ended', async () => {
    const order = await orderOf('standard', 'large');
    await world.vacuum.begin(order);
    await world.ended(order.job);
    expect(await readerOf(readerUrl(stack)).statement(order.job)).toEqual({ state: 'ended', error: null });
    expect(await as(stack.file().database).settle(order.job)).toBeNull();
    await world.vacuum.settle(order.job);
  });

  it('ends with words when its connection is cut, and leaves no outcome', async () => {
    const release = await world.hold('large', 'a reader');
    const order = await orderOf('full', 'large');
    await world.patient.begin(order);
    await world.sql`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = ${`holdfast-vacuum ${order.job}`}`;
    await world.ended(order.job);
    expect(await world.facts.statement(order.job)).toBeUndefined();
    expect(await world.patient.settle(order.job)).toMatch(/^the connection broke: /);
    expect(await world.facts.statement(order.job)).toBeUndefined();
    await release();
  });

  it('runs no more when its connection idles: whoever has begun it has died without closing it', async () => {
    const job = randomUUID();
    const orphan = connect(new Secret(stack.file().database), { name: `holdfast-vacuum ${job}`, max: 1 });
    await orphan`SELECT 1`;
    expect(await world.facts.statement(job)).toMatchObject({ state: 'running' });
    const isGone = async () => (await world.facts.statement(job)) === undefined;
    await eventually('nothing goes on under its name', isGone, 30_000);
    expect(await orphan`SELECT 1 AS one`).toEqual([{ one: 1 }]);
    await orphan.end({ timeout: 1 });
  });

  it('is an error when the table was dropped while it waited', async () => {
    await world.make('dropped');
    const order = await orderOf('standard', 'dropped');
    const release = await world.holding('DROP TABLE dropped', 'somebody who drops it');
    await world.patient.begin(order);
    await release();
    await world.ended(order.job);
    expect(await world.facts.statement(order.job)).toEqual({ state: 'ended', error: '42P01' });
    expect(await world.patient.settle(order.job)).toMatch(/dropped/);
  });
});

describe('who may vacuum', () => {
  const job = randomUUID();
  const order: VacuumOrder = { job, mode: 'full', schema: 'public', table: 'cot_router', oid: 1 };

  it('is nobody without the URL of the owner', async () => {
    const text = "It is not known where the core's database as its owner is. Remedy: set CORE_DATABASE_OWNER_URL.";
    await expect(as(undefined).begin(order)).rejects.toMatchObject({ code: 'unavailable', message: text });
  });

  it('is nobody where the server does not answer or refuses, and no secret is told', async () => {
    const wrong = Object.assign(new URL(stack.file().database), { password: 'not the pass-word' }).href;
    for (const url of ['postgres://nobody:not%20the%20pass-word@127.0.0.1:1/nowhere', wrong]) {
      const error: unknown = await as(url)
        .begin(order)
        .catch((thrown: unknown) => thrown);
      expect(error).toMatchObject({ code: 'unavailable', message: expect.stringContaining('CORE_DATABASE_OWNER_URL') });
      expect(`${String(error)} ${JSON.stringify(error)}`).not.toMatch(/pass-word|pass%20word|postgres:/);
    }
  });

  it('is not who only reads, nor who owns another database', async () => {
    const { oid } = await orderOf('full', 'cot_router');
    const readOnly = as(readerUrl(stack)).begin({ ...order, oid });
    await expect(readOnly).rejects.toMatchObject({
      code: 'upstream',
      message: expect.stringContaining('not its owner'),
    });
    const other = as(stack.file().state_database).begin({ ...order, oid });
    await expect(other).rejects.toMatchObject({
      code: 'upstream',
      message: expect.stringContaining('CORE_DATABASE_URL name different databases'),
    });
    expect(await world.facts.statement(job)).toBeUndefined();
  });
});

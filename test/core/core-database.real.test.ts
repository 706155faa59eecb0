import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { freshConnections, keptDatabase, type RunSql } from '@holdfast/kit/kept-database';
import { connect } from '@holdfast/kit/postgres';
import { Secret } from '@holdfast/kit/secret';
import { coreDatabase } from '../../shared/core/database/database.ts';
import type { CoreDatabase } from '../../shared/core/database/port.ts';
import { stateDatabase } from '../../shared/database/state-database.ts';
import { jobRunTable } from '../../shared/jobs/tables.ts';
import { CORE as PRODUCT } from '../../shared/runtime/both-hosts.ts';
import { newStack, query, readerUrl, stop, type TestStack } from '../e2e/embedded/embedded.ts';
import { AS_WANTED } from '../health/fake-monitored.ts';
import { jobRunsContract } from '../jobs/job-runs-contract.ts';

const CORE = { ...PRODUCT, name: 'test' };

let stack: TestStack;
let core: CoreDatabase;
const owner = <T extends object>(text: string): Promise<T[]> => query<T>(stack.file().database, text);

beforeAll(async () => {
  stack = await newStack();
  expect((await stack.start()).code).toBe(0);
  core = coreDatabase({ run: keptDatabase(new Secret(readerUrl(stack)), CORE) });
  await owner(`
    CREATE TABLE sized (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, note text);
    INSERT INTO sized (note) SELECT repeat(md5(n::text), 200) FROM generate_series(1, 2000) n;
    CREATE INDEX sized_note ON sized (md5(note));
    CREATE SCHEMA other; CREATE TABLE other."Odd ""name" (n int)`);
});
afterAll(() => stop(stack.data));

describe('the reader of the core', () => {
  it('may read every table, also those made later, and write none', async () => {
    const reads = await query<{ count: string }>(readerUrl(stack), 'SELECT count(*) FROM sized');
    expect(reads).toEqual([{ count: '2000' }]);
    for (const text of [
      'DELETE FROM sized',
      'CREATE TABLE mine (n int)',
      'CREATE TEMP TABLE mine (n int)',
      'TRUNCATE sized',
    ])
      await expect(query(readerUrl(stack), text)).rejects.toThrow(/permission denied/);
  });

  it('has no way into our own database', async () => {
    const url = readerUrl(stack).replace(/cot$/, 'holdfast');
    await expect(query(url, 'SELECT 1')).rejects.toThrow(/permission denied for database/);
  });
});

describe('vacuum statistics', () => {
  it('list every user table with its rows, and the settings in force', async () => {
    const { tables, settings } = await core.vacuumStatistics();
    const names = tables.map(({ schema, table }) => `${schema}.${table}`);
    expect(names).toEqual(expect.arrayContaining(['other.Odd "name', 'public.sized', 'public.certificate']));
    const [all] = await query<{ count: number }>(
      stack.file().database,
      'SELECT count(*)::int FROM pg_stat_user_tables',
    );
    expect(names).toHaveLength(all?.count ?? 0);
    expect(tables.find(({ table }) => table === 'sized')).toMatchObject({ live_tuples: 2000, dead_tuples: 0 });
    expect(settings).toEqual(AS_WANTED);
  });

  it('tell when a table was vacuumed, in UTC', async () => {
    const before = Date.now();
    await owner('VACUUM sized');
    await expect
      .poll(async () => (await core.vacuumStatistics()).tables.find(({ table }) => table === 'sized')?.last_vacuum)
      .toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
    const vacuumed = (await core.vacuumStatistics()).tables.find(({ table }) => table === 'sized')?.last_vacuum;
    expect(Math.abs(Date.parse(vacuumed ?? '') - before)).toBeLessThan(10_000);
  });
});

/** Runs a statement in a transaction that stays open while `use` runs, and is rolled back then. */
async function whileItHolds<T>(statement: string, use: () => Promise<T>): Promise<T> {
  const holder = connect(new Secret(stack.file().database), { name: 'holder', max: 1 });
  const { promise: enough, resolve: release } = Promise.withResolvers<void>();
  const { promise: holds, resolve: isHeld } = Promise.withResolvers<void>();
  const transaction = holder
    .begin(async (sql) => {
      await sql.unsafe(statement);
      isHeld();
      await enough;
      throw new Error('rolled back');
    })
    .catch(() => undefined);
  try {
    await holds;
    return await use();
  } finally {
    release();
    await transaction;
    await holder.end({ timeout: 1 });
  }
}

describe('sizes', () => {
  it('are those of PostgreSQL: the whole database, and table, index and TOAST of every user table', async () => {
    const bySql = async (): Promise<{ total: number; live: number }> => {
      const [row] = await owner<{ total: string; live: string }>(`
        SELECT pg_database_size('cot') AS total, sum(pg_total_relation_size(relid)) AS live FROM pg_stat_user_tables`);
      return { total: Number(row?.total), live: Number(row?.live) };
    };
    // The stack works on, and autovacuum with it.
    const apart = async (): Promise<number> => Math.abs((await core.size()).live_bytes - (await bySql()).live);
    await expect.poll(apart, { timeout: 20_000 }).toBe(0);
    const size = await core.size();
    expect(Math.abs(size.total_bytes - (await bySql()).total)).toBeLessThan(1e6);
    expect(size.live_bytes).toBeGreaterThan(500_000);
    expect(size).toMatchObject({ locked_tables: [], archive_mode: 'off', archive_failing: false, read_only: false });
    expect(size.wal_bytes).toBeGreaterThanOrEqual(16 * 1024 ** 2);
    expect(size.max_wal_bytes).toBe(1024 ** 3);
    expect(size.version).toMatch(/^16\./);
  });

  it.each(['LOCK TABLE sized', 'REINDEX INDEX sized_note', 'TRUNCATE sized'])(
    'do not wait for a table that is locked (%s): the catalogue says how large it is',
    async (statement) => {
      await owner('ANALYZE sized');
      const before = await core.size();
      await whileItHolds(statement, async () => {
        const size = await core.size();
        expect(size.locked_tables).toEqual(['public.sized']);
        expect(Math.abs(size.live_bytes - before.live_bytes)).toBeLessThan(before.live_bytes * 0.2);
      });
      expect((await core.size()).locked_tables).toEqual([]);
    },
  );

  it('do not wait behind somebody who waits for such a lock', async () => {
    const waiter = connect(new Secret(stack.file().database), { name: 'waiter', max: 1 });
    const waits = await whileItHolds('SELECT count(*) FROM sized', async () => {
      const waiting = waiter.unsafe('VACUUM FULL sized').catch(() => undefined);
      await delay(200);
      expect((await core.size()).locked_tables).toEqual(['public.sized']);
      return [waiting];
    });
    await waits[0];
    await waiter.end({ timeout: 1 });
  });

  it('do not wait for a lock that is taken while they measure', async () => {
    await owner(
      `DO $many$ BEGIN FOR n IN 1..400 LOOP EXECUTE format('CREATE TABLE many_%s (n int PRIMARY KEY)', n); END LOOP; END $many$`,
    );
    for (let round = 0; round < 4; round++) {
      const measuring = core.size();
      await whileItHolds('LOCK TABLE many_400, many_1, sized', async () => {
        expect((await measuring).total_bytes).toBeGreaterThan(0);
        expect((await core.size()).locked_tables).toContain('public.sized');
      });
    }
  });

  it('say so when the role may not see WAL', async () => {
    const asOwner = coreDatabase({ run: keptDatabase(new Secret(stack.file().database), CORE) });
    expect((await asOwner.size()).wal_bytes).toBeNull();
  });

  it('see that somebody has switched off writing', async () => {
    await owner('ALTER DATABASE cot SET default_transaction_read_only = on');
    const fresh = coreDatabase({ run: keptDatabase(new Secret(readerUrl(stack)), CORE) });
    expect((await fresh.size()).read_only).toBe(true);
    const setBack = connect(new Secret(stack.file().database), { name: 'set back', max: 1 });
    await setBack.begin('READ WRITE', (sql) => sql.unsafe('ALTER DATABASE cot RESET default_transaction_read_only'));
    await setBack.end({ timeout: 1 });
  });
});

describe('the clock', () => {
  it('is that of this machine here', async () => {
    expect(Math.abs((await core.clockMs()) - Date.now())).toBeLessThan(10_000);
    expect(await core.version()).toMatch(/^16\.\d+$/);
  });
});

describe.each([
  [
    'kept connections',
    (url: Secret, ms: number, name: string): RunSql => keptDatabase(url, { ...CORE, name, withinMs: ms }),
  ],
  [
    'fresh connections',
    (url: Secret, ms: number, name: string): RunSql => freshConnections(url, { ...CORE, name, withinMs: ms }),
  ],
])('%s', (_, make) => {
  const url = (): Secret => new Secret(readerUrl(stack));

  it('give up what takes too long, and go on', async () => {
    const run = make(url(), 400, 'patient');
    await expect(run((sql) => sql`SELECT pg_sleep(20)`)).rejects.toThrow(
      /took longer than .* for one query|did not answer within/,
    );
    expect(await run((sql) => sql`SELECT 1 AS one`)).toEqual([{ one: 1 }]);
  });

  it('give up a server that is frozen, in time, and go on when it thaws', async () => {
    const run = make(url(), 500, 'frozen');
    expect(await run((sql) => sql`SELECT 1 AS one`)).toEqual([{ one: 1 }]);
    const backends = await owner<{ pid: number }>("SELECT pid FROM pg_stat_activity WHERE application_name = 'frozen'");
    const frozen = [stack.pid('database'), ...backends.map(({ pid }) => pid)];
    for (const pid of frozen) process.kill(pid, 'SIGSTOP');
    try {
      await expect(run((sql) => sql`SELECT 1 AS one`)).rejects.toThrow(
        /core's database did not answer|does not answer/i,
      );
    } finally {
      for (const pid of frozen) {
        try {
          process.kill(pid, 'SIGCONT');
        } catch {
          // The backend has ended meanwhile.
        }
      }
    }
    await expect.poll(() => run((sql) => sql`SELECT 1 AS one`)).toEqual([{ one: 1 }]);
  });

  it('say which server does not answer, and which variable is missing', async () => {
    const closed = make(new Secret('postgres://a:secretword@127.0.0.1:1/b'), 2000, 'closed');
    const failure = await closed((sql) => sql`SELECT 1`).catch((error: unknown) => error);
    expect(failure).toMatchObject({
      code: 'unavailable',
      message: expect.stringMatching(/^The core's database does not answer: .*ECONNREFUSED/),
    });
    expect(String(failure)).not.toContain('secretword');
  });
});

it('without a URL the variable is named', async () => {
  const nowhere = keptDatabase(undefined, CORE);
  await expect(nowhere((sql) => sql`SELECT 1`)).rejects.toThrow(/set CORE_DATABASE_URL/);
});

describe('our own database', () => {
  it('takes one row, however often it is written', async () => {
    const state = stateDatabase(keptDatabase(new Secret(stack.file().state_database), CORE));
    await state.writeOnce();
    await state.writeOnce();
    expect(await query(stack.file().state_database, 'SELECT count(*)::int AS rows FROM health_write')).toEqual([
      { rows: 1 },
    ]);
  });
});

jobRunsContract('the table', () => jobRunTable(keptDatabase(new Secret(stack.file().state_database), CORE)));

// Growth from end to end on a real server: what is sampled is what the tables grow by, and who fills them is found in a large table
// without reading it.

import postgres from 'postgres';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { keptDatabase, type RunSql } from '@holdfast/kit/kept-database';
import { Secret } from '@holdfast/kit/secret';
import { coreTables } from '../../packages/core/test/core-tables.ts';
import { coreDatabase } from '../../shared/core/database/database.ts';
import { growthFacts } from '../../shared/database/growth/facts.ts';
import { growthHistoryTable } from '../../shared/database/growth/records.ts';
import { sampleGrowth } from '../../shared/database/growth/sample.ts';
import type { Fillers } from '../../shared/database/port.ts';
import { diskUse } from '../../shared/host/disks.ts';
import { CORE } from '../../shared/runtime/both-hosts.ts';
import { MIGRATIONS } from '../../shared/runtime/migrations/index.ts';

/** Machines that do much else are slow. */
const SLOW = { withinMs: 30_000 };
const tables = coreTables();
const never = new AbortController().signal;
let run: RunSql;
/** One connection, whose statistics are told at once. */
let only: postgres.Sql;
let ours: postgres.Sql;
beforeAll(async () => {
  run = keptDatabase(new Secret(tables.url()), { ...CORE, ...SLOW });
  only = postgres(tables.url(), { max: 1, fetch_types: false, onnotice: () => undefined });
  ours = postgres(tables.url(), { max: 1, fetch_types: false, connection: { search_path: 'ours' } });
  await ours.unsafe('CREATE SCHEMA ours');
  for (const name of ['retention', 'database-care'])
    await ours.unsafe(MIGRATIONS.find((each) => each.name === name)?.sql ?? '');
});
afterAll(() => Promise.all([only.end(), ours.end()]));

const sql = (text: string) => tables.sql.unsafe(text);
/** Text that cannot be made smaller, 32 characters each. */
const noise = (pieces: number): string =>
  `(SELECT string_agg(md5(n || '-' || k), '') FROM generate_series(1, ${pieces}) k)`;
const tableBytes = async (): Promise<number> => {
  const [row] = await sql("SELECT pg_total_relation_size('cot_router')::float8 AS bytes");
  return Number(row?.['bytes']);
};
/** As the statistics have them, which a busy session reports late. */
const liveRows = async (): Promise<number> => {
  const [row] = await sql("SELECT pg_stat_get_live_tuples('cot_router'::regclass)::float8 AS rows");
  return Number(row?.['rows']);
};
const IN_TIME = { interval: 100, timeout: 30_000 };
/** Bytes that the table took for it. */
async function feed(uid: string, type: string, count: number, detail: string): Promise<number> {
  const before = await tableBytes();
  await sql(`
    INSERT INTO cot_router (uid, cot_type, how, start, "time", stale, point_hae, point_ce, point_le, detail, servertime, event_pt)
    SELECT '${uid}', '${type}', 'm-g', now(), now(), now(), 10.5, 5, 5, ${detail},
      now() - interval '590 s' + n * interval '590 s' / ${count}, point(7 + n / 1e5, 46) FROM generate_series(1, ${count}) n`);
  return (await tableBytes()) - before;
}

describe('growth', () => {
  it('is sampled as it is, and who fills the database is named with his share of it', async () => {
    const [facts, store, core] = [
      growthFacts(run, SLOW),
      growthHistoryTable((use) => use(ours)),
      coreDatabase({ run }),
    ];
    const data = tables.data();
    const monitored = { wanted: { databaseDirectory: data }, coreDatabase: core, disks: diskUse(() => ['/', data]) };
    const deps = { growthHistory: store, growthFacts: facts, health: { forget: () => undefined }, monitored };
    const clock = Date.parse('2026-05-20T12:00:00.000Z');
    const at = (minutes: number): Date => new Date(clock + minutes * 60_000);
    expect(await sampleGrowth(deps, at(0), never)).toMatchObject({ sampled: true, left_out: {} });
    const contact = (name: string): string => `'<detail><contact callsign="${name}"/><track speed="1.5"/>'`;
    const light = await feed('LIGHT-1', 'a-f-G-U-C', 15_000, `${contact('LIGHT')} || md5(n::text) || '</detail>'`);
    const heavy = await feed('HEAVY-1', 'b-m-p-s-m', 2_000, `${contact('HEAVY')} || ${noise(300)} || '</detail>'`);
    expect(await sampleGrowth(deps, at(1), never)).toMatchObject({ sampled: true, left_out: {}, tables: null });

    const [first, second] = await store.samples(at(0).toISOString());
    expect([first?.at, second?.at]).toEqual([at(0).toISOString(), at(1).toISOString()]);
    const grown = (second?.database_bytes ?? 0) - (first?.database_bytes ?? 0);
    expect(Math.abs(grown - light - heavy) / grown).toBeLessThan(0.05);
    expect(second?.mounts.filter((mount) => mount.holds_database)).toHaveLength(1);
    expect((await store.tables('2026-05-20')).find(({ table }) => table === 'cot_router')).toMatchObject({ rows: 0 });

    await expect.poll(liveRows, IN_TIME).toBeGreaterThanOrEqual(17_000);
    const found = await facts.fillers(600);
    expect(found.uids).toMatchObject([
      { name: 'HEAVY-1', cot_type: 'b-m-p-s-m', callsign: 'HEAVY' },
      { name: 'LIGHT-1', cot_type: 'a-f-G-U-C', callsign: 'LIGHT' },
    ]);
    expect(found.types.map(({ name }) => name)).toEqual(['b-m-p-s-m', 'a-f-G-U-C']);
    expect(Math.abs((found.uids[0]?.share ?? 0) - heavy / (light + heavy))).toBeLessThan(0.05);
    expect(Math.abs(found.bytes / (light + heavy) - 1)).toBeLessThan(0.15);
    expect(Math.abs(found.rows / 17_000 - 1)).toBeLessThan(0.05);
  });

  it('has the size and the rows of every table, also of one that somebody holds', async () => {
    const facts = growthFacts(run);
    // What a session has counted may come after what a vacuum has found: then it counts twice until the next one.
    const found = async (): Promise<number> => {
      await sql('VACUUM ANALYZE cot_router');
      return liveRows();
    };
    await expect.poll(found, IN_TIME).toBe(17_000);
    const [bytes, open] = [await tableBytes(), await facts.tables()];
    expect(open[0]).toEqual({ schema: 'public', table: 'cot_router', bytes, rows: 17_000 });
    expect(open.map((each) => each.bytes)).toEqual(open.map((each) => each.bytes).toSorted((a, b) => b - a));
    const [{ count } = { count: 0 }] = await sql('SELECT count(*)::int AS count FROM pg_stat_user_tables');
    expect(open).toHaveLength(count as number);
    const held = await whileLocked(() => facts.tables());
    const size = held.find(({ table }) => table === 'cot_router')?.bytes ?? 0;
    expect(Math.abs(size / bytes - 1)).toBeLessThan(0.1);
  });

  it('does not wait for who holds the table: what fills it is not known then', async () => {
    const refusal = { code: 'unavailable', message: expect.stringContaining("Couldn't find the largest sources") };
    await whileLocked(() => expect(growthFacts(run).fillers(600)).rejects.toMatchObject(refusal));
  });

  it('says so when the database is away', async () => {
    const nowhere = growthFacts(keptDatabase(new Secret('postgres://nobody:nothing@127.0.0.1:1/x'), CORE));
    await expect(nowhere.tables()).rejects.toMatchObject({ code: 'unavailable' });
    await expect(nowhere.fillers(600)).rejects.toMatchObject({ code: 'unavailable' });
  });
});

async function whileLocked<T>(use: () => Promise<T>): Promise<T> {
  const { promise, resolve } = Promise.withResolvers<T>();
  await only.begin(async (tx) => {
    await tx`LOCK TABLE cot_router IN ACCESS EXCLUSIVE MODE`;
    resolve(await use());
  });
  return promise;
}

describe('in a table of a million events', () => {
  const [OLD, RECENT] = [950_000, 50_000];
  interface Statistics {
    seq_scan: number;
    fetched: number;
    scans: number;
  }
  const statistics = async (): Promise<Statistics> => {
    await only`SELECT pg_stat_force_next_flush()`;
    const [row] = await only<[Statistics]>`
      SELECT seq_scan::float8 AS seq_scan, idx_scan::float8 AS scans,
        (SELECT sum(idx_tup_read) FROM pg_stat_user_indexes WHERE relname = 'cot_router')::float8 AS fetched
      FROM pg_stat_user_tables WHERE relname = 'cot_router'`;
    return row;
  };

  /** Only its rows have parts outside of the table; all the rest is the same for each. */
  const shareOfHeavy = async (): Promise<number> => {
    const [row] = await only<[{ total: number; outside: number }]>`
      SELECT pg_total_relation_size(oid)::float8 AS total, pg_total_relation_size(reltoastrelid)::float8 AS outside
      FROM pg_class WHERE oid = 'cot_router'::regclass`;
    const perRow = (row.total - row.outside) / (OLD + RECENT);
    return (row.outside + (RECENT / 10) * perRow) / (row.outside + RECENT * perRow);
  };

  it('who fills it is found without reading it: one has 70 % of the bytes, another 60 % of the rows', async () => {
    const indexes = await only<{ name: string; definition: string }[]>`
      SELECT indexname AS name, indexdef AS definition FROM pg_indexes
      WHERE tablename = 'cot_router' AND indexname <> 'cot_router_pkey'`;
    const row = `INSERT INTO cot_router (id, uid, cot_type, detail, servertime, event_pt)`;
    for (const statement of [
      'TRUNCATE cot_router CASCADE',
      ...indexes.map(({ name }) => `DROP INDEX ${name}`),
      'ALTER TABLE cot_router ALTER COLUMN detail SET STORAGE EXTERNAL, SET (autovacuum_enabled = false)',
      `${row} SELECT n, 'old-' || n % 1000, 'a-f-G', '<detail/>', now() - interval '2 days', point(1, 1) FROM generate_series(1, ${OLD}) n`,
      `${row} SELECT ${OLD} + n, CASE WHEN n % 10 = 0 THEN 'heavy' WHEN n % 10 < 7 THEN 'often' ELSE 'other-' || n % 1000 END,
        CASE WHEN n % 10 = 0 THEN 'b-i-x-i' ELSE 'a-f-G' END, CASE WHEN n % 10 = 0 THEN repeat('x', 5300) ELSE '<detail/>' END,
        now() - interval '23 hours' + n * interval '23 hours' / ${RECENT}, point(1, 1) FROM generate_series(1, ${RECENT}) n`,
      ...indexes.map(({ definition }) => definition),
    ])
      await only.unsafe(statement);
    const facts = growthFacts((use) => use(only), SLOW);
    const before = await statistics();
    const found: Fillers = await facts.fillers(86_400);
    const after = await statistics();
    expect(after.seq_scan).toBe(before.seq_scan);
    expect(after.scans - before.scans).toBeGreaterThan(100);
    expect(after.fetched - before.fetched).toBeLessThan(20_000);
    expect(found.sampled).toBeLessThanOrEqual(10_000);

    const [heavy, often] = ['heavy', 'often'].map((name) => found.uids.find((each) => each.name === name));
    expect(found.uids[0]).toMatchObject({ name: 'heavy', cot_type: 'b-i-x-i' });
    const truth = await shareOfHeavy();
    expect(Math.abs(truth - 0.7)).toBeLessThan(0.05);
    expect(Math.abs((heavy?.share ?? 0) - truth)).toBeLessThan(0.05);
    expect(Math.abs((often?.rows ?? 0) / found.rows - 0.6)).toBeLessThan(0.05);
    expect(Math.abs(found.rows / RECENT - 1)).toBeLessThan(0.05);
    expect(found.types.map(({ name }) => name)).toEqual(['b-i-x-i', 'a-f-G']);
  });
});

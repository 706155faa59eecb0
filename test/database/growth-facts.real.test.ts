// What fills the core's tables, out of few of their rows: held to the truth of worlds whose every row is known.

import { beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { keptDatabase } from '@holdfast/kit/kept-database';
import { Secret } from '@holdfast/kit/secret';
import { coreTables } from '../../packages/core/test/core-tables.ts';
import { growthFacts } from '../../shared/database/growth/facts.ts';
import type { Filler, Fillers, GrowthFacts } from '../../shared/database/port.ts';
import { CORE } from '../../shared/runtime/both-hosts.ts';

/** Machines that do much else are slow. */
const SLOW = { withinMs: 30_000 };
const tables = coreTables();
let facts: GrowthFacts;
beforeAll(() => {
  facts = growthFacts(keptDatabase(new Secret(tables.url()), { ...CORE, ...SLOW }), SLOW);
});

const sql = (text: string) => tables.sql.unsafe(text);
beforeEach(() => sql('TRUNCATE cot_router, cot_router_chat, resource CASCADE'));

/** So many events, evenly in four fifths of the last `seconds`, until now, so that a slow machine does not lose the first ones; `n` counts from 1. */
const events = (
  count: number,
  seconds: number,
  uid: string,
  more: { id?: string; detail?: string; type?: string } = {},
) =>
  sql(`
    INSERT INTO cot_router (id, uid, cot_type, detail, servertime)
    SELECT ${more.id ?? 'n'}, ${uid}, ${more.type ?? "'a-f-G'"}, ${more.detail ?? "'<detail/>'"},
      now() - interval '${seconds * 0.8} s' + n * interval '${seconds * 0.8} s' / ${count}
    FROM generate_series(1, ${count}) n`);

/** Text that cannot be made smaller, 32 characters each. */
const noise = (pieces: number): string =>
  `(SELECT string_agg(md5(n || '-' || k), '') FROM generate_series(1, ${pieces}) k)`;
const named = (list: readonly Filler[], name: string): Filler | undefined => list.find((each) => each.name === name);
const names = (list: readonly Filler[]): string[] => list.map(({ name }) => name);
/** What one UID has of the rows. */
const rowShare = ({ uids, rows }: Fillers, name: string): number => (named(uids, name)?.rows ?? 0) / rows;
const between = (low: number, value: number | undefined, high: number): void => {
  expect(value).toBeGreaterThanOrEqual(low);
  expect(value).toBeLessThanOrEqual(high);
};

describe('what fills the database', () => {
  it('is not known when it does not come in time', async () => {
    await events(100, 10, "'any'");
    const hasty = growthFacts(keptDatabase(new Secret(tables.url()), CORE), { withinMs: 1 });
    await expect(hasty.fillers(60)).rejects.toMatchObject({
      code: 'unavailable',
      message: expect.stringContaining("largest sources of the core's database within 0.001 s"),
    });
  });

  it('is nothing where nothing came in', async () => {
    await events(100, 10, "'old'");
    await sql("UPDATE cot_router SET servertime = now() - interval '2 hours'");
    expect(await facts.fillers(3600)).toEqual({ seconds: 3600, sampled: 0, rows: 0, bytes: 0, types: [], uids: [] });
  });

  it('is told exactly where few rows came in, with the main type and the callsign of each', async () => {
    await events(300, 600, "'light'", { detail: `'<detail><contact callsign="LIGHT &amp; low"/></detail>'` });
    const heavy = `'<detail><takv os="1"/><contact endpoint="*:-1:stcp" callsign=''HEAVY''/><x>' || ${noise(150)} || '</x></detail>'`;
    await events(100, 600, "'heavy'", {
      id: '1000 + n',
      detail: heavy,
      type: "CASE WHEN n % 4 = 0 THEN 'b-m-p' ELSE 'a-f-A' END",
    });
    await events(1000, 600, "'before'", { id: '2000 + n' });
    await sql("UPDATE cot_router SET servertime = now() - interval '30 minutes' WHERE uid = 'before'");
    const found = await facts.fillers(600);
    expect(found).toMatchObject({ seconds: 600, sampled: 400, rows: 400 });
    expect(found.uids).toMatchObject([
      { name: 'heavy', rows: 100, cot_type: 'a-f-A', callsign: 'HEAVY' },
      { name: 'light', rows: 300, cot_type: 'a-f-G', callsign: 'LIGHT & low' },
    ]);
    expect(names(found.types)).toEqual(
      ['a-f-A', 'b-m-p', 'a-f-G'].toSorted((a, b) => bytesOf(found, b) - bytesOf(found, a)),
    );
    expect(found.uids.reduce((sum, { share }) => sum + share, 0)).toBeCloseTo(1);
    expect(found.uids.reduce((sum, { bytes }) => sum + bytes, 0)).toBeCloseTo(found.bytes, -1);
  });
  const bytesOf = ({ types }: Fillers, name: string): number => named(types, name)?.bytes ?? 0;

  it('counts what is stored, also outside of the row, and its share of the indexes', async () => {
    await sql('ALTER TABLE cot_router ALTER COLUMN detail SET STORAGE EXTERNAL');
    await events(500, 600, "'x'", { detail: "repeat('x', 20000)" });
    await sql('ALTER TABLE cot_router ALTER COLUMN detail SET STORAGE EXTENDED');
    // Its share of the indexes is by the number of rows that statistics have, which come a little later: after an
    // analysis of the server's own they would count twice.
    await expect
      .poll(
        async () => {
          await sql('ANALYZE cot_router');
          return sql("SELECT pg_stat_get_live_tuples('cot_router'::regclass)::int AS rows");
        },
        { timeout: 60_000, interval: 500 },
      )
      .toMatchObject([{ rows: 500 }]);
    const [{ bytes } = { bytes: 0 }] = await sql("SELECT pg_total_relation_size('cot_router')::float8 AS bytes");
    between((bytes as number) * 0.85, (await facts.fillers(600)).bytes, (bytes as number) * 1.15);
  });

  it('names chat by who sent it, and files as such by who brought them', async () => {
    await events(1000, 600, "'x'");
    await sql(`
      INSERT INTO cot_router_chat (id, uid, cot_type, detail, servertime, sender_callsign)
      SELECT 5000 + n, 'GeoChat.CHATTER.All Chat Rooms.' || n, 'b-t-f', ${noise(40)}, now(), 'Chatter'
      FROM generate_series(1, 1000) n;
      INSERT INTO resource (data, name, creatoruid, submissiontime)
      SELECT decode(repeat(md5(n::text), 100000), 'hex'), 'file', 'BRINGER', now() FROM generate_series(1, 5) n`);
    const { uids, types } = await facts.fillers(600);
    expect(names(uids)).toEqual(['BRINGER', 'CHATTER', 'x']);
    expect(names(types)).toEqual(['files', 'b-t-f', 'a-f-G']);
    expect(named(uids, 'CHATTER')).toMatchObject({ rows: 1000, cot_type: 'b-t-f', callsign: 'Chatter' });
    expect(named(uids, 'BRINGER')).toMatchObject({ rows: 5, cot_type: 'files', callsign: null });
    between(8e6, named(types, 'files')?.bytes, 8.1e6);
  });

  it('is bounded and harmless, whatever was sent', async () => {
    const odd = [
      `repeat('u', 10000)`,
      `E'a"b\\\\c''d'`,
      `E'line\\nend\\x07\\u202Eleft'`,
      `'<script>'`,
      `'__proto__'`,
      `''`,
    ];
    for (const [index, uid] of odd.entries())
      await events(10, 600, uid, {
        id: `${index * 100} + n`,
        type: "CASE WHEN n < 5 THEN repeat('t', 3000) END",
        detail: `'<contact callsign="' || repeat('c', 5000) || E'\\n"/>'`,
      });
    const { uids, types } = await facts.fillers(600);
    expect(names(uids).toSorted()).toEqual(
      [`${'u'.repeat(197)}...`, `a"b\\c'd`, 'line end??left', '<script>', '__proto__', '(none)'].toSorted(),
    );
    expect(types.map(({ name, rows }) => [name, rows])).toEqual([
      ['(none)', 36],
      [`${'t'.repeat(197)}...`, 24],
    ]);
    for (const { callsign } of uids) expect(callsign).toBe(`${'c'.repeat(197)}...`);
  });

  it('shows the ten largest of many', async () => {
    await events(2000, 600, "'u' || sqrt(n)::int");
    const { uids, types, rows } = await facts.fillers(600);
    expect([uids.length, types.length, rows]).toEqual([10, 1, 2000]);
    expect(uids.map(({ bytes }) => bytes)).toEqual(uids.map(({ bytes }) => bytes).toSorted((a, b) => b - a));
  });
});

describe('what fills the database, out of a sample', () => {
  const ROWS = 20_000;
  const mixed = "CASE WHEN n % 10 < 7 THEN 'seven' ELSE 'three' END";

  it('is right where ids have no gaps, and where the beat of the senders is that of the sample', async () => {
    await events(ROWS, 600, `CASE WHEN n % ${ROWS / 500} < ${ROWS / 1000} THEN 'one' ELSE 'two' END`);
    const found = await facts.fillers(600);
    between(5_000, found.sampled, 10_000);
    between(ROWS * 0.95, found.rows, ROWS * 1.05);
    between(0.43, rowShare(found, 'one'), 0.57);
  });

  it.each([
    ['most of them are those of chat', 'n * 40'],
    ['they have holes of many sizes', 'n + (n / 2000) * 200000 + (n / 300) * 900'],
    ['the sequence was set far ahead', `CASE WHEN n < ${ROWS / 2} THEN n ELSE n + 5000000000 END`],
    ['they do not ascend exactly with the time', 'n + (n * 7919 % 400)* 100000 / 100000 + n * 400'],
    ['a few stray ones lie far away', `CASE WHEN n % 1000 = 0 THEN n * 100000000::bigint ELSE n END`],
  ])('is right although ids have gaps: %s', async (_, id) => {
    await events(ROWS, 600, mixed, { id });
    const found = await facts.fillers(600);
    between(0.65, rowShare(found, 'seven'), 0.75);
    // Of few rows in many pieces the estimate is too large.
    between(ROWS * 0.85, found.rows, ROWS * 1.35);
    between(1_000, found.sampled, 10_000);
  });

  it('is right although most rows were deleted, at random and in one piece', async () => {
    await events(ROWS * 2, 600, mixed);
    await sql(`DELETE FROM cot_router WHERE hashint8(id) % 10 <> 0 AND id < 30000 OR id BETWEEN 32000 AND 36000`);
    const [{ rows } = { rows: 0 }] = await sql('SELECT count(*)::float8 AS rows FROM cot_router');
    const found = await facts.fillers(600);
    between(0.6, rowShare(found, 'seven'), 0.8);
    between((rows as number) * 0.85, found.rows, (rows as number) * 1.15);
  });

  it('does not count what came in before', async () => {
    await events(ROWS, 600, `CASE WHEN n > ${ROWS / 2} THEN 'new' ELSE 'old' END`);
    const found = await facts.fillers(240);
    between(0.95, rowShare(found, 'new'), 1);
    between((ROWS / 2) * 0.9, found.rows, (ROWS / 2) * 1.05);
  });

  it('shows a burst', async () => {
    await events(ROWS, 600, `CASE WHEN n BETWEEN 7000 AND 17000 THEN 'burst' ELSE 'u' || n % 1000 END`);
    const found = await facts.fillers(600);
    expect(found.uids[0]?.name).toBe('burst');
    between(0.45, found.uids[0]?.share, 0.55);
  });
});

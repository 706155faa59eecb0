// What a table would give back, said beforehand, against what VACUUM FULL then gives back.

import { describe, expect, it } from 'vitest';
import type { RealVacuum } from './vacuum-world.ts';

/**
 * Measured on PostgreSQL 15 and 16: at most 3.5 % of the table's size off, over all shapes here and more, most below 1 %. Rows of a random
 * width, the sample of the statistics and the fill of pages each add about one; this lets a chance pass, and none of the ways in which such a
 * formula goes wrong (without looking at the pieces of TOAST it was 31 %).
 */
const OFF_AT_MOST = 0.1;

const COT_ROWS = 20_000;
const COT = `
  INSERT INTO cot_router (uid, cot_type, how, start, "time", stale, servertime, servertime_hour, point_hae, detail, event_pt, groups)
  SELECT 'ANDROID-' || md5((n % 97)::text), (ARRAY['a-f-G-U-C', 'a-f-A-M-H', 'b-t-f', 'b-m-p-s-m'])[1 + n * 7 % 4], 'm-g',
    t, t, t + interval '5 min', t, date_trunc('hour', t), 420.5 + n % 1000 / 7.0,
    '<detail><contact callsign="EAGLE ' || n % 97 || '"/><track course="' || random() * 360 || '"/><remarks>'
      || repeat('x', (random() * 60)::int) || '</remarks></detail>',
    point(7 + random(), 46 + random()), (B'1' || repeat('0', n % 4 * 8)::bit varying)::bit varying
  FROM (SELECT n, timestamptz '2026-01-01' + n * interval '3.7 s' AS t FROM generate_series(1, ${COT_ROWS}) n) x`;

const NULLS = Array.from({ length: 40 }, (_, n) => `c${n} ${['int', 'text', 'timestamptz', 'numeric'][n % 4]}`);
const MOSTLY_NULL = NULLS.map(
  (_, n) => `CASE WHEN random() < 0.1 THEN ${['n', 'md5(n::text)', 'now()', 'n * 1.5'][n % 4]} END`,
);

const unkempt = 'WITH (autovacuum_enabled = false, toast.autovacuum_enabled = false)';
const made = (table: string, columns: string, rows: string): string[] => [
  `DROP TABLE IF EXISTS ${table}`,
  `CREATE TABLE ${table} (${columns}) ${unkempt}`,
  rows,
  `ANALYZE ${table}`,
];
const toasted = (bytes: string): string[] =>
  made(
    'toasted',
    'id int PRIMARY KEY, data bytea',
    `ALTER TABLE toasted ALTER data SET STORAGE EXTERNAL;
     INSERT INTO toasted SELECT n, decode(repeat(md5(n::text), ((${bytes}) / 16)::int), 'hex') FROM generate_series(1, 2000) n`,
  );

const SHAPES: [what: string, table: string, steps: string[]][] = [
  ...[0, 30, 64, 95].map((percent): [string, string, string[]] => [
    `the events without ${percent} % of them`,
    'cot_router',
    [
      'TRUNCATE cot_router CASCADE',
      COT,
      'ANALYZE cot_router',
      `DELETE FROM cot_router WHERE random() < ${percent / 100}`,
    ],
  ]),
  [
    'events of which many came and went',
    'cot_router',
    [
      'TRUNCATE cot_router CASCADE',
      COT,
      COT,
      'DELETE FROM cot_router WHERE random() < 0.6',
      'VACUUM (ANALYZE) cot_router',
      COT,
    ],
  ],
  ['large values', 'toasted', [...toasted('20000'), 'DELETE FROM toasted WHERE id % 3 = 0']],
  [
    'values a little too long for a row, vacuumed',
    'toasted',
    [...toasted('2500'), 'DELETE FROM toasted WHERE id % 3 = 0', 'VACUUM toasted'],
  ],
  ['values of any length', 'toasted', [...toasted('random() * 5000 + 2100'), 'DELETE FROM toasted WHERE id % 2 = 0']],
  [
    'a wide table of many nulls',
    'wide',
    [
      ...made(
        'wide',
        `id int PRIMARY KEY, ${NULLS.join()}`,
        `INSERT INTO wide SELECT n, ${MOSTLY_NULL.join()} FROM generate_series(1, 10000) n; CREATE INDEX ON wide (c1)`,
      ),
      'DELETE FROM wide WHERE random() < 0.4',
    ],
  ],
  [
    'an empty table that was full',
    'emptied',
    [
      ...made('emptied', 'id int PRIMARY KEY', 'INSERT INTO emptied SELECT generate_series(1, 30000)'),
      'DELETE FROM emptied',
    ],
  ],
  ['a tiny table', 'tiny', [...made('tiny', 'id int PRIMARY KEY', 'INSERT INTO tiny VALUES (1), (2)'), 'VACUUM tiny']],
  [
    'indexes of every kind',
    'kinds',
    [
      ...made(
        'kinds',
        'id int PRIMARY KEY, tags text[], k text, t timestamptz, gone text',
        `INSERT INTO kinds SELECT n, ARRAY[md5((n % 100)::text)], md5(n::text), now() + n * interval '1 s', 'gone' FROM generate_series(1, 20000) n;
         ALTER TABLE kinds DROP gone; CREATE INDEX ON kinds USING gin (tags); CREATE INDEX ON kinds USING hash (k);
         CREATE INDEX ON kinds USING brin (t); CREATE INDEX ON kinds (lower(k)); CREATE INDEX ON kinds (t) INCLUDE (k);
         CREATE INDEX ON kinds (k) WHERE id % 10 = 0`,
      ),
      'DELETE FROM kinds WHERE random() < 0.5',
    ],
  ],
];

export function vacuumEstimates(world: () => RealVacuum): void {
  const foundOf = async (name: string) => (await world().facts.tables()).find(({ table }) => table === name);

  async function sizeOf(table: string): Promise<number> {
    const [row] = await world().sql<
      [{ bytes: number }]
    >`SELECT pg_total_relation_size(${table}::text::regclass)::float8 AS bytes`;
    return row.bytes;
  }

  describe('what a FULL would give back', () => {
    it.each(SHAPES)('is known beforehand of %s', async (_, table, steps) => {
      await world().counted(...steps);
      const before = await sizeOf(table);
      const found = await foundOf(table);
      expect(found?.bytes).toBe(before);
      await world().unseen();
      await world().sql.unsafe(`VACUUM FULL ${table}`);
      const error = ((found?.reclaimable_bytes ?? Number.NaN) - (before - (await sizeOf(table)))) / before;
      expect(Math.abs(error)).toBeLessThan(OFF_AT_MOST);
    });

    it('is not known of a table that was never analysed', async () => {
      await world().counted(
        `CREATE TABLE strange (n int) ${unkempt}`,
        'INSERT INTO strange SELECT generate_series(1, 1000)',
        'DELETE FROM strange WHERE n > 10',
      );
      expect(await foundOf('strange')).toMatchObject({ reclaimable_bytes: null, dead_tuples: 990, live_tuples: 10 });
    });

    it('is said of tables and of leaves of parted ones, and of nothing that cannot be vacuumed', async () => {
      await world().counted(
        'CREATE TABLE parted (n int) PARTITION BY LIST (n); CREATE TABLE leaf PARTITION OF parted FOR VALUES IN (1)',
        'CREATE MATERIALIZED VIEW kept AS SELECT 1 AS n; CREATE VIEW seen AS SELECT 1 AS n; CREATE TEMP TABLE passing (n int)',
      );
      const tables = await world().facts.tables();
      const names = tables.map(({ table }) => table);
      expect(names).toEqual(expect.arrayContaining(['leaf', 'kept', 'cot_router']));
      expect(names.filter((name) => ['parted', 'seen', 'passing'].includes(name))).toEqual([]);
      expect(tables.filter(({ schema }) => schema.startsWith('pg_') || schema === 'information_schema')).toEqual([]);
    });
  });
}

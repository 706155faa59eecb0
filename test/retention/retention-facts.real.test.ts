// What a run of retention would delete, in the tables of the embedded core: held to the rules, which are written here once more as
// plain loops over all rows.

import { beforeAll, describe, expect, it } from 'vitest';
import { freshConnections, keptDatabase } from '@holdfast/kit/kept-database';
import { RETAINED, type RetentionLimits } from '@holdfast/kit/retention';
import { Secret } from '@holdfast/kit/secret';
import { coreTables } from '../../packages/core/test/core-tables.ts';
import { countRetentionDays } from '../../shared/retention/count-days.ts';
import { retentionFacts } from '../../shared/retention/facts.ts';
import { retentionHistoryTable } from '../../shared/retention/history-table.ts';
import type { RetentionCore, RetentionFacts } from '../../shared/retention/port.ts';
import { FIGURES, STATE } from '../../shared/runtime/both-hosts.ts';
import { MIGRATIONS } from '../../shared/runtime/migrations/index.ts';
import { expiredByHand, readRows, type Rows } from './fake-retention-by-hand.ts';
import { AT, daysBefore, EXEMPT, LIMITS, TRAFFIC } from './fake-retention-traffic.ts';

const tables = coreTables();
let facts: RetentionFacts;
let rows: Rows;
beforeAll(async () => {
  await tables.sql.unsafe(TRAFFIC);
  // Autovacuum would change the sizes of tables between two looks at them.
  await tables.sql.unsafe('VACUUM (ANALYZE)');
  facts = retentionFacts(keptDatabase(new Secret(tables.url()), FIGURES));
  rows = await readRows(tables.sql);
});

const question = (core: RetentionCore, limits: RetentionLimits, exemptKeywords: readonly string[] = EXEMPT) => ({
  core,
  limits,
  exemptKeywords,
  withinMs: 20_000,
});

/** Each type alone, all, all but missions, and all at other moments. */
const LIMITS_OF: [string, RetentionLimits][] = [
  ...RETAINED.map((type): [string, RetentionLimits] => [type, { [type]: LIMITS[type] }]),
  ['all', LIMITS],
  ['all but missions', { ...LIMITS, missions: undefined } as unknown as RetentionLimits],
  ['missions after all others', { ...LIMITS, missions: AT, cot: daysBefore(80) }],
  ['everything until now', Object.fromEntries(RETAINED.map((type) => [type, AT]))],
  ['nothing so old', Object.fromEntries(RETAINED.map((type) => [type, '2019-01-01T00:00:00.000Z']))],
  ['none', {}],
];

describe.each(['embedded', 'release'] as const)('what a run would delete (%s)', (core) => {
  it.each(LIMITS_OF)('is counted to the row: %s', async (_, limits) => {
    const expired = await facts.expired(question(core, limits));
    expect(expired).toMatchObject(expiredByHand(rows, question(core, limits)));
    expect(Object.keys(expired).toSorted()).toEqual(RETAINED.filter((type) => limits[type] !== undefined).toSorted());
  });

  it.each([[[]], [['keep']], [['photo', "o'neil"]], [['KEEP']]])('spares files by keywords: %j', async (keywords) => {
    const requested = question(core, LIMITS, keywords);
    expect(await facts.expired(requested)).toMatchObject(expiredByHand(rows, requested));
  });

  it.each(LIMITS_OF)('leaves the types that have something older: %s', async (_, limits) => {
    const found = Object.entries(expiredByHand(rows, question(core, limits))).filter(
      ([, { rows: count }]) => count > 0,
    );
    expect(await facts.left(question(core, limits))).toEqual({ left: found.map(([type]) => type), unknown: [] });
  });
});

describe('what a run would delete', () => {
  it('is the same over connections that are made for it, three at most', async () => {
    const run = freshConnections(new Secret(tables.url()), FIGURES);
    let [open, most] = [0, 0];
    const fresh = retentionFacts((use) => {
      most = Math.max(most, (open += 1));
      return run(use).finally(() => (open -= 1));
    });
    const requested = question('embedded', LIMITS);
    expect(await fresh.expired(requested)).toEqual(await facts.expired(requested));
    // The figures are there before their connections are closed, which takes a moment.
    await expect.poll(() => open).toBe(0);
    expect(await fresh.left(requested)).toEqual({ left: RETAINED, unknown: [] });
    expect(most).toBe(3);
  });

  it('says what it takes up: files by their bytes on the disk, the others by the average of their table', async () => {
    const expired = await facts.expired(question('embedded', LIMITS));
    const [size] = await tables.sql<[{ events: number; chat: number }]>`
      SELECT pg_total_relation_size('cot_router') / 18000.0::float8 AS events,
        pg_total_relation_size('cot_router_chat') / 1800.0::float8 AS chat`;
    expect(expired.cot).toMatchObject({ bytes: null, bytesPerRow: size.events });
    expect(expired.geochat?.bytesPerRow).toBe(size.chat);
    const [chat, legacy] = [rows.chat.filter((each) => each.at !== null && each.at < LIMITS.geochat).length, 0];
    expect(expired.geochat?.bytes).toBeGreaterThanOrEqual(Math.round(chat * size.chat) + legacy);
    expect(expired.missions?.bytes).toBeGreaterThan((expired.missions?.included?.cot ?? 0) * size.events);
  });

  it('knows no bytes of a row in a table that is empty and was never analysed', async () => {
    await tables.sql.unsafe(`CREATE SCHEMA fresh; CREATE TABLE fresh.cot_router (LIKE public.cot_router INCLUDING ALL);
      CREATE TABLE fresh.mission_uid (LIKE public.mission_uid INCLUDING ALL)`);
    const url = `${tables.url()}?search_path=fresh`;
    const elsewhere = retentionFacts(keptDatabase(new Secret(url), FIGURES));
    const { cot } = await elsewhere.expired(question('embedded', { cot: AT }));
    expect(cot).toEqual({
      rows: 0,
      atMost: null,
      included: null,
      bytesPerRow: null,
      bytes: null,
      oldest: null,
      newest: null,
    });
  });
});

const pointing = (limits: RetentionLimits) => ({ limits, withinMs: 20_000 });

describe('rows that point at doomed events', () => {
  it('are counted by their tables, whichever way the event goes', async () => {
    const point = (id: number): Promise<unknown> =>
      tables.sql.unsafe(
        `INSERT INTO cot_image (cot_id) VALUES (${id}); INSERT INTO cot_link (containing_event) VALUES (${id}), (${id})`,
      );
    const [event, legacy, young, ofMission] = [13, 7, 17_990, 41];
    for (const id of [event, legacy, young, ofMission]) await point(id);
    await tables.sql.unsafe(`INSERT INTO cot_thumbnail (cot_id) VALUES (${legacy}), (NULL)`);
    expect(await facts.references(pointing({ cot: LIMITS.cot }))).toEqual({ images: 1, thumbnails: 0, links: 2 });
    expect(await facts.references(pointing({ geochat: LIMITS.geochat }))).toEqual({
      images: 1,
      thumbnails: 1,
      links: 2,
    });
    expect(await facts.references(pointing({ missions: LIMITS.missions }))).toMatchObject({ images: 2 });
    expect(await facts.references(pointing(LIMITS))).toEqual({ images: 3, thumbnails: 1, links: 6 });
    expect(await facts.references(pointing({ files: AT }))).toEqual({ images: 0, thumbnails: 0, links: 0 });
  });

  it('are not told when they cannot be counted in time, as where the table of events is locked', async () => {
    await tables.sql.begin(async (holder) => {
      await holder`LOCK TABLE cot_router`;
      expect(await facts.references({ limits: LIMITS, withinMs: 500 })).toBeUndefined();
    });
    expect(await facts.references({ limits: LIMITS, withinMs: 0 })).toBeUndefined();
  });

  it('are none where there are no such tables', async () => {
    await tables.sql.unsafe('DROP TABLE cot_thumbnail, cot_image, cot_link');
    expect(await facts.references(pointing(LIMITS))).toEqual({ images: 0, thumbnails: 0, links: 0 });
  });
});

describe('rows per day', () => {
  it.each(['cot', 'geochat'] as const)(
    'are those of days in UTC, from the first to before the last: %s',
    async (type) => {
      const [from, to] = ['2026-04-10', '2026-04-20'];
      const all =
        type === 'cot'
          ? rows.events.filter((each) => each.type !== null && each.type !== 'b-t-f')
          : [...rows.chat, ...rows.events.filter((each) => each.type === 'b-t-f')];
      const days = all.flatMap(({ at }) => (at === null ? [] : [at.slice(0, 10)]));
      const counted = await facts.perDay(type, from, to);
      expect(counted.map(({ day }) => day)).toEqual(
        [...new Set(days)].filter((day) => day >= from && day < to).toSorted(),
      );
      for (const { day, rows: count } of counted) expect(count).toBe(days.filter((each) => each === day).length);
      expect(await facts.perDay(type, '2020-01-01', '2020-02-01')).toEqual([]);
      expect((await facts.oldestDays())[type]).toBe(days.toSorted()[0]);
    },
  );
});

describe('figures that take too long', () => {
  it('are at most all rows of their tables', async () => {
    const requested = { ...question('embedded', LIMITS), withinMs: 0 };
    const expired = await facts.expired(requested);
    for (const type of RETAINED)
      expect(expired[type]).toMatchObject({ rows: null, included: null, oldest: null, newest: null });
    const { cot, geochat, files, missions } = expired;
    expect([cot, geochat, files, missions].map((each) => each?.atMost)).toEqual([18_000, 1_800, 300, 7]);
    expect(await facts.left(requested)).toEqual({ left: [], unknown: RETAINED });
  });

  it('do not wait for a lock: the catalogue says how many rows there are, and the others are counted', async () => {
    const began = performance.now();
    await tables.sql.begin(async (holder) => {
      await holder`LOCK TABLE cot_router`;
      for (const withinMs of [500, 20_000]) {
        const expiredRows = await facts.expired({ ...question('release', LIMITS), withinMs });
        expect(expiredRows.cot).toMatchObject({
          rows: null,
          atMost: 18_000,
          bytesPerRow: null,
          oldest: null,
          newest: null,
        });
        // Those of one of its two tables alone would be wrong.
        expect(expiredRows.geochat).toMatchObject({ rows: null, oldest: null, newest: null });
        expect(expiredRows.files?.rows).toBe(expiredByHand(rows, question('release', LIMITS)).files?.rows);
      }
      expect(await facts.left({ ...question('release', LIMITS), withinMs: 500 })).toEqual({
        left: ['geochat', 'files', 'missions'],
        unknown: ['cot'],
      });
    });
    expect(performance.now() - began).toBeLessThan(15_000);
    expect(await facts.left(question('release', LIMITS))).toEqual({
      left: RETAINED.filter((type) => type !== 'missionpackages'),
      unknown: [],
    });
  });

  it('keep to their time in all, also where each of two statements of a type takes most of it', async () => {
    await tables.sql.unsafe(`CREATE SCHEMA slow;
      CREATE VIEW slow.cot_router_chat AS SELECT c.* FROM public.cot_router_chat c, pg_sleep(1.6);
      CREATE VIEW slow.cot_router AS SELECT e.* FROM public.cot_router e, pg_sleep(1.6)`);
    const slow = retentionFacts(keptDatabase(new Secret(`${tables.url()}?search_path=slow,public`), FIGURES));
    const query = { ...question('release', { geochat: LIMITS.geochat }), withinMs: 2_000 };
    expect((await slow.expired(query)).geochat).toMatchObject({ rows: null });
  });

  it('say so when the database is away', async () => {
    const nowhere = retentionFacts(keptDatabase(new Secret('postgres://nobody:nothing@127.0.0.1:1/cot'), FIGURES));
    const refusal = { code: 'unavailable', message: expect.stringContaining("The core's database does not answer") };
    await expect(nowhere.expired(question('embedded', LIMITS))).rejects.toMatchObject(refusal);
    await expect(nowhere.left(question('embedded', LIMITS))).rejects.toMatchObject(refusal);
    await expect(nowhere.now()).rejects.toMatchObject(refusal);
  });

  it('leave the clock of the database as it is', async () => {
    expect(Math.abs(Date.parse(await facts.now()) - Date.now())).toBeLessThan(10_000);
  });
});

describe('the days that are remembered', () => {
  it('hold every row that has a time, of both types, and stay right when rows go and come', async () => {
    // Our own tables beside those of the core, which has a table of runs, too.
    const ours = MIGRATIONS.find(({ name }) => name === 'retention')?.sql;
    await tables.sql.unsafe(`CREATE SCHEMA ours; SET LOCAL search_path = ours; ${ours}`);
    const run = keptDatabase(new Secret(`${tables.url()}?search_path=ours`), STATE);
    const schedules = { fault: () => undefined, next: () => [] };
    const now = async () => new Date(Date.parse(AT) + 3_600_000).toISOString();
    const retentionHistory = retentionHistoryTable(run);
    const deps = { retentionFacts: { ...facts, now }, retentionHistory, schedules, timeZone: 'UTC' };
    const held = async (type: 'cot' | 'geochat') =>
      (await retentionHistory.days(type)).days.map(({ day, rows: count }) => ({ day, rows: count }));
    const bothAreRight = async (): Promise<void> => {
      expect(await countRetentionDays(deps, new AbortController().signal)).toMatchObject({ complete: true });
      for (const type of ['cot', 'geochat'] as const)
        expect(await held(type)).toEqual(await facts.perDay(type, '2026-01-01', '2026-06-02'));
    };
    await bothAreRight();
    expect(await held('cot')).toHaveLength(91);
    await tables.sql.unsafe(`
      DELETE FROM cot_router WHERE servertime < '${LIMITS.cot}';
      INSERT INTO cot_router_chat (uid, servertime) SELECT 'new', '${daysBefore(95)}' FROM generate_series(1, 7)`);
    await bothAreRight();
    expect((await held('cot'))[0]?.day).toBe(LIMITS.cot.slice(0, 10));
    expect((await held('geochat'))[0]).toEqual({ day: daysBefore(95).slice(0, 10), rows: 7 });
  });
});

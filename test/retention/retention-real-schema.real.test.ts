// Retention against the tables of a TAK Server release, on PostgreSQL with PostGIS: what was said beforehand, and what the
// statements of such a release then delete.

import postgres from 'postgres';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { keptDatabase } from '@holdfast/kit/kept-database';
import { KEEP_ALL, limitsAt, type Retained } from '@holdfast/kit/retention';
import { Secret } from '@holdfast/kit/secret';
import { type Postgis, postgisMissing, startPostgis } from '../../packages/setup/test/postgis.ts';
import { RELEASE_TABLES, releaseRun } from '../../packages/setup/test/release-tables.ts';
import { coreDatabase } from '../../shared/core/database/database.ts';
import { retentionFacts } from '../../shared/retention/facts.ts';
import { previewRetention } from '../../shared/retention/preview.ts';
import { CORE, FIGURES } from '../../shared/runtime/both-hosts.ts';
import { fakeRetentionHistory } from './fake-retention-history.ts';
import { expiredByHand, goingByHand, idsOf, readRows } from './fake-retention-by-hand.ts';
import { randomWorld } from './fake-retention-random-world.ts';
import { AT, daysBefore, EXEMPT, LIMITS, TRAFFIC } from './fake-retention-traffic.ts';
import { fakeRetention } from './fake-retention.ts';

const title = `retention in the tables of a release, with PostGIS (${postgisMissing ?? 'is there'})`;

describe.skipIf(postgisMissing !== undefined)(title, () => {
  let database: Postgis;
  let owner: postgres.Sql;
  let facts: ReturnType<typeof retentionFacts>;
  const question = { core: 'release', limits: LIMITS, exemptKeywords: EXEMPT, withinMs: 20_000 } as const;

  beforeAll(async () => {
    database = await startPostgis();
    owner = postgres(database.owner, { max: 2, fetch_types: false, onnotice: () => undefined });
    await owner.unsafe(RELEASE_TABLES);
    await owner.unsafe(TRAFFIC);
    await owner.unsafe(`
      UPDATE cot_router SET event_pt = ST_SetSRID(ST_MakePoint(7.1 + id / 1e5, 46.9), 4326), groups = (1::bit(32768))::bit varying;
      UPDATE cot_router_chat SET event_pt = ST_SetSRID(ST_MakePoint(7.1, 46.9), 4326)`);
    facts = retentionFacts(keptDatabase(new Secret(database.reader), FIGURES));
  });
  afterAll(async () => {
    await owner?.end({ timeout: 1 });
    await database?.end();
  });

  /** As the release does it, one statement after the other; nothing of it stays. */
  async function rolledBack(run: Record<string, string>, before = 'SELECT'): Promise<Record<string, number>> {
    const deleted: Record<string, number> = {};
    const undone = new Error('undone');
    await owner
      .begin(async (sql) => {
        await sql.unsafe(before);
        for (const [step, statement] of Object.entries(run)) deleted[step] = (await sql.unsafe(statement)).count;
        throw undone;
      })
      .catch((error: unknown) => {
        if (error !== undone) throw error;
      });
    return deleted;
  }

  it('is what the reference says it is: PostGIS has the points, the reader may only read', async () => {
    const [row] = await owner`SELECT postgis_version() AS version, count(*)::int AS points FROM cot_router
      WHERE geometrytype(event_pt) = 'POINT' AND ST_SRID(event_pt) = 4326`;
    expect(row).toMatchObject({ version: expect.stringMatching(/^3\./), points: 18_000 });
    const reader = postgres(database.reader, { max: 1, fetch_types: false });
    await expect(reader`DELETE FROM cot_router`).rejects.toThrow(/permission denied/);
    await reader.end();
  });

  it('finds what the rules find, row by row', async () => {
    expect(await facts.expired(question)).toMatchObject(expiredByHand(await readRows(owner), question));
  });

  it.each([
    ['all limits', LIMITS, EXEMPT],
    ['missions after all others', { ...LIMITS, missions: AT }, EXEMPT],
    ['everything until now, no keyword', { ...LIMITS, missions: AT, files: AT, cot: AT, geochat: AT }, []],
    [
      'nothing so old',
      { ...LIMITS, missions: daysBefore(91), files: daysBefore(91), cot: daysBefore(91), geochat: daysBefore(91) },
      [],
    ],
  ])('deletes with its own statements exactly what was said: %s', async (_, limits, exemptKeywords) => {
    const reply = await facts.expired({ ...question, limits, exemptKeywords });
    const done = await rolledBack(releaseRun(limits, exemptKeywords));
    expect({
      missions: reply.missions?.rows,
      included: reply.missions?.included,
      files: reply.files?.rows,
      cot: reply.cot?.rows,
      geochat: reply.geochat?.rows,
      missionpackages: reply.missionpackages?.rows,
    }).toEqual({
      missions: done['missions'],
      included: { cot: done['missionEvents'], files: done['missionFiles'] },
      files: done['files'],
      cot: done['cot'],
      geochat: (done['chat'] ?? 0) + (done['legacyChat'] ?? 0),
      missionpackages: 0,
    });
  });

  it('previews a policy to the row, with everything that goes', async () => {
    const retention = fakeRetention(() => new Date(AT));
    retention.files.exemptKeywords = EXEMPT;
    const { retentionFiles } = retention;
    const policy = { ...KEEP_ALL, cot: 30, geochat: 20, files: 30, missions: 45 };
    const deps = { retentionFacts: facts, retentionFiles, retentionHistory: fakeRetentionHistory(() => new Date(AT)) };
    const order = { policy, unit: 'seconds', cutoff: new Date(daysBefore(20)), withinMs: 20_000 } as const;
    const preview = await previewRetention(deps, order);
    const { missionpackages: _, ...limits } = LIMITS;
    expect(preview.limits).toEqual(limits);
    expect(preview.limits).toEqual(limitsAt(policy, new Date(AT)));
    const run = releaseRun(LIMITS, EXEMPT);
    const done = await rolledBack(run);
    const counted = ['missionFiles', 'missionEvents', 'missions', 'files', 'cot', 'chat', 'legacyChat'];
    expect(preview).toMatchObject({ exact: true, rows: counted.reduce((sum, step) => sum + (done[step] ?? 0), 0) });
  });

  it.each([
    ['cot_image', 'INSERT INTO cot_image (cot_id) VALUES (13)', { images: 1, thumbnails: 0, links: 0 }, 'cot'],
    [
      'cot_thumbnail',
      'INSERT INTO cot_thumbnail (cot_id) VALUES (7)',
      { images: 0, thumbnails: 1, links: 0 },
      'legacyChat',
    ],
    [
      'cot_link',
      'INSERT INTO cot_link (containing_event) VALUES (41)',
      { images: 0, thumbnails: 0, links: 1 },
      'missionEvents',
    ],
  ] as const)(
    'fails where a row of %s points at a doomed event, and that was said',
    async (table, statement, reported, step) => {
      await owner.unsafe(statement);
      try {
        expect(await facts.references({ limits: LIMITS, withinMs: 20_000 })).toEqual(reported);
        const { [step]: failing = '' } = releaseRun(LIMITS, EXEMPT) as Record<string, string>;
        await expect(rolledBack({ [step]: failing })).rejects.toMatchObject({ code: '23503', table_name: table });
      } finally {
        await owner.unsafe(`DELETE FROM ${table}`);
      }
    },
  );

  it('does not fail where such rows point at events that are kept', async () => {
    await owner.unsafe('INSERT INTO cot_image (cot_id) VALUES (17990), (NULL)');
    expect(await facts.references({ limits: LIMITS, withinMs: 20_000 })).toEqual({
      images: 0,
      thumbnails: 0,
      links: 0,
    });
    expect((await rolledBack(releaseRun(LIMITS, EXEMPT)))['cot']).toBeGreaterThan(0);
    await owner.unsafe('DELETE FROM cot_image');
  });

  it('counts rows per day, and knows the oldest days', async () => {
    const days = await facts.perDay('cot', '2026-03-01', '2026-07-01');
    const [all] = await owner<[{ rows: number }]>`
      SELECT count(*)::int AS rows FROM cot_router WHERE cot_type <> 'b-t-f' AND servertime IS NOT NULL`;
    expect(days.reduce((sum, { rows }) => sum + rows, 0)).toBe(all.rows);
    expect(await facts.oldestDays()).toEqual({ cot: days[0]?.day, geochat: '2026-03-03' });
  });

  it('answers the questions of health', async () => {
    const run = keptDatabase(new Secret(database.reader), CORE);
    const core = coreDatabase({ run });
    await core.connect();
    const { tables } = await core.vacuumStatistics();
    expect(tables.map(({ table }) => table)).toEqual(
      expect.arrayContaining(['cot_router', 'resource', 'spatial_ref_sys']),
    );
    const size = await core.size();
    expect(size).toMatchObject({ version: expect.stringMatching(`^${database.version}\\.`), locked_tables: [] });
    expect(size.live_bytes).toBeGreaterThan(1e6);
    expect(await core.eventLosses()).toBe('unknown');
    expect(Math.abs((await core.clockMs()) - Date.now())).toBeLessThan(10_000);
  });

  it('leaves nothing once such a run has deleted, and names what it leaves when it has not', async () => {
    expect(await facts.left(question)).toEqual({ left: ['cot', 'geochat', 'files', 'missions'], unknown: [] });
    for (const statement of Object.values(releaseRun(LIMITS, EXEMPT))) await owner.unsafe(statement);
    expect(await facts.left(question)).toEqual({ left: [], unknown: [] });
    const nothing = { rows: 0, oldest: null, newest: null };
    const { cot, geochat, files, missions } = await facts.expired(question);
    for (const each of [cot, geochat, files, missions]) expect(each).toMatchObject(nothing);
  });

  it.each([1, 2, 3, 4, 5, 6, 7, 8])(
    'deletes in a random world what was said, and no other row: world %d',
    async (seed) => {
      await owner.unsafe(
        'TRUNCATE cot_router, cot_router_chat, resource, mission, mission_resource, mission_keyword CASCADE',
      );
      await owner.unsafe('TRUNCATE mission_uid_keyword, mission_resource_keyword');
      const { sql, limits, exemptKeywords } = randomWorld(seed + 1000);
      await owner.unsafe(`${sql} ANALYZE`);
      const before = await readRows(owner);
      const requested = { core: 'release', limits, exemptKeywords, withinMs: 20_000 } as const;
      const output = await facts.expired(requested);
      const going = goingByHand(before, requested);
      const done: Record<string, number> = {};
      for (const [step, statement] of Object.entries(releaseRun(limits, exemptKeywords)))
        done[step] = (await owner.unsafe(statement)).count;
      const rows = {
        missions: done['missions'],
        files: done['files'],
        missionpackages: 0,
        cot: done['cot'],
        geochat: (done['chat'] ?? 0) + (done['legacyChat'] ?? 0),
      };
      for (const [type, each] of Object.entries(output))
        expect([type, each.rows]).toEqual([type, rows[type as Retained]]);
      expect(output.missions?.included ?? { cot: 0, files: 0 }).toEqual({
        cot: done['missionEvents'],
        files: done['missionFiles'],
      });
      expect(idsOf(await readRows(owner))).toEqual(idsOf(before, going));
      expect(await facts.left(requested)).toEqual({ left: [], unknown: [] });
    },
  );
});

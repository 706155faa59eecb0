// What a run of the embedded core's retention deletes, and what it spares, on a real PostgreSQL.

import postgres from 'postgres';
import { beforeEach, describe, expect, it } from 'vitest';
import {
  LIMIT,
  retentionRows,
  type RetentionWorld,
  retentionWorld,
} from '../../../test/retention/core-retention-world-contract.ts';
import { coreTables } from './core-tables.ts';

const core = coreTables();
const rows = retentionRows(() => core.sql);
let world: RetentionWorld;
beforeEach(async () => {
  await rows.emptied();
  world = retentionWorld(core.sql, core.data());
});

describe('events', () => {
  it('go when they are older than the limit: not those at the limit, nor those without a time or a type', async () => {
    await rows.event('old');
    await rows.event('at the limit', LIMIT);
    await rows.event('no time', null);
    await rows.event('no type', undefined, null);
    await rows.event('legacy chat', undefined, 'b-t-f');
    await rows.event('receipt', undefined, 'b-t-f-d');
    await rows.chat('chat');
    const run = await world.whole(['cot']);
    expect(await rows.uids()).toEqual(['at the limit', 'legacy chat', 'no time', 'no type']);
    expect(await rows.chats()).toEqual(['chat']);
    expect(run).toMatchObject({
      state: 'done',
      trigger: 'order',
      limits: { cot: LIMIT },
      rows: { cot: 2 },
      error: null,
    });
    expect([run.expected, run.included]).toEqual([2, { cot: 0, files: 0 }]);
    expect(run.bytes).toBeGreaterThan(0);
  });

  it('of a uid that any mission has are spared', async () => {
    const mission = await rows.mission('new', LIMIT);
    await rows.holds(mission, { uid: 'kept' });
    await rows.event('kept');
    await rows.event('old');
    expect((await world.whole(['cot'])).rows).toEqual({ cot: 1 });
    expect(await rows.uids()).toEqual(['kept']);
  });

  it('take the images, thumbnails and links that point at them along', async () => {
    const [old, kept] = [await rows.event('old'), await rows.event('kept', LIMIT)];
    for (const id of [old, kept]) {
      const [image] = await core.sql<{ id: number }[]>`INSERT INTO cot_image (cot_id) VALUES (${id}) RETURNING id`;
      await core.sql`INSERT INTO cot_thumbnail (cot_id, cot_image_id) VALUES (${id}, ${image?.id ?? 0})`;
      await core.sql`INSERT INTO cot_thumbnail (cot_image_id) VALUES (${image?.id ?? 0})`;
      await core.sql`INSERT INTO cot_link (containing_event) VALUES (${id})`;
    }
    expect(await world.whole(['cot'])).toMatchObject({ state: 'done', rows: { cot: 1 } });
    const [left] = await core.sql`
      SELECT (SELECT count(*) FROM cot_image)::int AS images, (SELECT count(*) FROM cot_thumbnail)::int AS thumbnails,
        (SELECT count(*) FROM cot_link)::int AS links, (SELECT sum(cot_id) FROM cot_image)::int AS of`;
    expect(left).toEqual({ images: 1, thumbnails: 2, links: 1, of: kept });
  });

  it('of one and the same moment go in several batches', async () => {
    await core.sql`
      INSERT INTO cot_router (uid, cot_type, servertime)
      SELECT 'u' || n, 'a', '2026-01-01' FROM generate_series(1, 3500) n`;
    expect((await world.whole(['cot'])).rows).toEqual({ cot: 3500 });
    expect(await rows.uids()).toEqual([]);
  });
});

describe('events of one and the same moment', () => {
  it('are read about as often as others, however many they are', async () => {
    await core.sql`
      INSERT INTO cot_router (uid, cot_type, servertime) SELECT 'u' || n, 'a', '2026-01-01' FROM generate_series(1, 20000) n`;
    const reads = async () => {
      const [row] = await core.sql<[{ deleted: number; read: number }]>`
        SELECT n_tup_del::int AS deleted, (seq_tup_read + idx_tup_fetch)::int AS read FROM pg_stat_user_tables
        WHERE relname = 'cot_router'`;
      return row;
    };
    const ownSql = postgres(core.url(), { max: 1, fetch_types: false });
    const before = await reads();
    const own = retentionWorld(core.sql, core.data(), { run: (use) => use(ownSql) });
    const { id } = await own.begun(['cot']);
    await world.ended(id);
    // A connection that ends tells what it has read.
    await ownSql.end();
    await expect.poll(async () => (await reads()).deleted - before.deleted).toBeGreaterThanOrEqual(20_000);
    const after = await reads();
    expect((after.read - before.read) / (after.deleted - before.deleted)).toBeLessThan(5);
  });
});

describe('chat', () => {
  it('goes from its own table and, as older releases wrote it, from that of the events', async () => {
    await rows.chat('old');
    await rows.chat('at the limit', LIMIT);
    await rows.chat('no time', null);
    await rows.event('legacy', undefined, 'b-t-f');
    await rows.event('event');
    expect((await world.whole(['geochat'])).rows).toEqual({ geochat: 2 });
    expect([await rows.chats(), await rows.uids()]).toEqual([['at the limit', 'no time'], ['event']]);
  });
});

describe('files', () => {
  it('go without mission packages, without those of a mission and without the words that exempt', async () => {
    const mission = await rows.mission('any', LIMIT);
    await rows.file('old');
    await rows.file('old with words', ['other', 'a "quoted", word']);
    await rows.file('at the limit', null, LIMIT);
    await rows.file('no time', null, null);
    await rows.file('package', ['missionpackage']);
    await rows.file('exempt', ['x', 'keep, this']);
    await rows.holds(mission, { file: await rows.file('of a mission') });
    world.exempt.push('keep, this', 'unused');
    const run = await world.whole(['files']);
    expect(await rows.files()).toEqual(['at the limit', 'exempt', 'no time', 'of a mission', 'package']);
    expect([run.rows, run.expected]).toEqual([{ files: 2 }, 2]);
  });

  it('that are mission packages go by a limit of their own', async () => {
    await rows.file('package', ['a', 'missionpackage']);
    await rows.file('exempt package', ['missionpackage', 'keep']);
    await rows.file('file', ['a']);
    world.exempt.push('keep');
    const run = await world.whole(['missionpackages']);
    expect([run.rows, run.expected, await rows.files()]).toEqual([
      { missionpackages: 1 },
      1,
      ['exempt package', 'file'],
    ]);
  });

  it('go in small batches, however many others lie between them', async () => {
    await core.sql`
      INSERT INTO resource (name, hash, keywords, submissiontime, data)
      SELECT 'f' || n, n, CASE WHEN n % 30 = 0 THEN NULL ELSE '{missionpackage}'::varchar[] END,
        '2026-01-01'::timestamptz + (n / 3) * interval '1 s', 'x' FROM generate_series(1, 3000) n`;
    expect((await world.whole(['files'])).rows).toEqual({ files: 100 });
    expect(await rows.files()).toHaveLength(2900);
  });

  it('that are large go a few at once', async () => {
    for (const name of ['a', 'b', 'c']) await rows.file(name, null, undefined, 20_000_000);
    const run = await world.whole(['files']);
    expect([run.rows, await rows.files()]).toEqual([{ files: 3 }, []]);
    expect(run.bytes).toBeGreaterThan(60_000_000);
  });
});

describe('missions', () => {
  it('go by their creation, but not those of the system, nor those by invitation only', async () => {
    for (const name of ['old', 'exchecktemplates', 'citrap']) await rows.mission(name);
    await rows.mission('at the limit', LIMIT);
    await rows.mission('invited', undefined, true);
    const run = await world.whole(['missions']);
    expect(await rows.missions()).toEqual(['at the limit', 'citrap', 'exchecktemplates', 'invited']);
    expect(run).toMatchObject({ rows: { missions: 1 }, expected: 1 });
    expect(world.notices).toMatchObject([{ type: 't-x-m-d' }]);
    expect(world.notices[0]?.detail).toContain('name="old"');
    const [change] = await core.sql`SELECT mission_name, change_type FROM mission_change`;
    expect(change).toEqual({ mission_name: 'old', change_type: 1 });
  });

  it('take the events of their uids and their files along, of every age, but not what another mission keeps', async () => {
    const [one, two, kept] = [await rows.mission('one'), await rows.mission('two'), await rows.mission('kept', LIMIT)];
    const files = {
      own: await rows.file('own', ['keep']),
      both: await rows.file('both'),
      kept: await rows.file('kept'),
    };
    for (const [mission, uid] of [
      [one, 'own'],
      [one, 'both'],
      [two, 'both'],
      [one, 'shared'],
      [kept, 'shared'],
    ] as const)
      await rows.holds(mission, { uid });
    await rows.holds(one, { file: files.own });
    await rows.holds(one, { file: files.both });
    await rows.holds(two, { file: files.both });
    await rows.holds(two, { file: files.kept });
    await rows.holds(kept, { file: files.kept });
    for (const uid of ['own', 'both', 'shared', 'none']) {
      await rows.event(uid);
      await rows.event(uid, new Date().toISOString());
    }
    const image = await rows.event('own');
    await core.sql`INSERT INTO cot_image (cot_id) VALUES (${image})`;
    world.exempt.push('keep');
    const run = await world.whole(['missions']);
    expect([await rows.missions(), await rows.files()]).toEqual([['kept'], ['kept']]);
    expect(await rows.uids()).toEqual(['none', 'none', 'shared', 'shared']);
    expect(run).toMatchObject({ rows: { missions: 2 }, included: { cot: 5, files: 2 }, expected: 9 });
  });

  it('come first: what they held and another does not is not left for the next run', async () => {
    const mission = await rows.mission('old');
    await rows.holds(mission, { uid: 'held' });
    await rows.event('held');
    await rows.event('free');
    const run = await world.whole(['cot', 'missions']);
    expect(run).toMatchObject({ rows: { missions: 1, cot: 1 }, included: { cot: 1 }, expected: 3 });
    expect(await rows.uids()).toEqual([]);
  });

  it('come first: chat among the events of what they held goes with them', async () => {
    await rows.holds(await rows.mission('old'), { uid: 'held' });
    await rows.event('held', undefined, 'b-t-f');
    await rows.event('free', undefined, 'b-t-f');
    const run = await world.whole(['geochat', 'missions']);
    expect(run).toMatchObject({ rows: { missions: 1, geochat: 1 }, included: { cot: 1 } });
  });

  it('with the guid of another do not take that in their place', async () => {
    await rows.mission('kept', LIMIT);
    await rows.mission('old');
    await core.sql`UPDATE mission SET guid = (SELECT guid FROM mission WHERE name = 'kept')`;
    expect(await world.whole(['missions'])).toMatchObject({ state: 'done', rows: { missions: 0 } });
    expect(await rows.missions()).toEqual(['kept', 'old']);
  });

  it('with many uids and many events go in batches', async () => {
    const mission = await rows.mission('old');
    await rows.many(6_000);
    await core.sql`INSERT INTO mission_uid SELECT ${mission}, 'many-' || n FROM generate_series(0, 49) n`;
    await rows.event('other');
    expect(await world.whole(['missions'])).toMatchObject({ rows: { missions: 1 }, included: { cot: 6_000 } });
    expect(await rows.uids()).toEqual(['other']);
  });
});

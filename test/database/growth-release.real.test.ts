// Growth in the tables of a TAK Server release, on PostgreSQL with PostGIS, as the role that may only read.

import postgres from 'postgres';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { keptDatabase } from '@holdfast/kit/kept-database';
import { Secret } from '@holdfast/kit/secret';
import { type Postgis, postgisMissing, startPostgis } from '../../packages/setup/test/postgis.ts';
import { RELEASE_TABLES } from '../../packages/setup/test/release-tables.ts';
import { growthFacts } from '../../shared/database/growth/facts.ts';
import { CORE } from '../../shared/runtime/both-hosts.ts';

/** Machines that do much else are slow. */
const SLOW = { withinMs: 30_000 };
const title = `growth in the tables of a release, with PostGIS (${postgisMissing ?? 'is there'})`;

describe.skipIf(postgisMissing !== undefined)(title, () => {
  let database: Postgis;
  let owner: postgres.Sql;
  beforeAll(async () => {
    database = await startPostgis();
    owner = postgres(database.owner, { max: 1, fetch_types: false, onnotice: () => undefined });
    await owner.unsafe(RELEASE_TABLES);
    // One in three of the sequence is chat, as two kinds of rows share it.
    await owner.unsafe(`
      INSERT INTO cot_router (id, uid, cot_type, detail, servertime, event_pt, groups)
      SELECT n * 3 / 2, CASE WHEN n % 4 = 0 THEN 'HEAVY' ELSE 'LIGHT' END, 'a-f-G', '<detail><contact callsign="C ' || n % 4 || '"/>'
          || CASE WHEN n % 4 = 0 THEN (SELECT string_agg(md5(n || '-' || k), '') FROM generate_series(1, 150) k) ELSE '' END,
        now() - interval '500 s' + n * interval '500 s' / 12000, ST_SetSRID(ST_MakePoint(7.1 + n / 1e5, 46.9), 4326), B'1'
      FROM generate_series(1, 12000) n;
      INSERT INTO cot_router_chat (id, uid, cot_type, detail, servertime, sender_callsign)
      SELECT n * 3, 'GeoChat.CHATTER.All Chat Rooms.' || n, 'b-t-f', '<detail/>', now() - interval '500 s' + n * interval '500 s' / 6000, 'Chat "er"'
      FROM generate_series(1, 6000) n;
      INSERT INTO resource (data, name, creatoruid) SELECT decode(repeat('00', 1000), 'hex'), 'a', 'BRINGER' FROM generate_series(1, 3)`);
  });
  afterAll(async () => {
    await owner?.end({ timeout: 1 });
    await database?.end();
  });

  it('has the sizes of the tables, and who fills them', async () => {
    const facts = growthFacts(keptDatabase(new Secret(database.reader), { ...CORE, ...SLOW }), SLOW);
    const found = await facts.fillers(600);
    expect(found.uids).toMatchObject([
      { name: 'HEAVY', cot_type: 'a-f-G', callsign: 'C 0' },
      { name: 'LIGHT', cot_type: 'a-f-G', callsign: expect.stringMatching(/^C [123]$/) },
      { name: 'CHATTER', cot_type: 'b-t-f', callsign: 'Chat "er"' },
      { name: 'BRINGER', rows: 3, cot_type: 'files', callsign: null },
    ]);
    expect(Math.abs(found.rows / 18_003 - 1)).toBeLessThan(0.1);
    const [heavy, light, chat] = found.uids.map(({ rows }) => rows) as [number, number, number];
    expect(Math.abs(heavy / (heavy + light) - 0.25)).toBeLessThan(0.05);
    expect(Math.abs(chat / 6_000 - 1)).toBeLessThan(0.1);
    const tables = (await facts.tables()).map(({ table }) => table);
    expect(tables.slice(0, 1)).toEqual(['cot_router']);
    expect(tables).toContain('spatial_ref_sys');
  });

  it('says that it is not allowed to look, where that is so', async () => {
    await owner.unsafe('REVOKE pg_read_all_data FROM holdfast_ro');
    const facts = growthFacts(keptDatabase(new Secret(database.reader), CORE));
    await expect(facts.fillers(600)).rejects.toThrow(/permission denied/);
    expect((await facts.tables()).length).toBeGreaterThan(5);
    await owner.unsafe('GRANT pg_read_all_data TO holdfast_ro');
  });
});

// Brings accounts, missions and files of one database back into another, as from an archive into a
// running stack.

import { createHash, randomBytes, randomUUID } from 'node:crypto';
import postgres from 'postgres';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { CORE_DATABASE_MIGRATED, CORE_MIGRATIONS } from '@holdfast/core';
import { IDENTITY_MIGRATIONS } from '@holdfast/identity/store/migrations/index';
import { migrate } from '@holdfast/kit/migrate';
import { emptyDatabase } from '../../../test/e2e/embedded/empty-database.ts';
import { listAccounts, restoreAccounts } from '../parts/accounts.ts';
import { listFiles, restoreFiles } from '../parts/files.ts';
import { listMissions, restoreMissions } from '../parts/missions.ts';
import type { PartChange } from '../parts/rows.ts';

const database = emptyDatabase();
const NOW = new Date('2026-02-01T10:00:00Z');
const BLUE = "overlay(repeat('0', 32768) PLACING '1' FROM 32768 - 3)::bit varying(32768)";
const FILE = randomBytes(2_500_000);
const HASH = createHash('sha256').update(FILE).digest('hex');
/** The archive, and the running stack. */
let from: postgres.Sql;
let to: postgres.Sql;

beforeAll(async () => {
  const open = (url: string): postgres.Sql => postgres(url, { max: 1, fetch_types: false, onnotice: () => undefined });
  [from, to] = [open(database.stateUrl()), open(database.url())];
  for (const sql of [from, to]) {
    await migrate(sql, IDENTITY_MIGRATIONS);
    await migrate(sql, CORE_MIGRATIONS, CORE_DATABASE_MIGRATED);
    await sql`INSERT INTO groups (name, bitpos, type) VALUES ('Blue', nextval('group_bitpos_sequence'), 0)`;
  }
});
afterAll(async () => {
  await from?.end();
  await to?.end();
});

const effects = (changes: readonly PartChange[]): string[] =>
  changes.map(({ target, effect }) => `${target} ${effect}`);

describe('accounts', () => {
  interface Made {
    name: string;
    uuid?: string;
    active?: boolean;
    hash?: string;
    groups?: string[];
  }
  async function add(sql: postgres.Sql, { name, uuid = randomUUID(), active = true, hash = 'h', groups = [] }: Made) {
    const [row] = await sql<{ pk: number }[]>`
      INSERT INTO account (uuid, username, username_key, name, email, email_key, searched, is_active, path, type, attributes,
        password_hash, date_joined, last_updated)
      VALUES (${uuid}, ${name}, ${name.toLowerCase()}, ${name}, '', '', ${name.toLowerCase()}, ${active}, 'users', 'internal',
        '{"a": {"b": [1, "x"]}}'::text::jsonb, ${hash}, now(), now()) RETURNING pk`;
    for (const group of groups) {
      await sql`
        INSERT INTO user_group (uuid, name, name_key, is_superuser, attributes, created_at, changed_at)
        VALUES (${randomUUID()}, ${group}, ${group.toLowerCase()}, false, '{}', now(), now()) ON CONFLICT DO NOTHING`;
      await sql`INSERT INTO membership SELECT ${row?.pk ?? 0}, uuid FROM user_group WHERE name = ${group}`;
    }
    return row?.pk ?? 0;
  }
  const restored = (names: string[], overwrite: boolean, tokens = true) =>
    to.begin(async (tx) => {
      const accounts = (await listAccounts(from)).filter(({ username }) => names.includes(username));
      return restoreAccounts({ from, to: tx }, accounts, { overwrite, tokens, now: NOW });
    });
  const inRunning = (name: string) => to<Record<string, unknown>[]>`
    SELECT a.pk, a.uuid::text, a.is_active, a.password_hash, a.attributes::text AS attributes,
      (SELECT json_agg(g.name ORDER BY g.name) FROM membership m JOIN user_group g ON g.uuid = m.group_uuid WHERE m.account_pk = a.pk) AS groups
    FROM account a WHERE username = ${name}`;

  beforeAll(async () => {
    const eve = randomUUID();
    const ada = await add(from, { name: 'Ada', hash: 'of ada', groups: ['Blue', 'Red'] });
    await add(from, { name: 'bob', active: false });
    await add(from, { name: 'carl', hash: 'old', groups: ['Blue'] });
    await add(from, { name: 'eve', uuid: eve });
    await add(from, { name: 'akadmin' });
    await add(from, { name: 'svc_probe' });
    const token = (account: number, identifier: string, intent: string, hours: number) => from`
      INSERT INTO token (uuid, identifier, account_pk, intent, description, expires, expiring, key_sealed, key_digest)
      VALUES (${randomUUID()}, ${identifier}, ${account}, ${intent}, '', ${new Date(NOW.getTime() + hours * 3_600_000)}, true,
        ${randomBytes(40)}, ${randomBytes(32)})`;
    await token(ada, 'valid', 'app_password', 1);
    await token(ada, 'expired', 'app_password', -1);
    await token(ada, 'of-the-api', 'api', 1);
    await add(to, { name: 'dave', groups: ['Red'] });
    await add(to, { name: 'carl', active: false, hash: 'new', groups: ['Green'] });
    await add(to, { name: 'eve.new', uuid: eve });
  });

  it('lists all but those of the stack itself', async () => {
    expect((await listAccounts(from)).map(({ username }) => username)).toEqual(['Ada', 'bob', 'carl', 'eve']);
  });

  it('brings missing ones back with password, groups and app passwords, and leaves the others', async () => {
    const before = await inRunning('carl');
    const changes = await restored(['Ada', 'bob', 'carl', 'eve'], false);
    expect(effects(changes)).toEqual(['Ada new', 'bob new', 'carl kept', 'eve kept']);
    expect(changes[0]?.detail).toBe('active; groups Blue, Red; new groups Blue; app passwords 1');
    expect(changes[3]?.detail).toContain('eve.new');
    // Dave has the number that Ada had.
    const [ada] = await inRunning('Ada');
    expect(ada).toMatchObject({ is_active: true, password_hash: 'of ada', groups: ['Blue', 'Red'] });
    expect(JSON.parse(String(ada?.['attributes']))).toEqual({ a: { b: [1, 'x'] } });
    expect(await inRunning('bob')).toMatchObject([{ is_active: false, groups: null }]);
    expect(await to`SELECT identifier FROM token`).toEqual([{ identifier: 'valid' }]);
    expect(await inRunning('carl')).toEqual(before);
    expect(await inRunning('dave')).toMatchObject([{ pk: 1, groups: ['Red'] }]);
    await to`INSERT INTO account (uuid, username, username_key, name, email, email_key, searched, is_active, path, type, attributes,
      date_joined, last_updated) SELECT gen_random_uuid(), 'new', 'new', '', '', '', '', true, '', 'internal', '{}', now(), now()`;
  });

  it('replaces one on request, and never reactivates it', async () => {
    const [change] = await restored(['carl'], true);
    expect([change?.effect, change?.detail]).toEqual([
      'replaced',
      'name, password and groups of the archive; joins Blue; leaves Green; stays deactivated',
    ]);
    expect(await inRunning('carl')).toMatchObject([{ is_active: false, password_hash: 'old', groups: ['Blue'] }]);
    expect(effects(await restored(['carl'], true))).toEqual(['carl kept']);
  });

  it('leaves app passwords out that another secret sealed', async () => {
    await to`DELETE FROM account WHERE username = 'Ada'`;
    await restored(['Ada'], false, false);
    expect(await to`SELECT FROM token`).toEqual([]);
  });
});

describe('missions and files', () => {
  const guid = randomUUID();
  const restored = (isMeant = true) =>
    to.begin(async (tx) => {
      const changes = await restoreMissions({ from, to: tx }, await listMissions(from), {
        copyBytes: isMeant,
        now: NOW,
      });
      if (!isMeant) throw Object.assign(new Error('tried'), { changes });
      return changes;
    });
  const everything = async (): Promise<unknown> =>
    to.unsafe(`SELECT (SELECT json_agg(m ORDER BY id) FROM mission m) AS missions, (SELECT json_agg(u ORDER BY uid) FROM mission_uid u) AS uids,
      (SELECT json_agg(to_jsonb(c) - 'id' ORDER BY id) FROM mission_change c) AS changes, (SELECT json_agg(s) FROM mission_subscription s) AS people,
      (SELECT json_agg(k) FROM mission_keyword k) AS keywords, (SELECT json_agg(e ORDER BY id) FROM cot_router e) AS events,
      (SELECT json_agg(json_build_object('id', id, 'data', md5(data), 'groups', groups, 'keywords', keywords, 'location', location)) FROM resource) AS files`);

  async function fill(sql: postgres.Sql): Promise<void> {
    await sql.unsafe(`INSERT INTO cot_router (id, uid, detail, groups, event_pt, point_hae, servertime) VALUES
      (nextval('cot_router_seq'), 'marker', '<old/>', ${BLUE}, point(1.5, -2), 0, '2026-01-01'),
      (nextval('cot_router_seq'), 'marker', E'<detail\\\\ note="\u00e4"/>\n', ${BLUE}, point(13.123456789012345, -2), 1e-7, '2026-01-02')`);
    await sql.unsafe(
      `INSERT INTO resource (name, hash, data, groups, submitter, keywords, location, submissiontime) VALUES ('plan.zip', $1, $2, ${BLUE},
      'ada', '{a,"b c"}', point(1, 2), '2026-01-01')`,
      [HASH, FILE],
    );
    await sql.unsafe(
      `INSERT INTO mission (name, guid, groups, description, password_hash, create_time) VALUES ('Flood', '${guid}', ${BLUE}, 'by the river', 'x', '2026-01-01')`,
    );
    await sql`INSERT INTO mission_keyword VALUES (1, 'water')`;
    await sql`INSERT INTO mission_uid VALUES (1, 'marker'), (1, 'never sent')`;
    await sql`INSERT INTO mission_resource SELECT 1, id, hash FROM resource`;
    await sql`INSERT INTO mission_change (mission_id, mission_name, mission_guid, uid, change_type, ts, servertime) VALUES
      (1, 'Flood', ${guid}, NULL, 0, '2026-01-01', '2026-01-01'), (1, 'Flood', ${guid}, 'marker', 2, '2026-01-02', '2026-01-02'),
      (1, 'Flood', ${guid}, 'never sent', 2, '2026-01-02', '2026-01-02')`;
    await sql`INSERT INTO mission_change (mission_id, mission_name, mission_guid, hash, change_type, ts, servertime)
      VALUES (1, 'Flood', ${guid}, ${HASH}, 2, '2026-01-02', '2026-01-02')`;
    await sql`INSERT INTO mission_subscription (mission_id, client_uid, username, uid, role_id, create_time)
      VALUES (1, 'ANDROID-1', 'ada', 's1', 0, '2026-01-01')`;
  }

  beforeAll(async () => {
    await fill(from);
    await fill(to);
  });

  it('lists both', async () => {
    expect(await listMissions(from)).toMatchObject([{ name: 'Flood', guid, uids: 2, files: 1, subscribers: 1 }]);
    expect(await listFiles(from)).toMatchObject([
      { name: 'plan.zip', hash: HASH, bytes: FILE.length, submitter: 'ada' },
    ]);
  });

  it('keeps a mission that has everything', async () => {
    const before = await everything();
    expect(effects(await restored())).toEqual(['Flood kept']);
    expect(await everything()).toEqual(before);
  });

  it('brings a deleted mission back as it was, with files and newest events, after a try that leaves nothing', async () => {
    const before = await everything();
    // As the core deletes one deeply.
    await to`DELETE FROM cot_router WHERE uid = 'marker'`;
    for (const table of [
      'mission_subscription',
      'mission_uid',
      'mission_resource',
      'mission_keyword',
      'mission',
      'resource',
    ])
      await to`DELETE FROM ${to(table)}`;
    await to`INSERT INTO mission_change (mission_id, mission_name, mission_guid, change_type, ts) VALUES (1, 'Flood', ${guid}, 1, now())`;
    const deleted = await everything();
    await expect(restored(false)).rejects.toMatchObject({
      changes: [{ target: 'Flood', effect: 'new', detail: '2 map items, 1 file, 1 event of them; 1 device' }],
    });
    expect(await everything()).toEqual(deleted);
    expect(effects(await restored())).toEqual(['Flood new']);
    const [[was], [is]] = [before, await everything()] as [Record<string, unknown[]>[], Record<string, unknown[]>[]];
    const [{ last_edited, ...mission }] = (is?.['missions'] ?? []) as [{ last_edited: string }];
    const [{ last_edited: _, ...same }] = (was?.['missions'] ?? []) as [{ last_edited: string }];
    expect(mission).toEqual(same);
    expect(new Date(last_edited)).toEqual(NOW);
    for (const of of ['uids', 'changes', 'people', 'keywords', 'files'])
      expect([of, is?.[of]]).toEqual([of, was?.[of]]);
    // Of a map item, its newest event is its content.
    expect(is?.['events']).toEqual(was?.['events']?.slice(1));
    expect(effects(await restored())).toEqual(['Flood kept']);
  });

  it('adds the contents that a mission lacks, tells devices of them, and takes nothing away', async () => {
    await to`DELETE FROM mission_uid WHERE uid = 'marker'`;
    await to`INSERT INTO mission_change (mission_id, mission_name, mission_guid, uid, change_type, ts) VALUES (1, 'Flood', ${guid}, 'marker', 3, now())`;
    await to`INSERT INTO mission_uid VALUES (1, 'later')`;
    expect(effects(await restored())).toEqual(['Flood completed']);
    expect(await to`SELECT uid FROM mission_uid ORDER BY uid`).toEqual([
      { uid: 'later' },
      { uid: 'marker' },
      { uid: 'never sent' },
    ]);
    expect(await to`SELECT uid, change_type, ts FROM mission_change ORDER BY id DESC LIMIT 1`).toEqual([
      { uid: 'marker', change_type: 2, ts: NOW },
    ]);
  });

  it('refuses a name that another mission has now, and a group that means another one here', async () => {
    await to`UPDATE mission SET guid = gen_random_uuid()`;
    expect(effects(await restored())).toEqual(['Flood refused']);
    await to`UPDATE mission SET name = 'Fire'`;
    await to`UPDATE groups SET name = 'Red' WHERE name = 'Blue'`;
    const before = await everything();
    await expect(restored()).rejects.toThrow('The group Blue of the archive has another number in this stack');
    expect(await everything()).toEqual(before);
    await to`DELETE FROM groups WHERE name = 'Red'`;
    expect(effects(await restored())).toEqual(['Flood new']);
    expect(await to`SELECT bitpos FROM groups WHERE name = 'Blue'`).toEqual([{ bitpos: 3 }]);
    // The number of the old mission is in use.
    expect(await to`SELECT id::int FROM mission WHERE name = 'Flood'`).not.toEqual([{ id: 1 }]);
  });

  it('brings a single file back once', async () => {
    await to`DELETE FROM resource`;
    const files = async () => to.begin(async (tx) => restoreFiles({ from, to: tx }, await listFiles(from), true));
    expect(effects(await files())).toEqual([`plan.zip (${HASH.slice(0, 12)}) new`]);
    expect(effects(await files())).toEqual([`plan.zip (${HASH.slice(0, 12)}) kept`]);
    expect(await to`SELECT md5(data) AS sum, name, submitter FROM resource`).toEqual([
      { sum: createHash('md5').update(FILE).digest('hex'), name: 'plan.zip', submitter: 'ada' },
    ]);
  });
});

// Copies real databases out and in: every kind of value, while retention deletes.

import { randomBytes } from 'node:crypto';
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { readdir, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { generateX25519Identity, identityToRecipient } from 'age-encryption';
import postgres from 'postgres';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { CORE_DATABASE_MIGRATED, CORE_MIGRATIONS } from '@holdfast/core';
import { migrate } from '@holdfast/kit/migrate';
import { Secret } from '@holdfast/kit/secret';
import { certificateFiles } from '@holdfast/pki/certificate-files';
import { ensureServerCertificate } from '@holdfast/pki/server-certificate';
import { emptyDatabase } from '../../../test/e2e/embedded/empty-database.ts';
import { verifyArchive } from '../archive.ts';
import { DirectoryTarget } from '../directory-target.ts';
import { restoreArchive } from '../restore.ts';
import { type BackupSource, takeBackup } from '../take.ts';

const database = emptyDatabase();
const directory = mkdtempSync(join(tmpdir(), 'holdfast-backup-'));
const target = new DirectoryTarget(directory);
const identity = await generateX25519Identity();
/** Without the work that a passphrase takes. */
const encryption = { recipient: await identityToRecipient(identity) };
const key = { identity: new Secret(identity) };
let sql: postgres.Sql;
let source: BackupSource;

beforeAll(async () => {
  sql = postgres(database.url(), { max: 4, fetch_types: false, onnotice: () => undefined });
  await migrate(sql, CORE_MIGRATIONS, CORE_DATABASE_MIGRATED);
  source = {
    stack: 'embedded',
    release: '0.1.0',
    databases: [{ key: 'core', url: new Secret(database.url()), migrations: 'schema_version' }],
    files: [],
    caFile: certificateFiles(join(database.data(), 'core')).ca,
  };
  await ensureServerCertificate(join(database.data(), 'core'), ['localhost'], new Date());
  await fill(1_000);
});
afterAll(async () => {
  await sql?.end();
  rmSync(directory, { recursive: true, force: true });
});

const take = async (more: object = {}) =>
  takeBackup({ source, target, key: encryption, history: true, requestedBy: 'test', ...more });

/** Replaces the rows of `to` by those of the archive. */
async function restored(name: string): Promise<string[]> {
  const archive = { open: async () => (await target.read(name)).body, key };
  const verified = await verifyArchive(archive);
  return restoreArchive({
    archive,
    verified,
    place: {
      directoryOf: () => undefined,
      databases: source.databases,
      migrate: async (_key, on, number) => {
        await migrate(on, CORE_MIGRATIONS.slice(0, number), CORE_DATABASE_MIGRATED);
      },
    },
  });
}

/** Every row of every table as text, and every sequence. */
async function everything(): Promise<Record<string, string>> {
  const tables = await sql<{ name: string }[]>`
    SELECT relname AS name FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace ORDER BY 1`;
  const found: Record<string, string> = {};
  for (const { name } of tables) {
    const [row] = await sql.unsafe(
      `SELECT count(*) || ' ' || coalesce(md5(string_agg(md5(t::text), '' ORDER BY md5(t::text))), '') AS text FROM "${name}" t`,
    );
    found[name] = String(row?.['text']);
  }
  const [row] = await sql`SELECT last_value::text || is_called AS text FROM cot_router_seq`;
  return { ...found, sequence: String(row?.['text']) };
}

/** Indexes, constraints and their definitions. */
async function schema(): Promise<unknown> {
  return sql`
    SELECT indexdef AS text FROM pg_indexes WHERE schemaname = 'public'
    UNION ALL SELECT conrelid::regclass || conname || pg_get_constraintdef(oid) FROM pg_constraint
    WHERE connamespace = 'public'::regnamespace ORDER BY 1`;
}

async function fill(rows: number): Promise<void> {
  await sql`INSERT INTO group_vector (places, vector) SELECT p, overlay(repeat('0', 32768) PLACING '1' FROM 32768 - p::int)::bit varying(32768)
    FROM unnest('{2,3,9,400}'::text[]) p`;
  await sql`INSERT INTO cot_router (uid, detail, groups, event_pt, servertime)
    SELECT 'U' || n, E'line\\nbreak\\ttab \\\\ "quote" ' || n, CASE WHEN n % 7 = 0 THEN NULL ELSE v.vector END, point(n, -n), now() - n * interval '1 minute'
    FROM generate_series(1, ${rows}::int) n LEFT JOIN group_vector v ON v.places = (ARRAY['2','3','9','400'])[n % 4 + 1]`;
  await sql`INSERT INTO cot_image (image, cot_id) SELECT ${randomBytes(50)}, id FROM cot_router LIMIT 3`;
  await sql`INSERT INTO cot_router_chat (uid, chat_content) VALUES ('chat', ''), ('chat2', NULL)`;
  await sql`INSERT INTO mission (id, name, parent_mission_id) VALUES (2, 'child', NULL), (1, 'parent', NULL)`;
  await sql`UPDATE mission SET parent_mission_id = 1 WHERE id = 2`;
  await sql`INSERT INTO mission_keyword VALUES (1, 'first'), (1, E'\\\\N')`;
  const [large, larger] = [randomBytes(2 * 1024 * 1024 + 1), randomBytes(9 * 1024 * 1024)];
  await sql`INSERT INTO resource (name, data, keywords, groups) VALUES
    ('large', ${large}, '{a,"b c"}', (SELECT vector FROM group_vector LIMIT 1)), ('larger', ${larger}, NULL, NULL),
    ('empty', ''::bytea, '{}', NULL), ('none', NULL, NULL, NULL), ('at', '@1'::bytea, NULL, NULL)`;
}

it('brings back every row, sequence, index and constraint', async () => {
  const [rows, definitions] = [await everything(), await schema()];
  const phases = new Set<string>();
  const backup = await take({ progress: ({ phase }: { phase: string }) => phases.add(phase) });
  expect([...phases]).toEqual(expect.arrayContaining(['Copying cot_router', 'Copying resource', 'Finishing']));
  expect(await target.list()).toEqual([backup]);
  await sql`DELETE FROM cot_image`;
  await sql`DELETE FROM cot_router WHERE id % 2 = 0`;
  await sql`INSERT INTO cot_router (uid) VALUES ('after the backup')`;
  await sql`UPDATE resource SET data = NULL`;
  expect(await restored(backup.name)).toEqual([]);
  expect(await everything()).toEqual(rows);
  expect(await schema()).toEqual(definitions);
  await sql`INSERT INTO cot_router (uid) VALUES ('a new id')`;
});

it('has the rows of one moment although retention deletes and events come meanwhile', async () => {
  const [{ n: before } = { n: 0 }] = await sql<{ n: number }[]>`SELECT count(*)::int AS n FROM cot_router`;
  const stopping = new AbortController();
  const traffic = (async () => {
    while (!stopping.signal.aborted) {
      await sql`DELETE FROM cot_image`;
      await sql`DELETE FROM cot_router WHERE id IN (SELECT id FROM cot_router ORDER BY id LIMIT 20)`;
      await sql`INSERT INTO cot_router (uid) SELECT 'new' FROM generate_series(1, 10)`;
    }
  })();
  await delay(50);
  const { name } = await take({ now: () => new Date(Date.now() + 60_000) }).finally(() => stopping.abort());
  await traffic;
  const { manifest } = await verifyArchive({ open: async () => (await target.read(name)).body, key });
  const archived = manifest.databases[0]?.tables.find((table) => table.name === 'cot_router');
  expect(await restored(name)).toEqual([]);
  const [now] = await sql<{ n: number; old: number }[]>`
    SELECT count(*)::int AS n, (count(*) FILTER (WHERE uid <> 'new'))::int AS old FROM cot_router`;
  expect(now?.n).toBe(archived?.rows);
  // Each turn of the traffic deletes 20 and adds 10: at one moment both fit together.
  expect(now?.n).toBeLessThan(before);
  expect(Math.abs((now?.n ?? 0) - before) % 10).toBe(0);
});

it('leaves history out, and brings back the rest', async () => {
  const { name, history } = await take({ history: false, now: () => new Date(Date.now() + 120_000) });
  expect(history).toBe(false);
  const before = await everything();
  expect(await restored(name)).toEqual([]);
  const { cot_router, cot_router_chat, cot_image, ...rest } = await everything();
  expect([cot_router, cot_router_chat, cot_image]).toEqual(['0 ', '0 ', '0 ']);
  expect(before).toMatchObject(rest);
});

it('restores an archive of an older schema, and goes on to the newest', async () => {
  await sql`DROP SCHEMA public CASCADE`;
  await migrate(sql, CORE_MIGRATIONS.slice(0, 1), CORE_DATABASE_MIGRATED);
  await sql`INSERT INTO cot_router (uid) VALUES ('old')`;
  const { name } = await take({ now: () => new Date(Date.now() + 180_000) });
  await sql`DROP SCHEMA public CASCADE`;
  expect(await restored(name)).toEqual([]);
  expect(await sql`SELECT uid FROM cot_router`).toEqual([{ uid: 'old' }]);
  expect(await sql`SELECT max(number) AS number FROM schema_version`).toEqual([{ number: CORE_MIGRATIONS.length }]);
});

it('changes nothing when rows are not those of the manifest, and names a table it does not know', async () => {
  await sql`CREATE TABLE of_a_flow (text text)`;
  await sql`INSERT INTO of_a_flow VALUES ('a')`;
  const { name } = await take({ now: () => new Date(Date.now() + 240_000) });
  await sql`DROP TABLE of_a_flow`;
  expect(await restored(name)).toEqual([
    "The table of_a_flow of the database core is not one of Holdfast's: its 1 rows were not restored",
  ]);
  const archive = { open: async () => (await target.read(name)).body, key };
  const verified = await verifyArchive(archive);
  const [core] = verified.manifest.databases;
  for (const table of core?.tables ?? []) if (table.name === 'cot_router') table.rows++;
  const before = await everything();
  const place = { directoryOf: () => undefined, databases: source.databases, migrate: async () => undefined };
  await expect(restoreArchive({ archive, verified, place })).rejects.toThrow('cot_router has 1 rows instead of 2');
  expect(await everything()).toEqual(before);
});

it('leaves nothing when it is stopped, when the disk is full, or when the database is lost', async () => {
  const names = async (): Promise<string[]> => readdir(directory);
  const before = await names();
  const stopping = new AbortController();
  const stopped = take({
    now: () => new Date(Date.now() + 300_000),
    signal: stopping.signal,
    progress: () => stopping.abort(new Error('stopped by hand')),
  });
  await expect(stopped).rejects.toThrow('stopped by hand');
  expect(await names()).toEqual(before);

  const full = new DirectoryTarget(directory);
  full.write = async (_name, content) => {
    for await (const chunk of content) writeFileSync('/dev/full', chunk);
  };
  await expect(take({ target: full })).rejects.toMatchObject({ code: 'ENOSPC' });

  const wrong = new Secret(database.url().replace(/\/[^/]*$/, '/nowhere'));
  await expect(take({ source: { ...source, databases: [{ key: 'core', url: wrong }] } })).rejects.toThrow(
    'The database core failed: database "nowhere" does not exist.',
  );
  await expect(take({ name: before[0] })).rejects.toThrow('already exists. It was not changed.');
  expect(await names()).toEqual(before);
});

it('never shows an archive without its facts, whenever the process dies', async () => {
  const [known] = await target.list();
  if (known === undefined) throw new Error('no backup');
  const name = 'holdfast-20200202T000000Z.tar.zst.age';
  async function* content(): AsyncGenerator<Uint8Array> {
    yield Buffer.from('an archive');
  }
  const moments: string[][] = [];
  const described = { ...known, name };
  const sidecar = (): typeof described => {
    moments.push(readdirSync(directory).filter((each) => each.includes(name)));
    return described;
  };
  const asLinked = new DirectoryTarget(directory);
  asLinked.putSidecar = async (backup) => {
    await target.putSidecar(backup);
    moments.push(
      readdirSync(directory)
        .filter((each) => each.includes(name))
        .toSorted(),
    );
    // Another process that begins a backup now must not take it for a leftover.
    expect(await target.clean()).toEqual([]);
  };
  await asLinked.write(name, content(), { sidecar });
  expect(moments).toEqual([[`.${name}.partial`], [`.${name}.partial`, `${name}.json`]]);
  expect(await target.list()).toContainEqual(described);
  const failing = (): never => {
    throw new Error('no facts');
  };
  await target.remove(name);
  await expect(target.write(name, content(), { sidecar: failing })).rejects.toThrow('no facts');
  expect(readdirSync(directory).filter((each) => each.includes(name))).toEqual([]);
});

it('deletes what a killed backup left, and nothing else', async () => {
  const partial = join(directory, '.holdfast-20200101T000000Z.tar.zst.age.partial');
  writeFileSync(partial, 'half');
  writeFileSync(join(directory, 'holdfast-20200101T000000Z.tar.zst.age.json'), '{}');
  writeFileSync(join(directory, 'notes.json'), '{}');
  const kept = (await target.list()).length;
  expect((await target.clean()).toSorted()).toEqual([
    '.holdfast-20200101T000000Z.tar.zst.age.partial',
    'holdfast-20200101T000000Z.tar.zst.age.json',
  ]);
  expect((await target.list()).length).toBe(kept);
  expect((await stat(join(directory, 'notes.json'))).isFile()).toBe(true);
  await expect(target.read('../outside')).rejects.toThrow('No backup');
  await expect(new DirectoryTarget('/nowhere/at/all').check()).rejects.toThrow('does not exist');
});

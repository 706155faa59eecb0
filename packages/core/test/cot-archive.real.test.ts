// The archive on a real PostgreSQL: what the rows say, answers that are lost, a server that dies,
// rows that it refuses.

import { afterEach, describe, expect, it } from 'vitest';
import { keptDatabase } from '@holdfast/kit/kept-database';
import { Secret } from '@holdfast/kit/secret';
import { coreDatabase } from '../../../shared/core/database/database.ts';
import { eventually } from '../../../test/e2e/embedded/embedded.ts';
import { memoryLog } from '../../../test/http/fake-deps.ts';
import type { Archive, ChatFields } from '../model/stream.ts';
import { cotWriter } from '../store/cot-events.ts';
import { GroupVectors } from '../store/groups.ts';
import { coreDatabaseFacts } from '../store/presence.ts';
import { lossStore } from '../store/tables.ts';
import { type ArchiveLimits, EventArchive } from '../archive/archive.ts';
import { coreTablesBehindProxy } from './core-tables.ts';
import { archivedEvent, memoryUnwritten, RECEIVED_MS, uids } from './fake-core-archive.ts';

const core = coreTablesBehindProxy();
const archives: Archive[] = [];

afterEach(async () => {
  core.proxy.mood('good');
  for (const archive of archives.splice(0)) await archive.close(2000);
  await core.sql`TRUNCATE cot_router, cot_router_chat, archive_loss, cot_image, cot_thumbnail, cot_link`;
});

function newArchive(limits: Partial<ArchiveLimits> = {}) {
  const options = { name: 'archive', called: 'the database', variable: 'it', withinMs: 1500 };
  const run = keptDatabase(new Secret(core.proxy.url), options);
  const log = memoryLog();
  const unwritten = memoryUnwritten();
  let confirmed = 0;
  const keep: typeof unwritten.keep = (losses) => {
    unwritten.keep(losses);
    if (losses.length === 0) confirmed += 1;
  };
  const archive = new EventArchive({
    write: cotWriter(run, new GroupVectors(run)),
    losses: lossStore(run),
    unwritten: { ...unwritten, keep },
    log,
    now: () => new Date(),
    limits: { maxPauseMs: 500, ...limits },
  });
  archives.push(archive);
  const store = (from: number, to: number): void => {
    for (let n = from; n < to; n++) archive.store(archivedEvent({ uid: `u${n}` }));
  };
  const settled = (withinMs = 8000): Promise<void> =>
    eventually('nothing waits', () => archive.counts().waiting === 0, withinMs);
  /** How often the archive knows that all its losses are written. */
  const confirmations = (): number => confirmed;
  return { archive, log, store, settled, confirmations };
}

const uidsInOrder = async (): Promise<string[]> =>
  (await core.sql<{ uid: string }[]>`SELECT uid FROM cot_router ORDER BY id`).map(({ uid }) => uid);
const chat = (input: Partial<ChatFields> = {}): ChatFields => ({
  senderCallsign: 'Ada',
  destCallsign: 'Bob',
  destUids: ['uid-bob'],
  content: 'hello',
  room: 'Bob',
  ...input,
});

describe('the rows', () => {
  it('say what the event said, in UTC, with all 32,768 places of the groups in some 60 bytes', async () => {
    const { archive, settled } = newArchive();
    archive.store(
      archivedEvent({ places: [0, 5, 32_767], access: 'Undefined', qos: '', caveat: 'C', releaseableTo: 'R' }),
    );
    archive.store(archivedEvent({ uid: 'old', start: '1969-07-20T20:17:40Z', receivedAtMs: -1, places: [] }));
    await settled();
    const [row, old] = await core.sql`
      SELECT *, event_pt::text AS pt, length(groups) AS bits, pg_column_size(groups) AS bytes, point_hae::text AS hae,
        (SELECT string_agg(place::text, ',') FROM generate_series(0, 32767) place
          WHERE get_bit(groups, 32767 - place) = 1) AS places
      FROM cot_router ORDER BY id`;
    expect(row).toMatchObject({
      uid: 'ANDROID-1',
      cot_type: 'a-f-G-U-C',
      how: 'm-g',
      access: 'Undefined',
      qos: '',
      opex: null,
      caveat: 'C',
      releaseableto: 'R',
      time: new Date(RECEIVED_MS),
      start: new Date('2026-11-22T05:29:59.123Z'),
      stale: new Date('2026-11-22T06:30:00Z'),
      servertime: new Date(RECEIVED_MS + 7),
      servertime_hour: new Date('2026-11-22T05:00:00Z'),
      pt: '(11.5,48.25)',
      hae: '512.5',
      point_ce: '9999999',
      detail: '<detail><contact callsign="Ada"/></detail>',
      bits: 32_768,
      places: '0,5,32767',
    });
    expect(row?.['bytes']).toBeLessThan(120);
    expect(old).toMatchObject({
      start: new Date('1969-07-20T20:17:40Z'),
      servertime_hour: new Date('1969-12-31T23:00:00Z'),
      places: null,
    });
  });

  it('of events and chat have ids of one sequence, in the order in which they came', async () => {
    const { archive, store, settled } = newArchive();
    const [before] = await core.sql<{ value: number }[]>`SELECT last_value::int AS value FROM cot_router_seq`;
    store(0, 300);
    archive.store(archivedEvent({ type: 'b-t-f', uid: 'chat', chat: chat({ destUids: ['a', null, 'c'] }) }));
    store(300, 400);
    archive.store(
      archivedEvent({ type: 'b-t-f', uid: 'empty', chat: chat({ content: null, room: null, destUids: [] }) }),
    );
    await settled();
    expect(await uidsInOrder()).toEqual(uids(0, 400));
    const rows = await core.sql`SELECT * FROM cot_router_chat ORDER BY id`;
    expect(rows.map((row) => [row['uid'], row['dest_uid'], row['chat_content'], row['chat_room']])).toEqual([
      ['chat', 'a', 'hello', 'Bob'],
      ['chat', null, 'hello', 'Bob'],
      ['chat', 'c', 'hello', 'Bob'],
      ['empty', null, null, null],
    ]);
    expect(rows[0]).toMatchObject({ sender_callsign: 'Ada', dest_callsign: 'Bob', cot_type: 'b-t-f' });
    const ids = await core.sql<{ id: number }[]>`
      SELECT id::int AS id FROM (SELECT id FROM cot_router UNION ALL SELECT id FROM cot_router_chat) a ORDER BY id`;
    const first = (before?.value ?? 0) + 1;
    expect(ids.map(({ id }) => id)).toEqual(Array.from({ length: 404 }, (_, n) => ids[0]!.id + n));
    expect(ids[0]!.id - first).toBeLessThanOrEqual(1);
  });

  it('take whatever a client may write', async () => {
    const { archive, settled } = newArchive();
    const { point } = archivedEvent();
    const odd = ['\u001D\u001E\u001F\0', '\uD800 half', `'"; {\\,} \t\r\n`, 'Ünï 🦊', '\u001E', '€'.repeat(512)];
    for (const text of odd) archive.store(archivedEvent({ uid: text, how: text, detail: `<detail>${text}</detail>` }));
    const numbers = [1e-300, -3e-170, 5e-324, 1e6, -1e6, 1e-9, 0.1, -0];
    for (const number of numbers)
      archive.store(archivedEvent({ uid: 'n', point: { ...point, lat: number, lon: -number, hae: number, ce: 1e15 } }));
    await settled();
    expect(archive.counts()).toMatchObject({ stored: odd.length + numbers.length, lost: 0 });
    const stored = await uidsInOrder();
    expect(stored.slice(0, 6)).toEqual(['\uFFFD'.repeat(4), '\uFFFD half', odd[2], odd[3], '\uFFFD', odd[5]]);
    const [near] = await core.sql`SELECT count(*)::int AS n FROM cot_router WHERE event_pt <@ box '((-1,-1),(1,1))'`;
    expect(near).toEqual({ n: 6 });
  });

  it('find their groups though somebody has emptied the table of vectors, and when there are very many', async () => {
    const { archive, store, settled } = newArchive();
    store(0, 10);
    await settled();
    await core.sql`TRUNCATE group_vector`;
    store(10, 20);
    archive.store(archivedEvent({ uid: 'u20', places: Array.from({ length: 32_768 }, (_, place) => place) }));
    await settled();
    expect(await uidsInOrder()).toEqual(uids(0, 21));
    expect(archive.counts()).toMatchObject({ stored: 21, lost: 0 });
  });

  it('are what retention deletes and the counts count', async () => {
    const { archive, settled } = newArchive();
    const day = 86_400_000;
    const store = (uid: string, type: string, age: number, of?: ChatFields): void =>
      archive.store(
        archivedEvent({ uid, type, receivedAtMs: Date.now() - age * day, ...(of === undefined ? {} : { chat: of }) }),
      );
    for (const age of [400, 40, 4]) {
      store(`sa-${age}`, 'a-f-G', age);
      store(`chat-${age}`, 'b-t-f', age, chat());
      store(`legacy-${age}`, 'b-t-f', age);
    }
    store('kept', 'a-f-G', 400);
    await settled();
    await core.sql`INSERT INTO mission (name) VALUES ('m')`;
    await core.sql`INSERT INTO mission_uid SELECT id, 'kept' FROM mission`;
    const deleted = (table: string, where: string) =>
      core.sql.unsafe(`DELETE FROM ${table} WHERE servertime < now() - interval '30 days' AND ${where}`);
    const cot = "cot_type <> 'b-t-f' AND uid NOT IN (SELECT uid FROM mission_uid)";
    await core.sql`INSERT INTO cot_image (cot_id) SELECT id FROM cot_router WHERE uid = 'sa-40'`;
    await expect(deleted('cot_router', cot)).rejects.toMatchObject({ code: '23503' });
    expect(await coreDatabaseFacts((use) => use(core.sql)).cotCount()).toEqual({ cotEvents: 7, cotImages: 1 });
    await core.sql`DELETE FROM cot_image`;
    expect((await deleted('cot_router', cot)).count).toBe(2);
    expect((await deleted('cot_router_chat', 'true')).count).toBe(2);
    expect((await deleted('cot_router', "cot_type = 'b-t-f'")).count).toBe(2);
    expect((await uidsInOrder()).toSorted()).toEqual(['kept', 'legacy-4', 'sa-4']);
    await core.sql`TRUNCATE mission, mission_uid CASCADE`;
  });
});

describe('what goes wrong', () => {
  it('an answer that is lost, again and again, costs no row and doubles none', async () => {
    const { archive, log, store, settled } = newArchive({ firstPauseMs: 20 });
    for (let round = 0; round < 6; round++) {
      core.proxy.mood('lose');
      store(round * 100, round * 100 + 100);
      archive.store(archivedEvent({ uid: `c${round}`, type: 'b-t-f', chat: chat({ destUids: ['a', 'b'] }) }));
      await settled();
    }
    expect(core.proxy.lost()).toBe(6);
    expect((await uidsInOrder()).toSorted()).toEqual(uids(0, 600).toSorted());
    const [chats] = await core.sql`SELECT count(*)::int AS n FROM cot_router_chat`;
    expect(chats).toEqual({ n: 12 });
    expect(archive.counts()).toMatchObject({ stored: 606, lost: 0 });
    expect(log.events.filter(({ event }) => event === 'archive.behind')).toHaveLength(6);
  });

  it('a statement that is still at work when its connection is cut is not done twice', async () => {
    const { archive, store, settled } = newArchive({ firstPauseMs: 20 });
    const inserting = async (): Promise<number> => {
      const [row] = await core.sql<{ n: number }[]>`SELECT count(*)::int AS n FROM pg_stat_activity
        WHERE application_name = 'archive' AND state = 'active' AND query LIKE '%INSERT INTO cot_router%'`;
      return row?.n ?? 0;
    };
    const { promise: enough, resolve: release } = Promise.withResolvers<void>();
    const { promise: isLocked, resolve: locked } = Promise.withResolvers<void>();
    const holding = core.sql.begin(async (tx) => {
      await tx`LOCK TABLE cot_router IN SHARE MODE`;
      locked();
      await enough;
    });
    await isLocked;
    store(0, 50);
    await eventually('one waits for the lock', async () => (await inserting()) === 1);
    core.proxy.cut();
    await eventually('two wait for the lock', async () => (await inserting()) === 2);
    release();
    await holding;
    await settled();
    await eventually('both have ended', async () => (await inserting()) === 0);
    expect(await uidsInOrder()).toEqual(uids(0, 50));
    expect(archive.counts()).toMatchObject({ stored: 50, lost: 0 });
  });

  it('a server that is killed in the middle of traffic loses none of what came', async () => {
    const { archive, store, settled } = newArchive({ firstPauseMs: 50 });
    let sent = 0;
    const traffic = setInterval(() => store(sent, (sent += 50)), 10);
    await eventually('some are stored', () => archive.counts().stored > 500);
    await core.crash();
    const before = archive.counts().stored;
    await eventually('it is stored again', () => archive.counts().stored > before + 500, 20_000);
    clearInterval(traffic);
    await settled();
    expect(archive.counts()).toMatchObject({ stored: sent, lost: 0, waiting: 0 });
    await eventually('it can be read', () =>
      uidsInOrder()
        .then(() => true)
        .catch(() => false),
    );
    expect((await uidsInOrder()).toSorted()).toEqual(uids(0, sent).toSorted());
  });

  it('rows that the database refuses are lost, no others, and health says so', async () => {
    const readerOptions = { name: 'reader', called: 'the database', variable: 'it' };
    const secret = new Secret(core.readerUrl());
    const reader = coreDatabase({ run: keptDatabase(secret, readerOptions) });
    expect(await reader.eventLosses()).toBe('none');
    const { archive, store, settled } = newArchive();
    await core.sql`ALTER TABLE cot_router ADD CONSTRAINT no_poison CHECK (uid NOT IN ('u7', 'u1203'))`;
    store(0, 2000);
    await settled();
    await core.sql`ALTER TABLE cot_router DROP CONSTRAINT no_poison`;
    expect(archive.counts()).toMatchObject({ stored: 1998, lost: 2 });
    expect((await uidsInOrder()).toSorted()).toEqual(
      uids(0, 2000)
        .filter((uid) => uid !== 'u7' && uid !== 'u1203')
        .toSorted(),
    );
    await eventually('it is in the table', async () => (await reader.eventLosses()) !== 'none');
    expect(await reader.eventLosses()).toMatchObject({ events: 2, reason: expect.stringContaining('23514') });
    await core.sql`UPDATE archive_loss SET began = began - interval '2 days', ended = ended - interval '25 hours'`;
    expect(await reader.eventLosses()).toBe('none');
    await core.sql`ALTER TABLE archive_loss RENAME TO elsewhere`;
    expect(await reader.eventLosses()).toBe('unknown');
    await core.sql`ALTER TABLE elsewhere RENAME TO archive_loss`;
  });

  it('an outage that outlasts the bound has one row, with how many and when, once the database is back', async () => {
    const { archive, log, store, settled, confirmations } = newArchive({ maxEvents: 1000, firstPauseMs: 20 });
    store(0, 10);
    await settled();
    for (const [round, many] of [2500, 1700].entries()) {
      core.proxy.mood('closed');
      store(0, 10);
      const outages = () => log.events.filter(({ event }) => event === 'archive.behind').length;
      await eventually('it is noticed', () => outages() === round + 1);
      store(10, many);
      core.proxy.mood('good');
      await settled();
      // A row whose answer got lost takes in the next outage.
      await eventually('it is written', () => confirmations() === round + 1, 15_000);
    }
    const rows =
      await core.sql`SELECT events::int AS events, ended >= began AS ordered, reason FROM archive_loss ORDER BY id`;
    expect(rows).toMatchObject([
      { events: 1490, ordered: true, reason: 'the database took nothing' },
      { events: 690, ordered: true, reason: 'the database took nothing' },
    ]);
    expect(archive.counts().lost).toBe(2180);
  });
});

// Who came and who went, on a real PostgreSQL: what the lists show, crashes, answers that are lost.

import { afterEach, describe, expect, it } from 'vitest';
import { keptDatabase } from '@holdfast/kit/kept-database';
import { Secret } from '@holdfast/kit/secret';
import { eventually } from '../../../test/e2e/embedded/embedded.ts';
import { memoryLog } from '../../../test/http/fake-deps.ts';
import type { Presence } from '../model/stream.ts';
import { GroupVectors } from '../store/groups.ts';
import { clientEndpoints, type EndpointQuery, presenceStore } from '../store/presence.ts';
import { type PresenceLogParts, StoredPresenceLog } from '../stream/presence-log.ts';
import { coreTablesBehindProxy } from './core-tables.ts';

const core = coreTablesBehindProxy();
const logs: StoredPresenceLog[] = [];

afterEach(async () => {
  core.proxy.mood('good');
  for (const log of logs.splice(0)) await log.close(3000);
  await core.sql`TRUNCATE client_endpoint_event, client_endpoint`;
});

function newLog(parts: PresenceLogParts = {}) {
  const options = { name: 'presence', called: 'the database', variable: 'it', withinMs: 1500 };
  const log = memoryLog();
  const presence = new StoredPresenceLog(keptDatabase(new Secret(core.proxy.url), options), log, {
    now: () => at(0),
    ...parts,
  });
  logs.push(presence);
  return { presence, log };
}

const at = (second: number): Date => new Date(Date.UTC(2026, 10, 22, 10, 0, second, 7));
const person = (uid: string, input: Partial<Presence> = {}): Presence => ({
  callsign: uid.toUpperCase(),
  uid,
  username: 'ada',
  team: 'Cyan',
  role: 'Medic',
  clientVersion: 'ATAK-CIV:5.3.0',
  places: [3, 7],
  ...input,
});
const rowsBecome = (count: number): Promise<void> =>
  eventually(
    `${count} rows`,
    async () => (await core.sql`SELECT count(*)::int AS n FROM client_endpoint_event`)[0]?.['n'] === count,
  );
const list = async (query: Partial<EndpointQuery> = {}): Promise<string[]> => {
  const all: EndpointQuery = { groups: 'all', since: undefined, connectedOnly: false, newestOnly: false, ...query };
  const rows = await clientEndpoints((use) => use(core.sql)).list(all);
  return rows.map((row) => `${row.uid} ${row.callsign} ${row.lastStatus} ${row.lastEventTime.getUTCSeconds()}`);
};

describe('the presence log', () => {
  it('shows who is there and who went, with the groups they were in', async () => {
    const { presence } = newLog();
    presence.came(person('u1'), at(1));
    presence.came(person('u2', { places: [9] }), at(2));
    presence.went(person('u1'), at(3));
    presence.came(person('u1', { callsign: 'Renamed' }), at(4));
    await rowsBecome(4);
    expect(await list()).toEqual(['u1 Renamed Connected 4', 'u1 U1 Disconnected 3', 'u2 U2 Connected 2']);
    expect(await list({ groups: [7] })).toEqual(['u1 Renamed Connected 4', 'u1 U1 Disconnected 3']);
    expect(await list({ groups: [9] })).toEqual(['u2 U2 Connected 2']);
    expect(await list({ groups: [2, 4] })).toEqual([]);
    const rows = await core.sql`
      SELECT client_version, length(groups) AS bits, pg_column_size(groups) AS bytes FROM client_endpoint_event`;
    expect(rows[0]).toMatchObject({ client_version: 'ATAK-CIV:5.3.0', bits: 32_768 });
    expect(rows[0]?.['bytes']).toBeLessThan(120);
  });

  it('keeps one row of a client however often it comes and goes, in order', async () => {
    const { presence } = newLog();
    for (let n = 0; n < 600; n++) presence[n % 2 === 0 ? 'came' : 'went'](person(`u${n % 5}`), at(n % 60));
    await rowsBecome(600);
    expect((await core.sql`SELECT * FROM client_endpoint`).length).toBe(5);
    const rows = await core.sql<{ uid: string; kind: number }[]>`
      SELECT uid, connection_event_type_id AS kind FROM client_endpoint_event e
      JOIN client_endpoint c ON c.id = e.client_endpoint_id ORDER BY e.id`;
    expect(rows.map(({ uid, kind }) => `${uid} ${kind}`)).toEqual(
      Array.from({ length: 600 }, (_, n) => `u${n % 5} ${(n % 2) + 1}`),
    );
  });

  it('ends whoever was there at a crash, before anybody comes', async () => {
    const { presence: crashed } = newLog();
    crashed.came(person('u1'), at(1));
    crashed.came(person('u2'), at(2));
    crashed.went(person('u2'), at(3));
    await rowsBecome(3);
    const { presence } = newLog({ now: () => at(20) });
    presence.came(person('u3'), at(21));
    await rowsBecome(5);
    expect(await list()).toEqual(['u1 U1 Disconnected 20', 'u2 U2 Disconnected 3', 'u3 U3 Connected 21']);
    expect(await list({ groups: [7], connectedOnly: true })).toEqual(['u3 U3 Connected 21']);
  });

  it('ends nobody who is connected to another node', async () => {
    const { presence } = newLog();
    for (const uid of ['u1', 'u2']) presence.came(person(uid), at(1));
    await rowsBecome(2);
    const store = presenceStore((use) => use(core.sql), new GroupVectors((use) => use(core.sql)));
    await store.everybodyWent(at(5), [
      { clientUid: 'u1', username: 'ada' },
      { clientUid: 'u2', username: 'ben' },
    ]);
    expect(await list()).toEqual(['u1 U1 Connected 1', 'u2 U2 Disconnected 5']);
  });

  it('takes whatever a client may write', async () => {
    const { presence, log } = newLog();
    const long = Array.from({ length: 5000 }, (_, n) => String.fromCodePoint(0x4e_00 + ((n * 7919) % 20_000))).join('');
    const odd = { callsign: '\uD800\0', username: `'"{}\\`, team: long, role: long, clientVersion: long };
    presence.came(person(long, odd), at(1));
    presence.came(person('u2', { places: [] }), at(2));
    await rowsBecome(2);
    expect((await core.sql`SELECT callsign, length(uid) AS n FROM client_endpoint ORDER BY id`)[0]).toEqual({
      callsign: '\uFFFD\uFFFD',
      n: 160,
    });
    expect(log.events).toEqual([]);
  });

  it('writes nothing twice when an answer is lost', async () => {
    const { presence, log } = newLog();
    for (let round = 0; round < 3; round++) {
      core.proxy.mood('lose');
      presence.came(person(`u${round}`), at(round));
      await rowsBecome(round + 1);
      await eventually(
        'it goes on',
        () => log.events.filter(({ event }) => event === 'presence.caught_up').length === round + 1,
      );
    }
    presence.came(person('last'), at(9));
    await rowsBecome(4);
    expect(await list()).toHaveLength(4);
  });

  it('keeps the newest of each while the database is away', async () => {
    core.proxy.mood('closed');
    const { presence, log } = newLog({ maxWaiting: 100 });
    for (let n = 0; n < 1000; n++) presence[n % 20 < 10 ? 'came' : 'went'](person(`u${n % 10}`), at(n % 60));
    expect(log.events.every(({ event }) => event === 'presence.lost' || event === 'presence.behind')).toBe(true);
    core.proxy.mood('good');
    await eventually('the last has gone', async () => (await list()).length === 10);
    await eventually('nobody is there', async () => (await list({ connectedOnly: true })).length === 0);
  });

  it('writes what is waiting when it is closed', async () => {
    const { presence } = newLog();
    for (let n = 0; n < 300; n++) presence.came(person(`u${n}`), at(1));
    await presence.close(3000);
    expect(await list()).toHaveLength(300);
  });
});

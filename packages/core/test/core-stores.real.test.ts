// The stores of the core's admin API on a real PostgreSQL: places of groups, switches, clients,
// counts, certificates.

import { beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { keptDatabase } from '@holdfast/kit/kept-database';
import { migrate } from '@holdfast/kit/migrate';
import { Secret } from '@holdfast/kit/secret';
import { eventually } from '../../../test/e2e/embedded/embedded.ts';
import { certificateStore, type RunSql } from '../store/certificates.ts';
import { activeGroups, groupStore, MAX_GROUPS } from '../store/groups.ts';
import { CORE_DATABASE_MIGRATED, CORE_MIGRATIONS } from '../store/migrations/index.ts';
import { sessionName, workingNodes } from '../store/node-sessions.ts';
import { clientEndpoints, coreDatabaseFacts, type EndpointQuery } from '../store/presence.ts';
import { revokedMark } from '../store/tables.ts';
import { coreCertificatesContract } from './core-certificates-contract.ts';
import { coreTables } from './core-tables.ts';
import { adminWorld } from './fake-core-admin.ts';

const core = coreTables();
const run: RunSql = (use) => use(core.sql);
const groups = groupStore(run);

describe('the sessions of nodes', () => {
  it('tell which ones work with the database, and no longer when they end or stand still', async () => {
    const others = ['core-2', 'core-3'].map((node) => ({ node, run: crypto.randomUUID() }));
    const sessions = others.map((of) => {
      const database = { name: sessionName(of), called: 'the database', variable: 'it', withinMs: 120_000 };
      return keptDatabase(new Secret(core.url()), database);
    });
    const ask = (at: number, statement: string) => sessions[at]?.((sql) => sql.unsafe(statement));
    for (const at of [0, 1]) await ask(at, 'SELECT 1');
    expect((await workingNodes(run)()).toSorted((a, b) => a.node.localeCompare(b.node))).toEqual(others);
    await core.sql`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'node core-3 %'`;
    await eventually('one works on', async () => (await workingNodes(run)()).length === 1);
    const standsStill = ask(0, 'SELECT pg_sleep(90)')?.catch(() => undefined);
    expect(await workingNodes(run)()).toEqual([others[0]]);
    await eventually('none works on', async () => (await workingNodes(run)()).length === 0, 60_000);
    await core.sql`SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'node core-2 %'`;
    await standsStill;
    expect(await workingNodes(run)()).toEqual([others[0]]);
    await ask(0, 'SELECT pg_terminate_backend(pg_backend_pid())')?.catch(() => undefined);
  });
});

describe('the table of groups', () => {
  it('knows the anonymous group from the beginning', async () => {
    expect(await groups.list()).toMatchObject([{ name: '__ANON__', bitpos: 2, type: 'SYSTEM' }]);
  });

  it('gives each new group one place, for ever, however many ask at once', async () => {
    const requests = await Promise.all(
      Array.from({ length: 20 }, (_, index) => groups.ensure(['Ops', `G${index % 5}`, 'Ops', '__ANON__'])),
    );
    const places = new Map(requests.flat().map(({ name, bitpos }) => [name, bitpos]));
    expect(new Set(requests.flat().map(({ name, bitpos }) => `${name} ${bitpos}`)).size).toBe(7);
    expect([...places.values()].toSorted((a, b) => a - b)).toEqual([2, 3, 4, 5, 6, 7, 8]);
    const again = await groups.ensure(['Ops']);
    expect(again).toMatchObject([{ name: 'Ops', bitpos: places.get('Ops'), type: 'LDAP' }]);
    expect(again[0]?.created).toBeInstanceOf(Date);
    const [last] = await core.sql<{ value: number }[]>`SELECT last_value::int AS value FROM group_bitpos_sequence`;
    expect(last?.value).toBe(8);
  });

  it('takes any name, and no names', async () => {
    const odd = [`x'"; DROP TABLE groups; --`, '{a,"b"}', 'Ünï 🦊', '\\'];
    expect((await groups.ensure(odd)).map(({ name }) => name).toSorted()).toEqual(odd.toSorted());
    expect(await groups.ensure([])).toEqual([]);
  });

  it('has no place beyond the vectors of the events', async () => {
    await core.sql`SELECT setval('group_bitpos_sequence', ${MAX_GROUPS - 1})`;
    await expect(groups.ensure(['one too many'])).rejects.toMatchObject({ code: 'internal' });
    expect((await groups.list()).some(({ name }) => name === 'one too many')).toBe(false);
    await core.sql`SELECT setval('group_bitpos_sequence', 100)`;
  });
});

describe('the switches of groups', () => {
  const active = activeGroups(run);

  it('are kept by the name in any case, the last one counts', async () => {
    expect(await active.of('ada')).toEqual([]);
    await active.set('Ada', [
      { name: 'Ops', direction: 'IN', enabled: false },
      { name: 'Ops', direction: 'OUT', enabled: true },
    ]);
    await active.set('ada', [{ name: 'Ops', direction: 'IN', enabled: true }]);
    await active.set('ada', []);
    const found = (await active.of('ADA')).toSorted((a, b) => a.direction.localeCompare(b.direction));
    expect(found).toEqual([
      { name: 'Ops', direction: 'IN', enabled: true },
      { name: 'Ops', direction: 'OUT', enabled: true },
    ]);
    expect(await active.of('bob')).toEqual([]);
  });

  it('survive many who switch at once', async () => {
    const names = Array.from({ length: 30 }, (_, index) => `G${index}`);
    const both = (order: string[], enabled: boolean) =>
      active.set(
        'eve',
        order.map((name) => ({ name, direction: 'OUT', enabled })),
      );
    await Promise.all(Array.from({ length: 10 }, (_, i) => both(i % 2 ? names : names.toReversed(), i % 2 === 0)));
    const states = await active.of('eve');
    expect(states).toHaveLength(30);
    expect(new Set(states.map(({ enabled }) => enabled)).size).toBe(1);
  });
});

describe('the clients that were on the stream', () => {
  const endpoints = clientEndpoints(run);
  const ALL: EndpointQuery = { groups: 'all', since: undefined, connectedOnly: false, newestOnly: false };
  const at = (minute: number): Date => new Date(Date.UTC(2026, 10, 22, 10, minute, 0, 7));

  /** `places` are the bits of the vector, written in full. */
  async function event(uid: string, callsign: string, kind: 1 | 2, minute: number, places: number[]): Promise<void> {
    const bits = Array.from({ length: MAX_GROUPS }, (_, i) => (places.includes(MAX_GROUPS - 1 - i) ? '1' : '0'));
    const vector = places.length === 0 ? null : bits.join('');
    await core.sql`INSERT INTO client_endpoint (callsign, uid, username, team, role)
      VALUES (${callsign}, ${uid}, 'user', 'Cyan', 'Medic') ON CONFLICT DO NOTHING`;
    await core.sql`INSERT INTO client_endpoint_event (client_endpoint_id, connection_event_type_id, created_ts, groups)
      SELECT id, ${kind}, ${at(minute)}, ${vector}::text::bit varying FROM client_endpoint
      WHERE uid = ${uid} AND callsign = ${callsign}`;
  }
  const list = async (query: Partial<EndpointQuery>): Promise<string[]> =>
    (await endpoints.list({ ...ALL, ...query })).map((row) => `${row.uid} ${row.callsign} ${row.lastStatus}`);

  beforeAll(async () => {
    await event('u1', 'Alpha', 1, 1, [3]);
    await event('u1', 'Alpha', 2, 2, [3]);
    await event('u1', 'Bravo', 1, 3, [3, 32_767]);
    await event('u2', 'Delta', 1, 4, [5]);
    await event('u3', 'Echo', 1, 5, []);
  });

  it('are listed with their last event', async () => {
    expect(await list({})).toEqual([
      'u1 Alpha Disconnected',
      'u1 Bravo Connected',
      'u2 Delta Connected',
      'u3 Echo Connected',
    ]);
    expect(await endpoints.list({ ...ALL, groups: [5] })).toEqual([
      {
        callsign: 'Delta',
        uid: 'u2',
        username: 'user',
        team: 'Cyan',
        role: 'Medic',
        lastEventTime: at(4),
        lastStatus: 'Connected',
      },
    ]);
  });

  it('are seen by the bits of their groups, the rightmost being place 0', async () => {
    expect(await list({ groups: [3] })).toEqual(['u1 Alpha Disconnected', 'u1 Bravo Connected']);
    expect(await list({ groups: [32_767] })).toEqual(['u1 Bravo Connected']);
    expect(await list({ groups: [4, 5] })).toEqual(['u2 Delta Connected']);
    expect(await list({ groups: [0, 4, 40_000] })).toEqual([]);
    expect(await list({ groups: [] })).toEqual([]);
  });

  it('are filtered by time, by who is there, and to the newest of a uid', async () => {
    expect(await list({ since: at(4) })).toEqual(['u2 Delta Connected', 'u3 Echo Connected']);
    expect(await list({ connectedOnly: true })).toHaveLength(3);
    expect(await list({ newestOnly: true })).toEqual(['u1 Bravo Connected', 'u2 Delta Connected', 'u3 Echo Connected']);
    await event('u1', 'Bravo', 2, 6, [3]);
    expect(await list({ newestOnly: true, connectedOnly: true, groups: [3] })).toEqual([]);
  });
});

describe('the counts', () => {
  it('are those of the tables', async () => {
    const facts = coreDatabaseFacts(run);
    await core.sql`INSERT INTO cot_router (uid) SELECT 'u' FROM generate_series(1, 1234)`;
    await core.sql`INSERT INTO cot_image (cot_id) SELECT min(id) FROM cot_router`;
    expect(await facts.cotCount()).toEqual({ cotEvents: 1234, cotImages: 1 });
    const { maxConnections, serverVersion } = await facts.server();
    expect([maxConnections > 0, serverVersion.startsWith('16.')]).toEqual([true, true]);
  });
});

coreCertificatesContract('over PostgreSQL', async () => {
  await core.sql`DELETE FROM certificate`;
  return { store: certificateStore(run), mark: () => revokedMark(run) };
});

describe('the admin API on these tables', () => {
  let world: ReturnType<typeof adminWorld>;
  beforeEach(() => {
    const store = certificateStore(run);
    world = adminWorld({
      certificates: store,
      groups,
      activeGroups: activeGroups(run),
      endpoints: clientEndpoints(run),
      database: coreDatabaseFacts(run),
    });
    return () => world.end();
  });

  it('shows the dates that somebody wrote without an end as dates', async () => {
    await core.sql`INSERT INTO certificate (subject_dn, user_dn, issuance_date, expiration_date, revocation_date)
      VALUES ('CN=eve', 'eve', now(), 'infinity', '-infinity')`;
    const [row] = await certificateStore(run).list('all', new Date(), 'eve');
    expect(row).toMatchObject({ expirationDate: new Date('9999-12-31'), revocationDate: new Date(0) });
    await core.sql`DELETE FROM certificate`;
  });

  it('shows, revokes and forgets certificates', async () => {
    const now = new Date();
    const store = certificateStore(run);
    const signed = {
      pem: (await world.enrolled('ada')).certificate,
      der: new Uint8Array(),
      serial: '1a',
      hash: 'AA:BB',
      subject: 'CN=ada,OU=CoT,O=Holdfast',
      commonName: 'ada',
      notBefore: now,
      notAfter: new Date(now.getTime() + 1e9),
    };
    const { id } = await store.add(signed, { creator: 'ada', clientUid: 'uid-ada' }, now);
    const BASE = '/Marti/api/certadmin/cert';
    expect((await world.ask('GET', `${BASE}?username=ada`)).body.data).toMatchObject([{ id, hash: 'AA:BB' }]);
    expect((await world.ask('DELETE', `${BASE}/AA:BB`)).body.data.revocationDate).not.toBeNull();
    expect((await world.ask('GET', `${BASE}/revoked`)).body.data).toMatchObject([{ id }]);
    expect((await world.ask('DELETE', `${BASE}/delete/${id},2147483647,9999999999`)).status).toBe(200);
    expect((await world.ask('GET', `${BASE}/AA:BB`)).status).toBe(500);
    expect((await world.ask('GET', `${BASE}/%00`)).status).toBe(500);
  });

  it('shows groups, clients and counts', async () => {
    expect((await world.ask('GET', '/Marti/api/groups/all')).body.data.length).toBeGreaterThan(5);
    expect((await world.ask('GET', '/Marti/api/clientEndPoints')).body.data).toHaveLength(4);
    expect((await world.ask('GET', '/Marti/api/database/cotCount')).body.cotEvents).toBe(1234);
    expect((await world.ask('GET', '/actuator/health')).body.components.db.status).toBe('UP');
  });
});

it('the tables are made anew when somebody has dropped their schema', async () => {
  await core.sql`DROP SCHEMA public CASCADE`;
  expect(await migrate(core.sql, CORE_MIGRATIONS, CORE_DATABASE_MIGRATED)).toEqual(
    CORE_MIGRATIONS.map(({ number }) => number),
  );
  expect(await groups.list()).toMatchObject([{ name: '__ANON__' }]);
});

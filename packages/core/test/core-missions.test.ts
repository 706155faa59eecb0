// Pure parts of the missions: texts in XML, rates, tokens, what the stream hears when the database
// is away.

import { SaxesParser } from 'saxes';
import { describe, expect, it } from 'vitest';
import { AppError } from '@holdfast/kit/app-error';
import { rateLimit } from '@holdfast/kit/rate-limit';
import { memoryLog } from '../../../test/http/fake-deps.ts';
import { CoreFault } from '../http/answers.ts';
import { CachedMissionPosts } from '../missions/create-missions.ts';
import { MissionTokens } from '../missions/credentials.ts';
import { CHANGE_RATE, type MissionWithGroups, PASSWORD_RATE } from '../model/mission.ts';
import { eventXml } from '../model/stored-event.ts';
import { escapeXml, unescapeXml } from '../model/wire-text.ts';
import { adminWorld, byCertificate, START } from './fake-core-admin.ts';
import { NO_DRAFT, noMissions } from './fake-core-missions.ts';

function attributeOf(xml: string, name: string): string | undefined {
  let found: string | undefined;
  const parser = new SaxesParser();
  parser.on('opentag', ({ attributes }) => void (found ??= attributes[name]));
  parser.on('error', (error) => {
    throw error;
  });
  parser.write(xml).close();
  return found;
}

describe('texts of missions', () => {
  it('are the same again after a parser has read them, save what no XML can hold', () => {
    const odd = `<&>"' \t\r\n Ünï 🦊 ]]>`;
    expect(attributeOf(`<a b="${escapeXml(odd)}"/>`, 'b')).toBe(odd);
    expect(escapeXml('a\u0000b\u{FFFE}c\uD800')).toBe('a\uFFFDb\uFFFDc\uFFFD');
    expect(unescapeXml(escapeXml(odd))).toBe(odd);
    expect(unescapeXml('&#x110000;&#0;&nbsp;&#65;')).toBe('&#x110000;&#0;&nbsp;A');
  });

  it('stand in a stored event as they were, and what is missing has its usual value', () => {
    const none = { access: null, qos: null, opex: null, caveat: null, releaseableTo: null };
    const event = { ...none, uid: '"&', type: 'a-f-G', how: null, time: new Date(START), start: null, stale: null };
    const xml = eventXml({ ...event, lat: null, lon: null, hae: null, ce: null, le: null, detail: null });
    expect(attributeOf(xml, 'uid')).toBe('"&');
    expect(xml).toContain('time="2026-11-22T10:20:30.007Z" start="1970-01-01T00:00:00.000Z"');
    expect(xml).toContain('<point lat="0" lon="0" hae="0" ce="9999999" le="9999999"/><detail/></event>');
  });
});

describe('a rate', () => {
  it('allows a burst, then so many a second, for each person whatever the case of the name', () => {
    let nowMs = START;
    const isWithin = rateLimit({ burst: 3, perSecond: 2, now: () => new Date(nowMs) });
    expect(['ada', 'Ada', 'ADA', 'ada'].map(isWithin)).toEqual([true, true, true, false]);
    expect(isWithin('bob')).toBe(true);
    nowMs += 1_000;
    expect([isWithin('ada'), isWithin('ada'), isWithin('ada')]).toEqual([true, true, false]);
    nowMs -= 3_600_000;
    expect(isWithin('ada')).toBe(false);
  });
});

/** A mission of Ops with a password, owned by ada. */
async function oneMission() {
  const none = noMissions();
  const of = { id: 1, guid: 'g', name: 'One', creatorUid: '', createTime: new Date(START) };
  const groups: MissionWithGroups['groups'][number][] = [];
  const mission: MissionWithGroups = { ...NO_DRAFT, ...of, passwordHash: 'no hash', groups };
  const world = adminWorld({
    missions: {
      ...none,
      reads: { ...none.reads, find: async () => mission },
      subscriptions: {
        ...none.subscriptions,
        roleOf: async (_, username) => (username === 'ada' ? 'MISSION_OWNER' : undefined),
      },
    },
  });
  world.people.addGroup('core_Ops');
  for (const name of ['ada', 'bob']) world.people.addPerson(name, 'x').groups.push('core_Ops');
  const [ops] = await world.options.groups.ensure(['Ops']);
  groups.push({ name: 'Ops', place: ops?.bitpos ?? 0 });
  return world;
}

describe('how often a person may', () => {
  it('try passwords is one limit, whatever they try them for', async () => {
    const world = await oneMission();
    const bob = byCertificate('bob');
    const statuses: number[] = [];
    for (let n = 0; n <= PASSWORD_RATE.burst; n++) {
      const [method, rest] = n % 2 === 0 ? ['GET', '?'] : ['PUT', '/subscription?uid=b&'];
      const { status } = await world.ask(method, `/Marti/api/missions/One${rest}password=x`, { as: bob });
      statuses.push(status);
    }
    expect(statuses).toEqual([...Array.from({ length: PASSWORD_RATE.burst }, () => 403), 429]);
    world.end();
  });

  it('change a mission counts each change once', async () => {
    const world = await oneMission();
    const change = async () => {
      const { status } = await world.ask('PUT', '/Marti/api/missions/One', { as: byCertificate('ada') });
      return status;
    };
    for (let n = 0; n < CHANGE_RATE.burst; n++) expect(await change()).toBe(200);
    expect(await change()).toBe(429);
    world.end();
  });

  it('make missions is the same limit', async () => {
    const world = adminWorld();
    world.people.addGroup('core_Ops');
    world.people.addPerson('ada', 'x').groups.push('core_Ops');
    const make = async (name: number) => {
      const { status } = await world.ask('PUT', `/Marti/api/missions/${name}`, { as: byCertificate('ada') });
      return status;
    };
    for (let n = 0; n < CHANGE_RATE.burst; n++) expect(await make(n)).toBe(201);
    expect(await make(CHANGE_RATE.burst)).toBe(429);
    world.end();
  });
});

it('contents that are there already are read once, for the answer', async () => {
  const world = await oneMission();
  const { reads, writes } = world.options.missions;
  let requested = 0;
  reads.contents = async () => (requested++, { uids: [], files: [], isCut: false });
  writes.addContent = async () => ({ uids: [], hashes: [] });
  const headers = { 'content-type': 'application/json' };
  const input = { as: byCertificate('ada'), json: { uids: ['a'] }, headers };
  expect((await world.ask('PUT', '/Marti/api/missions/One/contents', input)).status).toBe(200);
  expect(requested).toBe(1);
  world.end();
});

describe('tokens of missions', () => {
  const tokens = new MissionTokens({ key: Buffer.alloc(32, 1), issuer: 'x' });
  const mission = { name: 'A', guid: 'g-1', passwordHash: 'one' };

  it('say what they stand for, for their mission alone, and end with the password', async () => {
    const subscription = await tokens.ofSubscription(mission, 's-1');
    const access = await tokens.ofAccess(mission);
    expect(await tokens.read(subscription, mission)).toEqual({ kind: 'subscription', uid: 's-1' });
    expect(await tokens.read(access, mission)).toEqual({ kind: 'access' });
    expect(await tokens.read(access, { ...mission, passwordHash: 'two' })).toBeUndefined();
    expect(await tokens.read(subscription, { ...mission, guid: 'g-2' })).toBeUndefined();
  });

  it('are nothing when another key, no key or nobody signed them', async () => {
    const others = new MissionTokens({ key: Buffer.alloc(32, 2), issuer: 'x' });
    const body = Buffer.from(JSON.stringify({ sub: 'ACCESS', MISSION_GUID: 'g-1' })).toString('base64url');
    const unsigned = `${Buffer.from('{"alg":"none"}').toString('base64url')}.${body}.`;
    for (const token of [await others.ofAccess(mission), unsigned, '', 'a.b.c', 'x'.repeat(5_000)])
      expect(await tokens.read(token, mission)).toBeUndefined();
  });
});

describe('events for a mission while the database is away', () => {
  it('go to nobody, never reject, are tried once a second, and are logged once', async () => {
    let nowMs = START;
    let requested = 0;
    const log = memoryLog();
    const parts = noMissions();
    const named = () => {
      requested++;
      return Promise.reject(new AppError('unavailable', 'The database does not answer'));
    };
    const posts = new CachedMissionPosts({
      ...parts,
      reads: { ...parts.reads, named },
      audience: async () => [],
      log,
      now: () => new Date(nowMs),
    });
    const post = () =>
      posts.post(
        { name: 'A', guid: undefined },
        {
          uid: 'u',
          type: 'a',
          callsign: undefined,
          iconsetPath: undefined,
          color: undefined,
          point: { lat: 0, lon: 0 },
        },
        { username: 'a', clientUid: 'c', places: [2] },
      );
    for (let index = 0; index < 100; index++) expect(await post()).toEqual([]);
    expect(requested).toBe(1);
    nowMs += 1_000;
    expect(await post()).toEqual([]);
    expect(requested).toBe(2);
    expect(log.events.filter(({ event }) => event === 'mission.post_failed')).toHaveLength(1);
  });
});

it('a mission that is full is told of once a minute, however many there are', async () => {
  const log = memoryLog();
  const parts = noMissions();
  const groups = [{ name: 'Ops', place: 2 }];
  const posts = new CachedMissionPosts({
    ...parts,
    reads: {
      ...parts.reads,
      named: async (name) => [{ id: Number(name), guid: name, name, groups } as unknown as MissionWithGroups],
      uids: async () => [],
    },
    writes: {
      addContent: async () => {
        throw new CoreFault('conflict', 'full');
      },
    },
    subscriptions: {
      of: async () => [
        { uid: 's', clientUid: 'c', username: 'a', createTime: new Date(START), role: 'MISSION_OWNER', token: 't' },
      ],
    },
    audience: async () => [],
    log,
    now: () => new Date(START),
  });
  const sender = { username: 'a', clientUid: 'd', places: [2] };
  for (let n = 1; n <= 5; n++) {
    const unsaid = { callsign: undefined, iconsetPath: undefined, color: undefined };
    const event = { uid: 'u', type: 'a', ...unsaid, point: { lat: 0, lon: 0 } };
    const devices = await posts.post({ name: String(n), guid: undefined }, event, sender);
    expect(devices).toEqual([{ clientUid: 'c', username: 'a' }]);
  }
  expect(log.events.filter(({ event }) => event === 'mission.full')).toHaveLength(1);
});

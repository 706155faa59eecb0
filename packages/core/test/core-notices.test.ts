// A word of the operators to everybody on the stream: who may say it, what clients get, and what it
// does not wait for.

import { CoTParser } from '@tak-ps/node-cot';
import { afterAll, describe, expect, it } from 'vitest';
import { coreNoticesContract } from '../../../test/core/core-notices-contract.ts';
import { fakeVacuum } from '../../../test/database/fake-vacuum.ts';
import { notice } from '../stream/server-events.ts';
import { serverEventProtobuf, serverEventXml } from '../stream/wire/xml-write-event.ts';
import { adminWorld, byCertificate, NODE_ID } from './fake-core-admin.ts';
import { cotWorld, sa, settled } from './fake-cot-stream.ts';

const PATH = '/Marti/api/stream/notices';
const TEXT = 'Maintenance <now> & "soon", für alle 🦊\nback in 5 minutes';
const NOW = new Date('2026-11-22T05:30:00.700Z');

coreNoticesContract('in memory', async () => {
  const { coreNotices, clients, notices } = fakeVacuum();
  return { core: coreNotices, clients, reported: async () => [...(notices ?? [])], end: async () => undefined };
});

it('a core without the call says so', async () => {
  const vacuum = fakeVacuum();
  vacuum.notices = undefined;
  expect(await vacuum.coreNotices.announce('a')).toBeUndefined();
});

describe('the call', () => {
  const world = adminWorld();
  afterAll(() => world.end());

  it('is answered with how many it went to', async () => {
    expect(await world.ask('POST', PATH, { json: { text: TEXT } })).toMatchObject({
      status: 200,
      body: { version: '3', type: 'StreamNotice', data: { clients: 0 }, nodeId: NODE_ID },
    });
    expect(world.told).toHaveLength(1);
  });

  it.each([{}, { text: '' }, { text: 7 }, { text: 'a\u0007' }, { text: 'a', to: 'b' }, { text: 'x'.repeat(1001) }])(
    'is 400 for %j, and says nothing',
    async (json) => {
      const before = world.told.length;
      expect((await world.ask('POST', PATH, { json })).status).toBe(400);
      expect(world.told).toHaveLength(before);
    },
  );

  it('is for administrators alone', async () => {
    const before = world.told.length;
    expect((await world.ask('POST', PATH, { json: { text: 'a' }, as: byCertificate('ada') })).status).toBe(403);
    expect(world.told).toHaveLength(before);
  });
});

describe('the event', () => {
  const event = notice(TEXT, NOW);
  const forms = {
    xml: async () => CoTParser.from_xml(serverEventXml(event, NOW).toString()),
    protobuf: async () => CoTParser.from_proto(messageOf(serverEventProtobuf(event, NOW))),
  };

  it.each(['xml', 'protobuf'] as const)(
    'is chat of All Chat Rooms to a client that is not ours, in %s',
    async (form) => {
      const read = await forms[form]();
      const { type, how, uid, stale } = read.raw.event._attributes;
      expect({ type, how, uid, stale }).toEqual({
        type: 'b-t-f',
        how: 'h-g-i-g-o',
        uid: event.uid,
        stale: '2026-11-23T05:30:00.700Z',
      });
      const { __chat, remarks, link } = read.raw.event.detail as unknown as Record<string, { _attributes: object }>;
      const id = event.uid.split('.')[3];
      expect(event.uid).toBe(`GeoChat.Holdfast.All Chat Rooms.${id}`);
      expect(__chat?._attributes).toMatchObject({
        parent: 'RootContactGroup',
        chatroom: 'All Chat Rooms',
        id: 'All Chat Rooms',
        senderCallsign: 'Holdfast',
        messageId: id,
      });
      expect(__chat).toMatchObject({
        chatgrp: { _attributes: { uid0: 'Holdfast', uid1: 'All Chat Rooms', id: 'All Chat Rooms' } },
      });
      expect(link?._attributes).toMatchObject({ uid: 'Holdfast', relation: 'p-p' });
      expect(remarks).toMatchObject({
        _attributes: { source: 'BAO.F.ATAK.Holdfast', to: 'All Chat Rooms' },
        _text: TEXT,
      });
    },
  );

  it('has a uid of its own each time', () => {
    expect(new Set(Array.from({ length: 10 }, () => notice(TEXT, NOW).uid)).size).toBe(10);
  });
});

describe('on the stream', () => {
  it('goes to each connection once, whatever its groups, and to no table', async () => {
    const world = cotWorld();
    const { stream, join, people, stored } = world;
    people.set('off', []);
    people.set('ops', ['Ops']);
    const clients = [await join('ada'), await join('off'), await join('ops'), await join('ada')];
    await clients[0]?.say(sa('uid-ada', 'ADA'));
    const before = stored.length;
    world.isFull = true;
    expect(stream.toEverybody(notice(TEXT, NOW))).toBe(4);
    await settled();
    for (const client of clients)
      expect(client.names().filter((name) => name.startsWith('b-t-f GeoChat.Holdfast.'))).toHaveLength(1);
    expect(stored).toHaveLength(before);
    await stream.close();
  });

  it('waits for nobody: one that does not read has it waiting, the others have it', async () => {
    const { stream, join } = cotWorld();
    const [ada, slow] = [await join('ada'), await join('slow')];
    slow.rest();
    for (let n = 0; n < 200; n++) stream.toEverybody(notice('x'.repeat(1000), NOW));
    await settled();
    expect(stream.toEverybody(notice('the last', NOW))).toBe(2);
    await settled();
    expect(ada.heard().at(-1)).toContain('the last');
    expect(stream.list().find(({ username }) => username === 'slow')?.pendingWrites).toBeGreaterThan(0);
    await stream.close();
  });

  it('reaches nobody when nobody is there', async () => {
    const { stream } = cotWorld();
    expect(stream.toEverybody(notice('a', NOW))).toBe(0);
    await stream.close();
  });
});

/** Without the frame of the stream. */
function messageOf(frame: Buffer): Uint8Array {
  let at = 1;
  while ((frame[at++] ?? 0) >= 0x80);
  return new Uint8Array(frame.subarray(at));
}

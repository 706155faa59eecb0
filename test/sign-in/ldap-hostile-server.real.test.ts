// A directory that is broken, or is none, or wants to do harm: each call ends in time with a clear failure.

import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { BIND, done, entry, type LdapMood, message, SEARCH, tlv } from './fake-ldap-server.ts';
import { ldapWorld, PASSWORD, SERVICE_PASSWORD } from './fake-ldap-world.ts';

const END_MS = 1500;
const own = { cn: ['alice'], memberOf: [] };

/** A message whose parts say other lengths than they have. */
function crooked(id: number, operation: number[]): Buffer {
  return Buffer.from([0x30, 3 + operation.length, 0x02, 0x01, id, ...operation]);
}

function forEver(socket: Parameters<LdapMood>[1], piece: Buffer): void {
  const block = Buffer.concat(Array.from({ length: 2000 }, () => piece));
  const pour = (): void => {
    while (!socket.destroyed && socket.writableLength < 1_000_000) socket.write(block);
    if (!socket.destroyed) setTimeout(pour, 1);
  };
  pour();
}

const MOODS: Record<string, LdapMood> = {
  'sends garbage': (_, socket) => socket.write(Buffer.from('a7c1ff00deadbeef'.repeat(40), 'hex')),
  'speaks HTTP': (_, socket) => socket.end('HTTP/1.1 400 Bad Request\r\n\r\n'),
  'sends half a message and hangs': ({ id }, socket) => socket.write(done(id, BIND).subarray(0, 6)),
  'sends half a message and closes': ({ id }, socket) => socket.end(done(id, BIND).subarray(0, 6)),
  'sends one byte': (_, socket) => socket.write(Buffer.from([0x30])),
  'answers under another number': ({ id }, socket) => socket.write(done(id + 1, BIND)),
  'answers under number 0': (_, socket) => socket.write(done(0, BIND)),
  'answers under a negative number': (_, socket) => socket.write(done(-1, BIND)),
  'announces two gigabytes': (_, socket) => socket.write(Buffer.from('30847fffffff020101', 'hex')),
  'announces a length below zero': (_, socket) => socket.write(Buffer.from('3084ffffffff020101', 'hex')),
  'announces a length of 16 bytes': (_, socket) => socket.write(Buffer.from(`3090${'ff'.repeat(20)}`, 'hex')),
  'announces no length': (_, socket) => socket.write(Buffer.from('30800201016107', 'hex')),
  'sends an empty message': (_, socket) => socket.write(Buffer.from('3000', 'hex')),
  'sends empty messages for ever': (_, socket) => forEver(socket, Buffer.from('3000', 'hex')),
  closes: (_, socket) => socket.end(),
  resets: (_, socket) => socket.resetAndDestroy(),
  hangs: () => {},
  'says that it closes, and hangs': (_, socket) => socket.write(done(0, 0x78, 52, 'bye')),
  'ends what was not begun': ({ id, kind }, socket) => socket.write(done(id, kind === 'bind' ? SEARCH : BIND)),
  'shows an entry to a bind': ({ id, kind }, socket) =>
    kind === 'bind' ? socket.write(entry(id, 'cn=x', own)) : socket.write(done(id, BIND)),
  'answers with a request': ({ id }, socket) => socket.write(message(id, tlv(0x63, ''))),
  'has no result code': ({ id }, socket) => socket.write(crooked(id, [BIND, 0])),
  'has a result code of 9 bytes': ({ id }, socket) =>
    socket.write(crooked(id, [BIND, 11, 0x0a, 9, ...Array(9).fill(0)])),
  'has parts longer than the whole': ({ id }, socket) =>
    socket.write(crooked(id, [BIND, 7, 0x0a, 1, 0, 4, 0x70, 4, 0])),
  'has values longer than their set, which are read for ever elsewhere': ({ id }, socket) =>
    socket.write(crooked(id, [0x64, 12, 4, 0, 0x30, 8, 0x30, 0x7f, 4, 1, 0x61, 0x31, 0x7f, 4])),
  'has values with a length below zero': ({ id }, socket) =>
    socket.write(crooked(id, [0x64, 16, 4, 0, 0x30, 12, 0x30, 10, 4, 0, 0x31, 6, 4, 0x84, 0xff, 0xff, 0xff, 0xfa])),
  'answers each request with a result of its own making': ({ id, kind }, socket) =>
    socket.write(done(id, kind === 'bind' ? BIND : SEARCH, 80, `no ${PASSWORD}\n${SERVICE_PASSWORD}\u0007`)),
  'shows entries for ever': ({ id, kind }, socket, honest) =>
    kind === 'search' ? forEver(socket, entry(id, 'cn=x', own)) : honest(),
  'refers to other directories for ever': ({ id, kind }, socket, honest) =>
    kind === 'search' ? forEver(socket, message(id, tlv(0x73, tlv(4, 'ldap://elsewhere')))) : honest(),
  'shows an entry and hangs': ({ id, kind }, socket, honest) =>
    kind === 'search' ? socket.write(entry(id, 'cn=x', own)) : honest(),
  'sends an entry without end': ({ id, kind }, socket, honest) => {
    if (kind !== 'search') return honest();
    socket.write(entry(id, 'cn=x', { cn: ['x'.repeat(3_000_000)] }).subarray(0, -2));
    forEver(socket, Buffer.from('x'));
  },
  'sends an entry byte by byte': ({ id, kind }, socket, honest) => {
    if (kind !== 'search') return honest();
    const bytes = entry(id, 'cn=x', { cn: ['x'.repeat(3000)] });
    let at = 0;
    const drip = (): void => {
      if (socket.destroyed || at >= bytes.length) return;
      socket.write(bytes.subarray(at, ++at));
      setTimeout(drip, 1);
    };
    drip();
  },
};

describe('a directory that', () => {
  let world: Awaited<ReturnType<typeof ldapWorld>>;

  beforeEach(async () => {
    world = await ldapWorld({ withinMs: 400 });
  });
  afterEach(() => world.end());

  function calls() {
    const { directory } = world;
    return [
      directory.signIn('core', 'alice', PASSWORD),
      directory.signIn('web', 'alice', PASSWORD),
      directory.find('alice'),
      directory.probe('core', 'stack_admin'),
    ];
  }

  async function expectFailures(): Promise<void> {
    const begun = performance.now();
    for (const outcome of await Promise.allSettled(calls())) {
      expect(outcome).toMatchObject({ status: 'rejected', reason: { name: 'AppError' } });
      if (outcome.status !== 'rejected') continue;
      expect(['unavailable', 'upstream']).toContain(outcome.reason.code);
      expect(outcome.reason.message).toMatch(/^The directory at ldap:\/\/127\.0\.0\.1:\d+ [^\p{Cc}]{5,300}$/u);
      const shown = `${outcome.reason.stack} ${JSON.stringify(outcome.reason)} ${String(outcome.reason.cause)}`;
      for (const secret of [PASSWORD, SERVICE_PASSWORD]) expect(shown).not.toContain(secret);
    }
    expect(performance.now() - begun).toBeLessThan(END_MS);
    expect(JSON.stringify(world.logged)).not.toContain('secret');
  }

  async function expectGood(): Promise<void> {
    world.server.mood = (_request, _socket, honest) => honest();
    world.server.welcome = () => {};
    const [core, web, found, members] = await Promise.all(calls());
    for (const one of [core, web, found]) expect(one).toMatchObject({ username: 'alice', groups: ['stack_admin'] });
    expect(members).toBe(2);
  }

  it.each(Object.entries(MOODS))('%s fails each call in time, and is asked again', async (_, mood) => {
    world.server.mood = mood;
    await expectFailures();
    await expectGood();
  });

  it.each(Object.entries(MOODS))('%s once connections are kept fails each call in time', async (_, mood) => {
    await expectGood();
    world.server.mood = mood;
    await expectFailures();
    await expectGood();
  });

  it.each(Object.entries(MOODS))('%s when a user binds lets nobody in', async (_, mood) => {
    world.server.mood = (request, socket, honest) =>
      request.dn.startsWith('cn=alice') && request.identity !== '' ? mood(request, socket, honest) : honest();
    for (const base of ['core', 'web'] as const)
      await expect(world.directory.signIn(base, 'alice', PASSWORD)).rejects.toMatchObject({ name: 'AppError' });
    await expectGood();
  });

  it('speaks before it is asked is not listened to', async () => {
    world.server.welcome = (socket) => socket.write(Buffer.concat([done(1, BIND), done(2, BIND), done(3, BIND)]));
    world.server.mood = () => {};
    await expectFailures();
    await expectGood();
  });

  it('answers more than was asked is not asked again on that connection', async () => {
    world.server.mood = ({ id, kind }, socket, honest) => {
      honest();
      if (kind === 'bind') socket.write(Buffer.concat([done(id + 1, BIND), done(id + 2, BIND), done(id + 1, SEARCH)]));
    };
    await Promise.allSettled(calls());
    await expectGood();
  });

  it('accepts no connection is unavailable', async () => {
    await world.server.close();
    await expectFailures();
    await expect(world.directory.signIn('web', 'alice', PASSWORD)).rejects.toMatchObject({
      code: 'unavailable',
      message: expect.stringMatching(/refused the connection$/),
    });
  });

  it('sends bytes at random never lets anybody in, and never ends the process', async () => {
    for (let round = 0; round < 60; round++) {
      world.server.mood = ({ id, kind }, socket, honest) => {
        if (Math.random() < 0.4) return honest();
        const right = kind === 'bind' ? done(id, BIND) : Buffer.concat([entry(id, 'cn=alice', own), done(id, SEARCH)]);
        for (let count = 0; count < 3; count++) right[Math.floor(Math.random() * right.length)] = Math.random() * 256;
        socket.end(right.subarray(0, Math.floor(Math.random() * 2 * right.length)));
      };
      for (const outcome of await Promise.allSettled(calls())) {
        if (outcome.status === 'rejected') expect(outcome.reason).toMatchObject({ name: 'AppError' });
      }
    }
    await expectGood();
  });
});

// The protocol beside binds and searches: framing, other operations, limits of connections, hostile
// bytes.

import fc from 'fast-check';
import { afterEach, describe, expect, it } from 'vitest';
import { fakeRoster } from './fake-roster.ts';
import {
  bindOperation,
  bool,
  control,
  CORE,
  envelope,
  equal,
  EVERYTHING,
  int,
  like,
  page,
  PEOPLE,
  searchOperation,
  SERVICE,
  startLdap,
  str,
  type TestServer,
  tlv,
  user,
  WEB,
  type Wire,
} from './ldap-wire.ts';
import { runs } from '../../../test/support/runs.ts';

let server: TestServer;
afterEach(async () => server.stop());

const NOTICE = '1.3.6.1.4.1.1466.20036';

/** What a connection got last before it was closed. */
async function endOf(wire: Wire): Promise<{ code: number; name: string | undefined } | undefined> {
  await wire.closed;
  const last = wire.answers.at(-1);
  return last && { code: last.code, name: last.name };
}

describe('other operations', () => {
  it('that write get 50 with the tag of their answer', async () => {
    server = await startLdap();
    const wire = await server.asService();
    for (const [tag, answer] of [
      [0x66, 0x67],
      [0x68, 0x69],
      [0x4a, 0x6b],
      [0x6c, 0x6d],
    ]) {
      expect(await wire.ask(tlv(tag ?? 0, str(user('Alice'))))).toMatchObject({ code: 50, tag: answer });
    }
  });

  it('compare what the client may see', async () => {
    server = await startLdap();
    const compare = (dn: string, attribute: string, value: string): Buffer =>
      tlv(0x6e, str(dn), tlv(0x30, str(attribute), str(value)));
    const wire = server.wire();
    expect((await wire.ask(compare(user('Alice'), 'cn', 'alice'))).code).toBe(50);
    await wire.bind(user('Alice'), 'right');
    for (const [dn, attribute, value, code] of [
      [user('Alice'), 'CN', 'ALICE', 6],
      [user('Alice'), '2.5.4.3', 'alice', 6],
      [user('Alice'), 'cn', 'bob', 5],
      [user('Alice'), 'memberOf', `CN=staff,ou=groups,${CORE}`, 6],
      [user('Alice'), 'description', 'x', 16],
      [user('bob'), 'cn', 'bob', 32],
      [user('Alice', WEB), 'cn', 'alice', 50],
      ['nonsense', 'cn', 'alice', 34],
    ] as const) {
      expect((await wire.ask(compare(dn, attribute, value))).code, `${dn} ${attribute}`).toBe(code);
    }
  });

  it('extended: who am I is answered, StartTLS and others get 2', async () => {
    server = await startLdap();
    const wire = server.wire();
    const whoAmI = tlv(0x77, str('1.3.6.1.4.1.4203.1.11.3', 0x80));
    expect(await wire.ask(whoAmI)).toMatchObject({ code: 0, tag: 0x78, value: '' });
    await wire.bind(user('Alice'), 'right');
    expect(await wire.ask(whoAmI)).toMatchObject({ code: 0, value: `dn:${user('Alice')}` });
    const startTls = await wire.ask(tlv(0x77, str('1.3.6.1.4.1.1466.20037', 0x80)));
    expect(startTls).toMatchObject({ code: 2, tag: 0x78 });
    expect(startTls.text).not.toBe('');
  });

  it('with critical controls that are not known get 12, with others they run', async () => {
    server = await startLdap();
    const wire = await server.asService();
    const critical = [control('1.2.3.4', true)];
    for (const operation of [searchOperation(CORE), tlv(0x4a, user('bob')), tlv(0x77, str('1.2.3', 0x80))]) {
      expect((await wire.ask(operation, critical)).code).toBe(12);
    }
    expect((await wire.ask(tlv(0x77, str('1.3.6.1.4.1.4203.1.11.3', 0x80)), [page(1)])).code).toBe(12);
    const manage = '2.16.840.1.113730.3.4.2';
    for (const controls of [[control('1.2.3.4', false)], [control(manage, true)], [control(manage, false)]]) {
      expect((await wire.ask(searchOperation(CORE), controls)).code).toBe(0);
    }
  });

  it('unbind closes without a word', async () => {
    server = await startLdap();
    const wire = await server.asService();
    wire.send(envelope(9, tlv(0x42)));
    await wire.closed;
    expect(wire.answers).toHaveLength(1);
  });
});

describe('bytes that are no request', () => {
  const good = envelope(1, bindOperation(user('Alice'), 'right'));
  const long = Buffer.alloc(70_000, 'x').toString();
  it.each([
    ['a hello of TLS', Buffer.from([0x16, 3, 1, 0, 200])],
    ['a request of HTTP', Buffer.from('GET / HTTP/1.1\r\n')],
    ['one wrong byte', Buffer.from([0])],
    ['indefinite length', Buffer.from([0x30, 0x80, 2, 1, 1, 0, 0])],
    ['length of five bytes', Buffer.from([0x30, 0x85, 0, 0, 0, 0, 7])],
    ['length of 4 GiB', Buffer.from([0x30, 0x84, 255, 255, 255, 255])],
    ['length of 2 GiB', Buffer.from([0x30, 0x84, 127, 255, 255, 255])],
    ['an anonymous message over 64 KiB', envelope(1, searchOperation(long))],
    ['an empty message', tlv(0x30)],
    ['an empty message id', tlv(0x30, tlv(2), bindOperation('', ''))],
    ['message id 0', envelope(0, bindOperation('', ''))],
    ['a negative message id', envelope(-1, bindOperation('', ''))],
    ['a message id of five bytes', tlv(0x30, tlv(2, 'abcde'), bindOperation('', ''))],
    ['an answer', envelope(1, tlv(0x61, int(0, 10), str(''), str('')))],
    ['an operation of an unknown kind', envelope(1, tlv(0x7e))],
    ['a tag of several bytes', envelope(1, Buffer.from([0x7f, 0x81, 0x01, 0]))],
    ['a name longer than its request', envelope(1, tlv(0x60, int(3), Buffer.from([4, 100, 65])))],
    [
      'a search without a filter',
      envelope(1, tlv(0x63, str(CORE), int(2, 10), int(0, 10), int(0), int(0), bool(false))),
    ],
    ['a last element longer than its request', envelope(1, tlv(0x77, Buffer.from([0x80, 100, 65])))],
    [
      'a length that points back',
      envelope(1, searchOperation(CORE, { filter: tlv(0xa0, Buffer.from([0x87, 0x84, 255, 255, 255, 0xfa])) })),
    ],
    ['an empty abandon', envelope(1, tlv(0x50))],
    ['a control that is none', tlv(0x30, int(1), searchOperation(CORE), tlv(0xa0, str('x')))],
  ])('%s: notice of disconnection, and the end', async (_, bytes) => {
    server = await startLdap();
    const wire = server.wire().send(bytes);
    expect(await endOf(wire)).toEqual({ code: 2, name: NOTICE });
    expect(wire.answers).toHaveLength(1);
    expect(await server.wire().bind(user('Alice'), 'right')).toBe(0);
  });

  it('a scope or a limit out of range gets 2', async () => {
    server = await startLdap();
    const wire = await server.asService();
    expect((await wire.search(CORE, { sizeLimit: -1 })).code).toBe(2);
    const odd = tlv(0x63, str(CORE), int(9, 10), int(0, 10), int(0), int(0), bool(false), EVERYTHING, tlv(0x30));
    expect((await wire.ask(odd)).code).toBe(2);
  });

  it('a message id that is in use ends the connection', async () => {
    const fake = fakeRoster(PEOPLE);
    server = await startLdap({ fake: { ...fake, groups: async () => new Promise(() => undefined) } });
    const wire = await server.asService();
    wire.send(envelope(7, searchOperation(CORE)), envelope(7, searchOperation(CORE)));
    expect(await endOf(wire)).toEqual({ code: 2, name: NOTICE });
  });

  it('after a bind a message may have 1 MiB, and no more', async () => {
    server = await startLdap();
    const wire = await server.asService();
    expect((await wire.search(CORE, { filter: equal('cn', 'x'.repeat(900_000)) })).code).toBe(0);
    wire.send(envelope(9, searchOperation(CORE, { filter: equal('cn', 'x'.repeat(1_100_000)) })));
    expect(await endOf(wire)).toEqual({ code: 2, name: NOTICE });
  });

  it('cut anywhere, valid requests are answered alike', async () => {
    server = await startLdap();
    const requests = Buffer.concat([
      good,
      envelope(2, searchOperation(CORE, { attributes: ['cn'] })),
      envelope(3, searchOperation(user('Alice'), { scope: 0, filter: like('cn', [0x80, 'A']) })),
    ]);
    const whole = server.wire().send(requests);
    await whole.result(3);
    await whole.result(2);
    await fc.assert(
      fc.asyncProperty(fc.uniqueArray(fc.nat(requests.length), { maxLength: 12 }), async (cuts) => {
        const wire = server.wire();
        let last = 0;
        for (const cut of [...cuts.toSorted((a, b) => a - b), requests.length]) {
          wire.send(requests.subarray(last, cut));
          last = cut;
          await new Promise(setImmediate);
        }
        await wire.result(2);
        await wire.result(3);
        const sorted = (each: Wire): string[] => each.answers.map((answer) => JSON.stringify(answer)).toSorted();
        expect(sorted(wire)).toEqual(sorted(whole));
        wire.socket.destroy();
      }),
      { numRuns: runs(40) },
    );
  });

  it('at random, before and after a bind: answered or closed, and others are served', async () => {
    server = await startLdap();
    const valid = [
      good,
      envelope(5, searchOperation(CORE, { attributes: ['*', '+'] }), [page(2)]),
      envelope(6, searchOperation('', { scope: 0, filter: tlv(0xa2, like('cn', [0x81, 'x'])) })),
      envelope(7, tlv(0x77, str('1.3.6.1.4.1.4203.1.11.3', 0x80))),
      envelope(8, tlv(0x6e, str(user('Alice')), tlv(0x30, str('cn'), str('x')))),
    ];
    const mutated = fc
      .tuple(fc.constantFrom(...valid), fc.array(fc.tuple(fc.nat(200), fc.nat(255)), { minLength: 1, maxLength: 4 }))
      .map(([message, changes]) => {
        const bytes = Buffer.from(message);
        for (const [at, value] of changes) bytes[at % bytes.length] = value;
        return bytes;
      });
    const random = fc.uint8Array({ maxLength: 60 }).map((bytes) => tlv(0x30, Buffer.from(bytes)));
    const junk = fc.uint8Array({ minLength: 1, maxLength: 60 }).map((bytes) => Buffer.from(bytes));
    const unhandled: unknown[] = [];
    const note = (reason: unknown): void => void unhandled.push(reason);
    process.on('unhandledRejection', note);
    const steady = await server.asService();
    await fc.assert(
      fc.asyncProperty(
        fc.boolean(),
        fc.array(fc.oneof(mutated, random, junk), { maxLength: 4 }),
        async (bound, all) => {
          const wire = server.wire();
          if (bound) await wire.bind(user('bob'), 'bobs');
          wire.send(...all);
          wire.socket.end();
          await wire.closed;
          expect((await steady.search(CORE, { attributes: ['1.1'] })).code).toBe(0);
        },
      ),
      { numRuns: runs(200) },
    );
    process.off('unhandledRejection', note);
    expect(unhandled).toEqual([]);
    expect(server.events.filter(({ event }) => event === 'ldap.failed')).toEqual([]);
  });
});

describe('limits of connections', () => {
  it('an anonymous one that completes no message, a half message and an idle one are ended', async () => {
    let nowMs = 0;
    server = await startLdap({ now: () => nowMs, limits: { unreadMs: 40 } });
    const silent = server.wire();
    const half = await server.as(user('Alice'), 'right');
    half.send(good(3).subarray(0, 9));
    const idle = await server.as(user('bob'), 'bobs');
    const busy = await server.asService();
    await busy.search(CORE);
    nowMs = 10_001;
    expect(await endOf(silent)).toEqual({ code: 52, name: NOTICE });
    await busy.search(CORE);
    expect([half.isClosed, idle.isClosed]).toEqual([false, false]);
    nowMs = 31_000;
    expect(await endOf(half)).toEqual({ code: 52, name: NOTICE });
    await busy.search(CORE);
    nowMs = 15 * 60_000 + 5_000;
    expect(await endOf(idle)).toEqual({ code: 52, name: NOTICE });
    expect(busy.isClosed).toBe(false);
  });

  it('when there are too many, the oldest anonymous idle one gives way, and a signed-in one never', async () => {
    server = await startLdap({ limits: { connections: 3 } });
    const first = await server.asService();
    const second = server.wire();
    await second.search('', { scope: 0 });
    const third = server.wire();
    await third.search('', { scope: 0 });
    expect(await server.wire().bind(user('Alice'), 'right')).toBe(0);
    await second.closed;
    expect(await server.wire().bind(user('bob'), 'bobs')).toBe(0);
    await third.closed;
    const late = server.wire();
    await late.closed;
    expect(late.answers).toEqual([]);
    expect((await first.search(CORE)).code).toBe(0);
  });

  it('no more than the allowed requests run at once, and the others wait', async () => {
    const fake = fakeRoster(PEOPLE);
    let running = 0;
    let most = 0;
    const open = Promise.withResolvers<void>();
    const full = Promise.withResolvers<void>();
    const groups: typeof fake.groups = async (...requests) => {
      most = Math.max(most, ++running);
      if (running === 4) full.resolve();
      await open.promise;
      running--;
      return fake.groups(...requests);
    };
    server = await startLdap({ fake: { ...fake, groups }, limits: { requestsInFlight: 4 } });
    const wire = await server.asService();
    const all = Array.from({ length: 20 }, async () => wire.search(`ou=groups,${CORE}`));
    await full.promise;
    await new Promise((resolve) => {
      setTimeout(resolve, 50);
    });
    open.resolve();
    expect((await Promise.all(all)).map(({ code }) => code)).toEqual(Array.from({ length: 20 }, () => 0));
    expect(most).toBe(4);
  });

  it('a client that does not read its answers is cut, and costs no memory until then', async () => {
    const people = Array.from({ length: 3000 }, (_, count) => ({
      username: `u${count}`,
      attributes: { blob: 'x'.repeat(20_000) },
    }));
    server = await startLdap({ people: [...PEOPLE, ...people], limits: { unreadMs: 300 } });
    const wire = await server.asService();
    wire.socket.pause();
    wire.send(envelope(50, searchOperation(CORE)));
    const before = server.roster.calls.length;
    await new Promise((resolve) => {
      setTimeout(resolve, 200);
    });
    expect(server.roster.calls.length - before).toBeLessThan(5);
    await new Promise((resolve) => {
      setTimeout(resolve, 2_500);
    });
    wire.socket.resume();
    await wire.closed;
    expect(wire.answers.some(({ id, tag }) => id === 50 && tag === 0x65)).toBe(false);
    expect(await server.wire().bind(user('Alice'), 'right')).toBe(0);
  });

  it('a megabyte that comes byte by byte is taken', async () => {
    server = await startLdap();
    const wire = await server.asService();
    const request = envelope(60, searchOperation(CORE, { filter: equal('cn', 'x'.repeat(60_000)) }));
    for (const byte of request) wire.socket.write(Buffer.from([byte]));
    expect((await wire.result(60)).code).toBe(0);
  });
});

describe('stopping', () => {
  it('lets running requests end, tells the idle ones, and cuts what takes longer than the grace', async () => {
    const fake = fakeRoster(PEOPLE);
    const open = Promise.withResolvers<void>();
    const requested = Promise.withResolvers<void>();
    const groups: typeof fake.groups = async (...all) => {
      requested.resolve();
      await open.promise;
      return fake.groups(...all);
    };
    server = await startLdap({ fake: { ...fake, groups } });
    const idle = await server.asService();
    const running = await server.as(user(SERVICE, WEB), 'service');
    const found = running.search(WEB);
    await requested.promise;
    const stopped = server.stop(5_000);
    expect(await endOf(idle)).toEqual({ code: 52, name: NOTICE });
    open.resolve();
    expect((await found).code).toBe(0);
    await stopped;

    const stuck = await startLdap({ fake: { ...fake, groups: async () => new Promise(() => undefined) } });
    const wire = (await stuck.asService()).send(envelope(5, searchOperation(CORE)));
    await wire.until((answers) => answers.find(({ id }) => id === 1));
    await stuck.stop(20);
    await wire.closed;
    expect(wire.answers.some(({ id, tag }) => id === 5 && tag === 0x65)).toBe(false);
  });
});

function good(id: number): Buffer {
  return envelope(id, bindOperation(user('Alice'), 'right'));
}

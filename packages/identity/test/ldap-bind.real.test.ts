// Binds: results by case, lock-out, urgency, order on a connection.

import { afterEach, describe, expect, it, vi } from 'vitest';
import type { PasswordVerdict } from '../model/roster.ts';
import { fakeRoster } from './fake-roster.ts';
import {
  bindOperation,
  control,
  CORE,
  envelope,
  equal,
  int,
  PEOPLE,
  searchOperation,
  SERVICE,
  startLdap,
  str,
  type TestServer,
  tlv,
  user,
  WEB,
} from './ldap-wire.ts';

let server: TestServer;
afterEach(async () => server.stop());

describe('the result of a bind', () => {
  it.each([
    ['right password', user('Alice'), 'right', 0],
    ['name in another case', user('ALICE').toUpperCase(), 'right', 0],
    ['blanks in the name', `cn = Alice , ou = users , ${CORE}`, 'right', 0],
    ['app password on the core base', user('Alice'), 'once', 0],
    ['app password on the web base', user('Alice', WEB), 'once', 49],
    ['password on the web base', user('Alice', WEB), 'right', 0],
    ['wrong password', user('Alice'), 'wrong', 49],
    ['unknown user', user('nobody'), 'right', 49],
    ['inactive user', user('gone'), 'gones', 49],
    ['empty password', user('Alice'), '', 49],
    ['empty name', '', '', 50],
    ['empty name with a password', '', 'right', 50],
    ['name outside the bases', 'cn=Alice,ou=users,dc=other', 'right', 50],
    ['name that is none', 'Alice', 'right', 34],
    ['name that is none below the base', `cn=Al"ice,ou=users,${CORE}`, 'right', 34],
    ['name of 9,000 characters', user('x'.repeat(9000)), 'right', 34],
    ['two values in one part', `cn=Alice+sn=x,ou=users,${CORE}`, 'right', 49],
    ['another attribute than cn', `uid=Alice,ou=users,${CORE}`, 'right', 49],
    ['a part too many', `cn=Alice,cn=x,ou=users,${CORE}`, 'right', 49],
    ['a group', `cn=staff,ou=groups,${CORE}`, 'right', 49],
    ['a container', `ou=users,${CORE}`, 'right', 49],
    ['a base', CORE, 'right', 49],
  ])('%s: %s %s -> %i', async (_, dn, password, code) => {
    server = await startLdap();
    const wire = server.wire();
    expect(await wire.bind(dn, password)).toBe(code);
    expect((await wire.ask(tlv(0x77, str('1.3.6.1.4.1.4203.1.11.3', 0x80)))).value?.startsWith('dn:') ?? false).toBe(
      code === 0,
    );
  });

  it('is 2 for version 2, 7 for SASL, 12 with an unknown critical control', async () => {
    server = await startLdap();
    const wire = server.wire();
    expect((await wire.ask(bindOperation(user('Alice'), 'right', 2))).code).toBe(2);
    const sasl = tlv(0x60, int(3), str(user('Alice')), tlv(0xa3, str('PLAIN')));
    expect((await wire.ask(sasl)).code).toBe(7);
    expect((await wire.ask(bindOperation(user('Alice'), 'right'), [control('1.2.3', true)])).code).toBe(12);
    expect(server.roster.attempts).toEqual([]);
    expect((await wire.ask(bindOperation(user('Alice'), 'right'), [control('1.2.3', false)])).code).toBe(0);
  });

  it('never asks for an empty password, one that is no text, or a name that no user has', async () => {
    server = await startLdap();
    const wire = server.wire();
    await wire.bind(user('Alice'), '');
    await wire.ask(tlv(0x60, int(3), str(user('Alice')), str(Buffer.from([0xff, 0xfe]), 0x80)));
    await wire.bind(user('x'.repeat(300)), 'right');
    expect(server.roster.attempts).toEqual([]);
  });

  it('is 51 when there are too many, 1 when the store fails, and neither counts', async () => {
    const fake = fakeRoster(PEOPLE);
    let verdict: PasswordVerdict | 'broken' = 'busy';
    const checkPassword = async (): Promise<PasswordVerdict> => {
      if (verdict === 'broken') throw new Error('secret words of the database');
      return verdict;
    };
    server = await startLdap({ fake, checkPassword });
    const wire = server.wire();
    for (let count = 0; count < 12; count++) expect(await wire.bind(user('Alice'), 'x')).toBe(51);
    verdict = 'broken';
    for (let count = 0; count < 12; count++) {
      const { code, text } = await wire.ask(bindOperation(user('Alice'), 'x'));
      expect([code, text]).toEqual([1, 'the directory cannot answer now']);
    }
    verdict = { pk: 2 };
    expect(await wire.bind(user('Alice'), 'x')).toBe(0);
  });

  it('is 51 when no verdict comes', async () => {
    server = await startLdap({ checkPassword: async () => new Promise(() => undefined), limits: { bindMs: 20 } });
    expect(await server.wire().bind(user('Alice'), 'right')).toBe(51);
  });
});

describe('a connection', () => {
  it('is anonymous again after a bind that fails', async () => {
    server = await startLdap();
    const wire = await server.as(user('Alice'), 'right');
    expect((await wire.search(user('Alice'), { scope: 0 })).code).toBe(0);
    expect(await wire.bind(user('Alice'), 'wrong')).toBe(49);
    expect((await wire.search(user('Alice'), { scope: 0 })).code).toBe(50);
    expect(await wire.bind(user('Alice'), 'right')).toBe(0);
    expect((await wire.ask(bindOperation(user('Alice'), 'right'), [control('1.2.3', true)])).code).toBe(12);
    expect((await wire.search(user('Alice'), { scope: 0 })).code).toBe(50);
  });

  it('reads its own entry by any spelling of its name', async () => {
    server = await startLdap({ fake: fakeRoster([{ username: 'Zoë', password: 'right' }]) });
    const wire = await server.as(user('ZOE\u0308'), 'right');
    for (const name of ['zoë', 'Zoe\u0308']) {
      expect((await wire.search(user(name), { scope: 0 })).entries.map(({ dn }) => dn)).toEqual([user('Zoë')]);
      const own = { filter: equal('distinguishedName', user(name)) };
      expect((await wire.search(CORE, own)).entries.map(({ dn }) => dn)).toEqual([user('Zoë')]);
    }
  });

  it('answers what was sent behind a bind only after it, as whom the bind made it', async () => {
    let settle: (verdict: PasswordVerdict) => void = () => undefined;
    const requested = Promise.withResolvers<void>();
    server = await startLdap({
      checkPassword: async () => {
        requested.resolve();
        return new Promise((resolve) => {
          settle = resolve;
        });
      },
    });
    const wire = server.wire();
    wire.send(
      envelope(1, bindOperation(user('Alice'), 'right')),
      envelope(2, searchOperation(user('Alice'), { scope: 0 })),
    );
    await requested.promise;
    expect(wire.answers).toEqual([]);
    settle({ pk: 2 });
    expect((await wire.result(2)).code).toBe(0);
    expect(wire.answers.map(({ id, tag }) => [id, tag])).toEqual([
      [1, 0x61],
      [2, 0x64],
      [2, 0x65],
    ]);
  });

  it('sees nothing any more once its user is deactivated or deleted', async () => {
    server = await startLdap();
    const wire = await server.as(user('Alice'), 'right');
    server.roster.change('Alice', { isActive: false });
    expect((await wire.search(user('Alice'), { scope: 0 })).code).toBe(50);
    server.roster.remove('Alice');
    expect((await wire.search(user('Alice'), { scope: 0 })).code).toBe(50);
  });

  it('sees nothing of somebody who gets the name of its user later', async () => {
    server = await startLdap();
    const people = [await server.as(user('Alice'), 'right'), await server.as(user(SERVICE), 'service')];
    server.roster.remove('Alice');
    server.roster.remove(SERVICE);
    server.roster.add({ username: 'Alice', email: 'another@example.org' }, { username: SERVICE });
    for (const wire of people) expect((await wire.search(CORE)).code).toBe(50);
  });
});

describe('the urgency of a bind', () => {
  it('is suspect after a failure from that address, but not for who has succeeded lately', async () => {
    let nowMs = 1_000_000;
    server = await startLdap({ now: () => nowMs, limits: { anonymousIdleMs: 1e9, idleMs: 1e9 } });
    const wire = server.wire();
    await wire.bind(user('Alice'), 'right');
    await wire.bind(user('bob'), 'wrong');
    await wire.bind(user('bob'), 'bobs');
    await wire.bind(user('gone'), 'x');
    await wire.bind(user('Alice'), 'right');
    nowMs += 5 * 60_000;
    await wire.bind(user('gone'), 'x');
    nowMs += 60 * 60_000;
    await wire.bind(user('gone'), 'x');
    await wire.bind(user('Alice'), 'right');
    expect(server.roster.attempts.map(({ place }) => place.status)).toEqual([
      'usual',
      'usual',
      'suspect',
      'suspect',
      'proven',
      'usual',
      'usual',
      'suspect',
    ]);
  });

  it('is suspect for what one address asks beyond sixteen strangers at once', async () => {
    const fake = fakeRoster(PEOPLE);
    const all = Promise.withResolvers<void>();
    const checkPassword: typeof fake.checkPassword = async (attempt) => {
      const verdict = fake.checkPassword(attempt);
      if (fake.attempts.length === 20) all.resolve();
      await all.promise;
      return verdict;
    };
    server = await startLdap({ fake, checkPassword });
    await Promise.all(Array.from({ length: 20 }, async (_, number) => server.wire().bind(user(`u${number}`), 'x')));
    expect(fake.attempts.map(({ place }) => place.status)).toEqual([
      ...Array.from({ length: 16 }, () => 'usual'),
      ...Array.from({ length: 4 }, () => 'suspect'),
    ]);
  });
});

describe('a bind that is not worth a hash', () => {
  it('is answered a moment later when it is locked out', async () => {
    server = await startLdap({ limits: { heldBackMs: 60 } });
    const wire = server.wire();
    for (let count = 0; count < 10; count++) await wire.bind(user('Alice'), 'wrong');
    const begun = performance.now();
    expect(await wire.bind(user('Alice'), 'right')).toBe(49);
    expect(performance.now() - begun).toBeGreaterThan(50);
  });

  it('keeps no place from others while it is held back', async () => {
    server = await startLdap({ limits: { heldBackMs: 2_000, connections: 3 } });
    const wires = Array.from({ length: 3 }, () => server.wire());
    for (let count = 0; count < 10; count++) await wires[0]?.bind(user('Alice'), 'wrong');
    for (const wire of wires) wire.send(envelope(1, bindOperation(user('Alice'), 'x')));
    await vi.waitFor(() => expect(server.events.filter(({ fields }) => fields['reason'] === 'locked')).toHaveLength(3));
    expect(await server.wire().bind(user('bob'), 'bobs')).toBe(0);
  });

  it('is answered a moment later when it is suspect and one too many', async () => {
    const fake = fakeRoster(PEOPLE);
    const checkPassword: typeof fake.checkPassword = async (attempt) =>
      attempt.place.status === 'suspect' ? 'busy' : fake.checkPassword(attempt);
    server = await startLdap({ fake, checkPassword, limits: { heldBackMs: 60 } });
    const wire = server.wire();
    await wire.bind(user('nobody'), 'x');
    const begun = performance.now();
    expect(await wire.bind(user('Alice'), 'right')).toBe(51);
    expect(performance.now() - begun).toBeGreaterThan(50);
  });

  it.each([
    ['left', true],
    ['stayed', false],
  ])('is not wanted when its client has %s: %s', async (_, leaves) => {
    const requested = Promise.withResolvers<(() => boolean) | undefined>();
    const checkPassword = async ({ wanted }: { wanted?: () => boolean }): Promise<PasswordVerdict> => {
      requested.resolve(wanted);
      return new Promise(() => undefined);
    };
    server = await startLdap({ checkPassword, limits: { bindMs: 5_000 } });
    const wire = server.wire();
    wire.send(envelope(1, bindOperation(user('Alice'), 'right')));
    const wanted = await requested.promise;
    expect(wanted?.()).toBe(true);
    if (leaves) wire.socket.destroy();
    await new Promise((resolve) => {
      setTimeout(resolve, 50);
    });
    expect(wanted?.()).toBe(!leaves);
    if (!leaves) wire.socket.destroy();
  });
});

describe('the log', () => {
  it('names refused users on one line each, bounded, and never a password', async () => {
    server = await startLdap();
    const wire = server.wire();
    for (let count = 0; count < 60; count++) await wire.bind(user(`u${count}\nx`), 'hunter2-secret');
    expect(server.events.length).toBeGreaterThan(5);
    expect(server.events.length).toBeLessThan(30);
    const text = JSON.stringify(server.events);
    expect(text).toContain('u3 x');
    expect(text).not.toContain('hunter2');
  });
});

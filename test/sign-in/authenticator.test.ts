// The authenticator, rule by rule: one lockout for every password, what is believed and for how long, the emergency.

import { describe, expect, it } from 'vitest';
import type { FastAuthenticator } from '../../shared/sign-in/port.ts';
import { basic } from '../http/fake-deps.ts';
import { authenticatorWorld, HERE, METRICS_TOKEN, sessionOf } from './fake-authenticator.ts';

const MINUTE = 60_000;
const kinds = (entrances: readonly { kind: string }[]): string[] => entrances.map(({ kind }) => kind);
const unavailable = { code: 'unavailable' };

describe('the lockout of the authenticator', () => {
  it('locks an address at its tenth wrong password for fifteen minutes, for the right one as well', async () => {
    const world = authenticatorWorld();
    expect(new Set(kinds(await world.fail(10)))).toEqual(new Set(['refused']));
    expect(await world.tryWith('vera', 'pw-vera')).toEqual({ kind: 'locked', retryAfterSeconds: 900 });
    world.later(15 * MINUTE - 1);
    expect(await world.tryWith('vera', 'pw-vera')).toEqual({ kind: 'locked', retryAfterSeconds: 1 });
    world.later(1);
    expect((await world.tryWith('vera', 'pw-vera')).kind).toBe('in');
  });

  it('asks nobody about a password from a locked address, and leaves every other address alone', async () => {
    const world = authenticatorWorld();
    await world.fail(10);
    const requested = world.binds.length;
    expect((await world.tryWith('vera', 'pw-vera')).kind).toBe('locked');
    expect((await world.tryWith('vera', 'pw-vera', HERE, 'core')).kind).toBe('locked');
    expect(world.binds.length).toBe(requested);
    expect((await world.tryWith('vera', 'pw-vera', '192.0.2.8')).kind).toBe('in');
  });

  it('stands before what is remembered: a password that was right a moment ago is locked out, too', async () => {
    const world = authenticatorWorld();
    expect((await world.tryWith('vera', 'pw-vera')).kind).toBe('in');
    expect(world.authenticator.known(basic('vera', 'pw-vera'), HERE)?.username).toBe('vera');
    await world.fail(10);
    expect((await world.tryWith('vera', 'pw-vera')).kind).toBe('locked');
    expect(world.authenticator.known(basic('vera', 'pw-vera'), HERE)).toBeUndefined();
    expect(world.authenticator.known(basic('vera', 'pw-vera'), '192.0.2.8')?.username).toBe('vera');
  });

  it('counts failures alone, and a success forgives none', async () => {
    const world = authenticatorWorld();
    for (let count = 0; count < 30; count++) expect((await world.tryWith('vera', 'pw-vera')).kind).toBe('in');
    await world.fail(9);
    expect((await world.tryWith('vera', 'pw-vera')).kind).toBe('in');
    await world.fail(1);
    expect((await world.tryWith('vera', 'pw-vera')).kind).toBe('locked');
  });

  it('counts guesses on both bases together, and an empty password', async () => {
    const world = authenticatorWorld();
    for (let count = 0; count < 5; count++) {
      await world.tryWith('vera', `x${count}`, HERE, 'core');
      await world.tryWith('vera', '');
    }
    expect((await world.tryWith('vera', 'pw-vera')).kind).toBe('locked');
  });

  it('judges no more than ten of many wrong ones that come at once', async () => {
    const world = authenticatorWorld();
    const all = await Promise.all(Array.from({ length: 60 }, (_, count) => world.tryWith('vera', `guess ${count}`)));
    expect(kinds(all).filter((kind) => kind === 'refused')).toHaveLength(10);
    expect(kinds(all).filter((kind) => kind === 'locked')).toHaveLength(50);
    expect(world.binds).toHaveLength(10);
  });

  it('lets a hundred right ones at once in, and locks nobody', async () => {
    const world = authenticatorWorld();
    const all = await Promise.all(Array.from({ length: 100 }, () => world.tryWith('vera', 'pw-vera')));
    expect(new Set(kinds(all))).toEqual(new Set(['in']));
    expect(world.binds.length).toBeLessThanOrEqual(10);
    expect(await world.authenticator.lockouts()).toEqual([]);
  });

  it('lets a hundred people behind one address in at once', async () => {
    const world = authenticatorWorld();
    const names = Array.from({ length: 100 }, (_, count) => `person-${count}`);
    for (const name of names) world.directory.addPerson(name, `pw-${name}`);
    const all = await Promise.all(names.map((name) => world.tryWith(name, `pw-${name}`)));
    expect(new Set(kinds(all))).toEqual(new Set(['in']));
  });

  it('takes a whole /64 of IPv6 for one address, and IPv4 for itself however it is written', async () => {
    const world = authenticatorWorld();
    for (let count = 0; count < 10; count++) await world.fail(1, `2001:db8:0:1::${count}`);
    expect((await world.tryWith('vera', 'pw-vera', '2001:db8:0:1:ffff::1')).kind).toBe('locked');
    expect((await world.tryWith('vera', 'pw-vera', '2001:db8:0:2::1')).kind).toBe('in');
    await world.fail(10, '::ffff:192.0.2.9');
    expect((await world.tryWith('vera', 'pw-vera', '192.0.2.9')).kind).toBe('locked');
    expect((await world.tryWith('vera', 'pw-vera', '::ffff:192.0.2.10')).kind).toBe('in');
  });

  it('does not count a directory that is away', async () => {
    const world = authenticatorWorld();
    world.directory.mood = 'down';
    for (let count = 0; count < 20; count++)
      await expect(world.tryWith('vera', `guess ${count}`)).rejects.toMatchObject(unavailable);
    world.directory.mood = 'up';
    expect((await world.tryWith('vera', 'pw-vera')).kind).toBe('in');
  });

  it('does not count bearers and cookies that are wrong, nor hold them back when the address is locked', async () => {
    const world = authenticatorWorld();
    for (let count = 0; count < 20; count++) {
      expect(await world.authenticator.bearer(`guess ${count}`)).toBeUndefined();
      expect(await world.authenticator.session(`guess ${count}`)).toBeUndefined();
    }
    expect((await world.tryWith('vera', 'pw-vera')).kind).toBe('in');
    await world.fail(10);
    expect(await world.authenticator.bearer(METRICS_TOKEN)).toMatchObject({ by: { kind: 'metrics' } });
    expect(world.authenticator.known(`Bearer ${METRICS_TOKEN}`, HERE)).toMatchObject({ by: { kind: 'metrics' } });
    expect(await world.authenticator.session(await sessionOf(world, 'vera'))).toMatchObject({ username: 'vera' });
  });

  it('lists what is locked with its end, and releases it in every spelling', async () => {
    const world = authenticatorWorld();
    await world.fail(10, '2001:db8:0:1::5');
    world.later(MINUTE);
    await world.fail(10);
    await world.fail(3, '192.0.2.99');
    expect(await world.authenticator.lockouts()).toEqual([
      { address: '2001:db8:0:1::/64', door: 'http', failures: 10, locked_until: '2026-03-04T05:21:07.000Z' },
      { address: HERE, door: 'http', failures: 10, locked_until: '2026-03-04T05:22:07.000Z' },
    ]);
    for (const spelling of ['2001:db8:0:1::/64', '2001:0DB8:0:1::/64', '2001:db8:0:1::77']) {
      expect(await world.authenticator.release(spelling)).toBe(true);
      expect(await world.authenticator.release(spelling)).toBe(false);
      await world.fail(10, '2001:db8:0:1::5');
    }
    expect(await world.authenticator.release(`::ffff:${HERE}`)).toBe(true);
    expect((await world.tryWith('vera', 'pw-vera')).kind).toBe('in');
  });

  it('notes every refusal and every attempt from a locked address, and no password', async () => {
    const world = authenticatorWorld();
    await world.fail(11);
    await world.tryWith('ve\u0000ra', 'pw-vera');
    world.authenticator.noteLocked({
      username: 'vera',
      password: 'x',
      address: HERE,
      base: 'web',
      requestId: 'request-2',
    });
    const noted = world.audit.records.map(({ action, target, result }) => `${action} ${target} ${result}`);
    expect(noted).toEqual([
      ...Array.from({ length: 10 }, () => 'sign-in vera denied'),
      'sign-in.locked vera denied',
      'sign-in.locked ve\uFFFDra denied',
      'sign-in.locked vera denied',
    ]);
    expect(world.audit.records[0]).toMatchObject({ actor: 'vera', address: HERE, request_id: 'request-1' });
    expect(JSON.stringify(world.audit.records)).not.toMatch(/guess|pw-/);
  });

  it.each(['\u0000', 'a\nb', 'x'.repeat(256)])(
    'refuses the impossible name %j without asking anybody',
    async (name) => {
      const world = authenticatorWorld();
      expect((await world.tryWith(name, 'pw')).kind).toBe('refused');
      expect([world.binds, world.epochsRequested]).toEqual([[], 0]);
      expect(world.audit.records[0]?.target.length).toBeLessThanOrEqual(100);
    },
  );
});

describe('what a password opens', () => {
  it('is the role that the groups give, with the name as the directory spells it', async () => {
    const world = authenticatorWorld();
    expect(await world.tryWith('ADA', 'pw-ada')).toEqual({
      kind: 'in',
      principal: { username: 'ada', role: 'admin', groups: ['stack_admin', 'core_Blue'], by: { kind: 'password' } },
    });
    expect(await world.tryWith('vera', 'pw-vera')).toMatchObject({ principal: { role: 'viewer' } });
    expect(await world.tryWith('nora', 'pw-nora')).toMatchObject({ principal: { role: 'none' } });
  });

  it('is nothing on the core base, where app passwords count; what came in there is not remembered', async () => {
    const world = authenticatorWorld();
    const expires = new Date('2027-01-01T00:00:00Z');
    world.directory.people.get('ada')?.appPasswords.push({ text: 'from the QR code', expires });
    expect(await world.tryWith('ada', 'from the QR code', HERE, 'core')).toEqual({
      kind: 'in',
      principal: { username: 'ada', role: 'none', groups: [], by: { kind: 'password' } },
    });
    expect(world.authenticator.known(basic('ada', 'from the QR code'), HERE)).toBeUndefined();
    expect((await world.tryWith('ada', 'from the QR code')).kind).toBe('refused');
    await world.tryWith('ada', 'pw-ada');
    await world.tryWith('ada', 'pw-ada', HERE, 'core');
    expect(world.binds).toEqual(['core ada', 'web ada', 'web ada', 'core ada']);
  });

  it('takes a colon in a name for what it is', async () => {
    const world = authenticatorWorld();
    world.directory.addPerson('bo', 'secret:with colon');
    expect((await world.tryWith('bo', 'secret:with colon')).kind).toBe('in');
    expect((await world.tryWith('bo:secret', 'with colon')).kind).toBe('refused');
  });
});

/** Whether the short way knows this header. */
const isKnown = (authenticator: FastAuthenticator, header: string): boolean =>
  authenticator.known(header, HERE) !== undefined;

describe('what is remembered of a password', () => {
  it('spares the bind for twenty seconds, on the short way for half a second after each look', async () => {
    const world = authenticatorWorld();
    await world.tryWith('vera', 'pw-vera');
    world.later(500);
    expect(isKnown(world.authenticator, basic('vera', 'pw-vera'))).toBe(true);
    world.later(1);
    expect(isKnown(world.authenticator, basic('vera', 'pw-vera'))).toBe(false);
    expect((await world.tryWith('vera', 'pw-vera')).kind).toBe('in');
    expect(isKnown(world.authenticator, basic('vera', 'pw-vera'))).toBe(true);
    world.later(19_000);
    await world.tryWith('vera', 'pw-vera');
    expect(world.binds).toHaveLength(1);
    world.later(500);
    await world.tryWith('vera', 'pw-vera');
    expect(world.binds).toHaveLength(2);
  });

  it('is that header byte for byte: what the normal way would not read is not known', async () => {
    const world = authenticatorWorld();
    await world.tryWith('vera', 'pw-vera');
    const good = basic('vera', 'pw-vera');
    const bare = good.slice('Basic '.length);
    expect(isKnown(world.authenticator, good)).toBe(true);
    for (const header of [
      `${good} x`,
      `Basic  ${bare}`,
      `basic ${bare}`,
      `Basic ${bare.replace(/=+$/, '')}*`,
      `Basic ${bare.slice(0, 4)}*${bare.slice(4)}`,
      `Basic ${bare.slice(0, 4)} ${bare.slice(4)}`,
      `Basic ${Buffer.from('vera:pw-ver\u{FFFD}').toString('base64')}`,
      `Bearer ${METRICS_TOKEN} x`,
      `Bearer ${METRICS_TOKEN.slice(1)}`,
      '',
    ])
      expect([header, isKnown(world.authenticator, header)]).toEqual([header, false]);
  });

  it('does not know bytes that are no UTF-8, whatever they would be read as', async () => {
    const world = authenticatorWorld();
    world.directory.addPerson('odd', 'pw-\uFFFD');
    await world.tryWith('odd', 'pw-\uFFFD');
    expect(isKnown(world.authenticator, basic('odd', 'pw-\uFFFD'))).toBe(true);
    const bytes = Buffer.concat([Buffer.from('odd:pw-'), Buffer.from([0xff])]);
    expect(isKnown(world.authenticator, `Basic ${bytes.toString('base64')}`)).toBe(false);
  });

  it('ends with a change at the provider itself within thirty seconds', async () => {
    const world = authenticatorWorld();
    await world.tryWith('vera', 'pw-vera');
    const vera = world.directory.people.get('vera');
    if (vera !== undefined) vera.password = 'another';
    world.later(30_000);
    expect((await world.tryWith('vera', 'pw-vera')).kind).toBe('refused');
    expect(isKnown(world.authenticator, basic('vera', 'pw-vera'))).toBe(false);
  });

  it('ends half a second after another process has changed the epoch', async () => {
    const world = authenticatorWorld();
    await world.tryWith('vera', 'pw-vera');
    world.directory.people.delete('vera');
    world.signIns.endAllOf('VERA');
    world.later(501);
    expect(isKnown(world.authenticator, basic('vera', 'pw-vera'))).toBe(false);
    expect((await world.tryWith('vera', 'pw-vera')).kind).toBe('refused');
  });

  it('ends at once when this process forgets the person, also what is judged at that moment', async () => {
    const world = authenticatorWorld();
    await world.tryWith('vera', 'pw-vera');
    const judged = world.tryWith('ada', 'pw-ada');
    await new Promise((turn) => setImmediate(turn));
    await world.authenticator.forget('VERA');
    await world.authenticator.forget('ada');
    await judged;
    expect(isKnown(world.authenticator, basic('vera', 'pw-vera'))).toBe(false);
    expect(isKnown(world.authenticator, basic('ada', 'pw-ada'))).toBe(false);
  });

  it('is nothing while our own database is away: each password costs a bind', async () => {
    const world = authenticatorWorld();
    await world.tryWith('vera', 'pw-vera');
    world.databaseUnavailable = true;
    world.later(501);
    for (let count = 0; count < 3; count++) expect((await world.tryWith('vera', 'pw-vera')).kind).toBe('in');
    expect(world.binds).toHaveLength(4);
  });

  it('asks a database that is away once a second, not for every password', async () => {
    const world = authenticatorWorld();
    world.databaseUnavailable = true;
    for (let count = 0; count < 20; count++) await world.tryWith('vera', 'pw-vera');
    expect(world.epochsRequested).toBe(1);
    world.databaseUnavailable = false;
    world.later(1_000);
    await world.tryWith('vera', 'pw-vera');
    expect(isKnown(world.authenticator, basic('vera', 'pw-vera'))).toBe(true);
  });

  it('asks the database once for all who come at the same moment', async () => {
    const world = authenticatorWorld();
    await Promise.all(Array.from({ length: 50 }, () => world.tryWith('vera', 'pw-vera')));
    expect(world.epochsRequested).toBe(1);
  });
});

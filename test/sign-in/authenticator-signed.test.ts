// The authenticator for sessions and tokens, and the emergency in which nobody can be asked.

import { describe, expect, it } from 'vitest';
import { Secret } from '@holdfast/kit/secret';
import { basic } from '../http/fake-deps.ts';
import {
  type AuthenticatorWorld,
  authenticatorWorld,
  EMERGENCY,
  HERE,
  METRICS_TOKEN,
  sessionOf,
} from './fake-authenticator.ts';

const unavailable = { code: 'unavailable' };

async function tokenOf(
  { signIns }: AuthenticatorWorld,
  owner: string,
  scope: 'read' | 'users' | 'admin',
): Promise<string> {
  return (await signIns.createToken({ owner, scope, name: 'a token', expiresAt: '2026-12-31T00:00:00.000Z' })).text;
}

describe('a session', () => {
  it('stands for its person, with the role that the groups give now', async () => {
    const world = authenticatorWorld();
    const cookie = await sessionOf(world, 'ADA');
    expect(await world.authenticator.session(cookie)).toEqual({
      username: 'ada',
      role: 'admin',
      groups: ['stack_admin', 'core_Blue'],
      by: { kind: 'session', id: expect.any(String) },
    });
    expect(await world.authenticator.bearer(cookie)).toBeUndefined();
  });

  it('ends with its time, to the moment', async () => {
    const world = authenticatorWorld();
    const cookie = await sessionOf(world, 'ada');
    world.later(12 * 3_600_000 - 400);
    expect(await world.authenticator.session(cookie)).toMatchObject({ username: 'ada' });
    world.later(400);
    expect(await world.authenticator.session(cookie)).toBeUndefined();
  });

  it('ends half a second after it was ended, or its epoch was changed, by another process', async () => {
    const world = authenticatorWorld();
    const one = await sessionOf(world, 'ada');
    const other = await sessionOf(world, 'ada');
    for (const cookie of [one, other])
      expect(await world.authenticator.session(cookie)).toMatchObject({ username: 'ada' });
    const first = (await world.signIns.sessions('ada', { page: 1, pageSize: 10 })).results.at(-1);
    await world.signIns.endSession('ada', first?.id ?? '');
    world.later(501);
    expect([await world.authenticator.session(one), await world.authenticator.session(other)]).toEqual([
      undefined,
      expect.objectContaining({ username: 'ada' }),
    ]);
    world.signIns.endAllOf('ada');
    world.later(501);
    expect(await world.authenticator.session(other)).toBeUndefined();
  });

  it('of somebody who was demoted has the new role at once after the next sign-in, in every process', async () => {
    const world = authenticatorWorld();
    const other = world.otherProcess();
    const before = await sessionOf(world, 'ada');
    expect(await other.session(before)).toMatchObject({ role: 'admin' });
    const ada = world.directory.people.get('ada');
    ada?.groups.splice(0, ada.groups.length, 'stack_viewer');
    world.signIns.endAllOf('ada');
    world.later(501);
    expect(await other.session(before)).toBeUndefined();
    expect(await other.session(await sessionOf(world, 'ada'))).toMatchObject({ role: 'viewer' });
  });

  it('follows what is changed at the provider itself within thirty seconds', async () => {
    const world = authenticatorWorld();
    const cookie = await sessionOf(world, 'ada');
    expect(await world.authenticator.session(cookie)).toMatchObject({ role: 'admin' });
    const ada = world.directory.people.get('ada');
    ada?.groups.splice(0, 1);
    world.later(30_000);
    expect(await world.authenticator.session(cookie)).toMatchObject({ role: 'none', groups: ['core_Blue'] });
    if (ada !== undefined) ada.active = false;
    world.later(30_000);
    expect(await world.authenticator.session(cookie)).toBeUndefined();
    world.directory.people.delete('ada');
    world.later(30_000);
    expect(await world.authenticator.session(cookie)).toBeUndefined();
  });

  it('follows at once what this process knows to have changed', async () => {
    const world = authenticatorWorld();
    const cookie = await sessionOf(world, 'ada');
    await world.authenticator.session(cookie);
    world.directory.people.get('ada')?.groups.splice(0, 1);
    await world.authenticator.forget('Ada');
    expect(await world.authenticator.session(cookie)).toMatchObject({ role: 'none' });
    world.signIns.endAllOf('ada');
    await world.authenticator.forget('ADA');
    expect(await world.authenticator.session(cookie)).toBeUndefined();
  });

  it('is no failure of its own when the directory or our own database is away', async () => {
    const world = authenticatorWorld();
    const cookie = await sessionOf(world, 'ada');
    world.databaseUnavailable = true;
    await expect(world.authenticator.session(cookie)).rejects.toMatchObject(unavailable);
    world.databaseUnavailable = false;
    world.directory.mood = 'down';
    await expect(world.authenticator.session(cookie)).rejects.toMatchObject(unavailable);
    world.directory.mood = 'up';
    world.later(1_000);
    expect(await world.authenticator.session(cookie)).toMatchObject({ username: 'ada' });
  });

  it('of many that come at the same moment is looked up once', async () => {
    let looked = 0;
    const spare = authenticatorWorld();
    const { signIns } = spare;
    const counting = authenticatorWorld({
      signIns: {
        epoch: async () => 0,
        recognize: async (kind, text) => {
          looked += 1;
          return signIns.recognize(kind, text);
        },
      },
    });
    const cookie = await sessionOf(spare, 'ada');
    const all = await Promise.all(Array.from({ length: 30 }, () => counting.authenticator.session(cookie)));
    expect([looked, all.every((principal) => principal?.username === 'ada')]).toEqual([1, true]);
  });
});

describe('a bearer', () => {
  it.each(['read', 'users', 'admin'] as const)('is a token with its scope: %s', async (scope) => {
    const world = authenticatorWorld();
    const token = await tokenOf(world, 'ada', scope);
    expect(await world.authenticator.bearer(token)).toMatchObject({
      username: 'ada',
      role: 'admin',
      by: { kind: 'token', scope },
    });
    expect(await world.authenticator.session(token)).toBeUndefined();
    expect(world.authenticator.known(`Bearer ${token}`, HERE)).toBeUndefined();
  });

  it('dies with its owner', async () => {
    const world = authenticatorWorld();
    const token = await tokenOf(world, 'ada', 'admin');
    expect(await world.authenticator.bearer(token)).toMatchObject({ username: 'ada' });
    world.directory.people.delete('ada');
    world.later(20_000);
    expect(await world.authenticator.bearer(token)).toBeUndefined();
  });

  it('is METRICS_TOKEN to the letter, whoever is away', async () => {
    const world = authenticatorWorld();
    world.databaseUnavailable = true;
    world.directory.mood = 'down';
    expect(await world.authenticator.bearer(METRICS_TOKEN)).toEqual({
      username: 'metrics',
      role: 'viewer',
      groups: [],
      by: { kind: 'metrics' },
    });
    for (const guess of [METRICS_TOKEN.slice(1), `${METRICS_TOKEN}x`, METRICS_TOKEN.toUpperCase()])
      await expect(world.authenticator.bearer(guess)).rejects.toMatchObject(unavailable);
  });

  it('is nobody where METRICS_TOKEN is unset', async () => {
    const world = authenticatorWorld({ metricsToken: undefined });
    for (const guess of ['', 'undefined', 'null']) {
      expect(await world.authenticator.bearer(guess)).toBeUndefined();
      expect(world.authenticator.known(`Bearer ${guess}`, HERE)).toBeUndefined();
    }
  });
});

describe('while the directory is away', () => {
  const isUnavailable = (options = {}): AuthenticatorWorld => {
    const world = authenticatorWorld(options);
    world.directory.mood = 'down';
    return world;
  };

  it('webadmin comes in with the password of the settings, to look only, and that is noted', async () => {
    const world = isUnavailable();
    expect(await world.tryWith('WebAdmin', EMERGENCY)).toEqual({
      kind: 'in',
      principal: { username: 'webadmin', role: 'viewer', groups: [], by: { kind: 'break-glass' } },
    });
    expect(world.audit.records.map(({ action, result }) => [action, result])).toEqual([['sign-in.break-glass', 'ok']]);
    world.databaseUnavailable = true;
    expect((await world.tryWith('webadmin', EMERGENCY)).kind).toBe('in');
  });

  it('that is not remembered: it ends when the directory is back', async () => {
    const world = isUnavailable();
    world.directory.addPerson('webadmin', 'another password');
    expect((await world.tryWith('webadmin', EMERGENCY)).kind).toBe('in');
    expect(world.authenticator.known(basic('webadmin', EMERGENCY), HERE)).toBeUndefined();
    world.directory.mood = 'up';
    expect((await world.tryWith('webadmin', EMERGENCY)).kind).toBe('refused');
  });

  it('a wrong password of webadmin counts, and says that the directory is away', async () => {
    const world = isUnavailable();
    for (let count = 0; count < 10; count++)
      await expect(world.tryWith('webadmin', `${EMERGENCY}${count}`)).rejects.toMatchObject(unavailable);
    expect((await world.tryWith('webadmin', EMERGENCY)).kind).toBe('locked');
    expect((await world.tryWith('webadmin', EMERGENCY, '192.0.2.8')).kind).toBe('in');
  });

  it('no more than ten guesses at it that come at once are judged', async () => {
    const world = isUnavailable();
    const all = await Promise.allSettled(
      Array.from({ length: 40 }, (_, count) => world.tryWith('webadmin', `guess ${count}`)),
    );
    expect(all.filter(({ status }) => status === 'rejected')).toHaveLength(10);
    expect(world.audit.records.filter(({ action }) => action === 'sign-in')).toHaveLength(10);
  });

  it('nobody else comes in with it, nor on the core base, nor where it is unset or empty', async () => {
    const world = isUnavailable();
    for (const name of ['ada', 'webadmin2', 'web admin'])
      await expect(world.tryWith(name, EMERGENCY)).rejects.toMatchObject(unavailable);
    await expect(world.tryWith('webadmin', EMERGENCY, HERE, 'core')).rejects.toMatchObject(unavailable);
    const unset = isUnavailable({ webadminPassword: undefined });
    for (const guess of ['undefined', 'x', EMERGENCY])
      await expect(unset.tryWith('webadmin', guess)).rejects.toMatchObject(unavailable);
    const given = isUnavailable({ webadminPassword: new Secret('x') });
    await expect(given.tryWith('webadmin', 'xx')).rejects.toMatchObject(unavailable);
  });

  it('a directory that answers is asked, whatever the settings say', async () => {
    const world = authenticatorWorld();
    world.directory.addPerson('webadmin', 'another password').groups.push('core_ROLE_ADMIN');
    expect((await world.tryWith('webadmin', EMERGENCY)).kind).toBe('refused');
    expect(await world.tryWith('webadmin', 'another password')).toMatchObject({ principal: { role: 'admin' } });
  });
});

describe('a session that is known without waiting', () => {
  it('is one object while the same is remembered, and the same person as the authenticator name', async () => {
    const world = authenticatorWorld();
    const text = await sessionOf(world, 'ada');
    expect(world.authenticator.knownSession(text)).toBeUndefined();
    const named = await world.authenticator.session(text);
    const known = world.authenticator.knownSession(text);
    expect(known).toEqual(named);
    expect(world.authenticator.knownSession(text)).toBe(known);
    expect(world.authenticator.knownSession(`${text}x`)).toBeUndefined();
    expect(world.otherProcess().knownSession(text)).toBeUndefined();
  });

  it('is none of somebody who may not sign in, nor while our own database has not answered', async () => {
    const world = authenticatorWorld();
    const text = await sessionOf(world, 'ada');
    const requested = world.authenticator.session(text);
    expect(world.authenticator.knownSession(text)).toBeUndefined();
    await requested;
    world.databaseUnavailable = true;
    world.later(501);
    await expect(world.authenticator.session(text)).rejects.toMatchObject(unavailable);
    expect(world.authenticator.knownSession(text)).toBeUndefined();
    const ada = world.directory.people.get('ada');
    if (ada !== undefined) ada.active = false;
    world.databaseUnavailable = false;
    world.later(20_000);
    expect(await world.authenticator.session(text)).toBeUndefined();
    expect(world.authenticator.knownSession(text)).toBeUndefined();
  });

  it('is no API token', async () => {
    const world = authenticatorWorld();
    const token = await tokenOf(world, 'ada', 'admin');
    await world.authenticator.bearer(token);
    expect(world.authenticator.knownSession(token)).toBeUndefined();
    expect(world.authenticator.known(`Bearer ${token}`, HERE)).toBeUndefined();
  });
});

// Who has failed too often at the LDAP server waits.

import { afterEach, describe, expect, it } from 'vitest';
import { Secret } from '@holdfast/kit/secret';
import { fakeRoster } from './fake-roster.ts';
import { CORE, PEOPLE, SERVICE, startLdap, type TestServer, user, WEB } from './ldap-wire.ts';

let server: TestServer;
afterEach(async () => server.stop());

describe('the lock-out', () => {
  it('answers 49 without asking after ten failures, for that name and address alone, and ends', async () => {
    let nowMs = 1_000_000;
    server = await startLdap({ now: () => nowMs, limits: { anonymousIdleMs: 1e9 } });
    const wire = server.wire();
    for (let count = 0; count < 10; count++) expect(await wire.bind(user('Alice'), 'wrong')).toBe(49);
    const requested = server.roster.attempts.length;
    expect(await wire.bind(user('ALICE'), 'right')).toBe(49);
    expect(server.roster.attempts.length).toBe(requested);
    expect(await wire.bind(user('bob'), 'bobs')).toBe(0);
    expect(await wire.bind(user('Alice', WEB), 'right')).toBe(0);
    nowMs += 15 * 60_000;
    expect(await wire.bind(user('Alice'), 'right')).toBe(0);
  });

  it('counts every spelling of a name as that name', async () => {
    server = await startLdap({ fake: fakeRoster([{ username: 'Zoë', password: 'right' }]) });
    const wire = server.wire();
    const spellings = [
      'cn=Zoë,ou=users',
      '2.5.4.3=ZOË,ou=users',
      'cn=Zoe\u0308,2.5.4.11=users',
      'CN=zo\\c3\\ab,OU=Users',
    ];
    for (let count = 0; count < 12; count++) {
      expect(await wire.bind(`${spellings[count % spellings.length]},${CORE}`, 'wrong')).toBe(49);
    }
    expect(server.roster.attempts).toHaveLength(10);
  });

  it('does not count what can be nobody’s password: it would cost a guesser nothing', async () => {
    server = await startLdap();
    const wire = server.wire();
    for (let count = 0; count < 12; count++) expect(await wire.bind(user('Alice'), 'é'.repeat(513))).toBe(49);
    expect(server.roster.attempts).toEqual([]);
    expect(await wire.bind(user('Alice'), 'right')).toBe(0);
  });

  it('lets no more than ten guesses through that are sent at once', async () => {
    const fake = fakeRoster(PEOPLE);
    const checkPassword: typeof fake.checkPassword = async (attempt) => {
      await new Promise((resolve) => {
        setTimeout(resolve, 30);
      });
      return fake.checkPassword(attempt);
    };
    server = await startLdap({ fake, checkPassword });
    const codes = await Promise.all(Array.from({ length: 40 }, async () => server.wire().bind(user('Alice'), 'wrong')));
    expect(new Set(codes)).toEqual(new Set([49]));
    expect(server.roster.attempts).toHaveLength(10);
  });

  it('judges right passwords of one name at once, as many as may still fail', async () => {
    const fake = fakeRoster(PEOPLE);
    let running = 0;
    let most = 0;
    const checkPassword: typeof fake.checkPassword = async (attempt) => {
      most = Math.max(most, (running += 1));
      await new Promise((resolve) => {
        setTimeout(resolve, 20);
      });
      running -= 1;
      return fake.checkPassword(attempt);
    };
    server = await startLdap({ fake, checkPassword });
    for (let count = 0; count < 4; count++) await server.wire().bind(user('Alice'), 'wrong');
    most = 0;
    const codes = await Promise.all(Array.from({ length: 20 }, async () => server.wire().bind(user('Alice'), 'right')));
    expect([new Set(codes), most]).toEqual([new Set([0]), 6]);
  });

  it('judges the password of the settings for the service account though guesses were there first', async () => {
    const long = 'a long password of the settings';
    server = await startLdap({ searchPassword: new Secret(long) });
    server.roster.change(SERVICE, { password: long });
    const stranger = server.wire();
    for (let count = 0; count < 12; count++) expect(await stranger.bind(user(SERVICE), `guess ${count}`)).toBe(49);
    expect(server.roster.attempts).toHaveLength(10);
    expect(await server.wire().bind(user(SERVICE), long)).toBe(0);
    expect(server.roster.attempts.at(-1)?.place.status).toBe('own');
    server.roster.change(SERVICE, { password: 'a new one' });
    expect(await server.wire().bind(user(SERVICE), long)).toBe(49);
  });

  it('locks it out as anybody else when that password is short enough to be guessed', async () => {
    server = await startLdap({ searchPassword: new Secret('service') });
    const stranger = server.wire();
    for (let count = 0; count < 10; count++) await stranger.bind(user(SERVICE), `guess ${count}`);
    expect(await server.wire().bind(user(SERVICE), 'service')).toBe(49);
  });

  it('neither counts nor stops what comes on a connection on which the service account has bound', async () => {
    server = await startLdap();
    const wire = await server.as(user(SERVICE, WEB), 'service');
    for (let count = 0; count < 15; count++) expect(await wire.bind(user('Alice'), 'wrong')).toBe(49);
    expect(await server.wire().bind(user('Alice'), 'right')).toBe(0);
    const other = server.wire();
    for (let count = 0; count < 10; count++) await other.bind(user('bob'), 'wrong');
    expect(await other.bind(user('bob'), 'bobs')).toBe(49);
    expect(await wire.bind(user('bob'), 'bobs')).toBe(0);
    expect(server.roster.attempts.slice(1, 16).every(({ place }) => place.group === 'vouched')).toBe(true);
  });
});

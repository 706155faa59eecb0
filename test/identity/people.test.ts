import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  appExpiresOf,
  isChannel,
  isHiddenName,
  isoOfSeconds,
  passwordFault,
  readChannelName,
  readExpiry,
  suggestedUsername,
  usernameFault,
} from '../../shared/identity/rules.ts';

const HIDDEN = ['svc_', 'adm_', 'ak-outpost-', 'akadmin'];
const ROLES = { admin: 'stack_admin', viewer: 'core_Readers' };

describe('a suggested username', () => {
  it.each([
    ['Ann Example', 'ann.example'],
    [' Jörg  Groß ', 'jorg.gross'],
    ["D'Arcy O’Neil-Smith", 'd.arcy.o.neil-smith'],
    ['Łukasz', 'ukasz'],
    ['李雷', ''],
    ['<b>', 'b'],
    [`${'x'.repeat(63)} y`, 'x'.repeat(63)],
  ])('of %j is %j', (name, username) => {
    expect(suggestedUsername(name)).toBe(username);
  });

  it('is one that a person may have, or none', () => {
    const characters = fc.array(fc.integer({ min: 0, max: 0x1ffff }), { maxLength: 80 });
    fc.assert(
      fc.property(characters, (points) => {
        const username = suggestedUsername(String.fromCodePoint(...points));
        return username === '' || usernameFault(username, []) === undefined || /^(svc|adm)_/.test(username);
      }),
    );
  });
});

describe('a username', () => {
  it.each(['a', 'ada.b', 'A-1_x', '007', 'x'.repeat(64), 'svc', 'ak-out'])('may be %s', (name) => {
    expect(usernameFault(name, HIDDEN)).toBeUndefined();
  });

  it.each(['', 'x'.repeat(65), 'a b', 'a~b', 'a@b', 'é', 'a/b', 'a\n', 'a,b'])('may not be %j', (name) => {
    expect(usernameFault(name, HIDDEN)).toMatch(/1 to 64/);
  });

  it.each(['svc_x', 'SVC_x', 'Adm_', 'ak-outpost-1', 'AKADMIN', 'akadmin2'])('may not begin as %s', (name) => {
    expect(usernameFault(name, HIDDEN)).toMatch(/must not begin with/);
    expect(isHiddenName(name, HIDDEN)).toBe(true);
  });

  it('may not begin with svc_ or adm_, whatever is hidden', () => {
    expect([usernameFault('svc_x', ['zz']), usernameFault('adm_x', ['zz'])]).toEqual([
      expect.stringMatching(/svc_/),
      expect.stringMatching(/adm_/),
    ]);
    expect([isHiddenName('svc_x', ['zz']), usernameFault('akadmin', ['zz'])]).toEqual([false, undefined]);
  });
});

describe('a password', () => {
  it.each(['horse battery 1', '            x', 'ünïcödé-pässwörd', '\u{1f600}'.repeat(12), 'x'.repeat(1024)])(
    'may be %s',
    (password) => expect(passwordFault(password, 'ada')).toBeUndefined(),
  );

  it.each([
    ['x'.repeat(11), /12 characters/],
    ['\u{1f600}'.repeat(6), /12 characters/],
    ['x'.repeat(1025), /1024 bytes/],
    ['ü'.repeat(513), /1024 bytes/],
    ['twelve chars\0', /NUL/],
    ['twelve chars\ud800', /half a character/],
    ['Long.User-Name', /the username/],
    ['AtakAtakAtak', /publish/],
    ['ATAKATAKATAKATAK', /publish/],
    ['Pass4MartiPass4Marti', /publish/],
    ['Password1234', /publish/],
  ])('may not be %j', (password, why) => expect(passwordFault(password, 'long.user-name')).toMatch(why));

  it('is never quoted in what is wrong with it', () => {
    fc.assert(
      fc.property(fc.string({ minLength: 5 }), (password) => {
        fc.pre(/[^a-z ]/.test(password));
        expect(passwordFault(password, password) ?? '').not.toContain(password);
      }),
    );
  });
});

describe('an expiry', () => {
  const now = new Date('2026-01-02T03:04:05.678Z');

  it('is a number of seconds, and everything else is none', () => {
    const of = (app_expires: unknown): number | null => appExpiresOf({ app_expires });
    expect([of(1_800_000_000), of(0), of(-1), of(1.9)]).toEqual([1_800_000_000, 0, -1, 1]);
    for (const none of [undefined, null, '1800000000', true, {}, [1], Number.NaN, Infinity, 1e15])
      expect(of(none)).toBeNull();
    expect(appExpiresOf({})).toBeNull();
  });

  it('comes as ISO 8601 with any offset, and goes in UTC', () => {
    expect(readExpiry('2027-01-01T02:00:00+02:00', now)).toEqual({ seconds: 1_798_761_600 });
    expect(isoOfSeconds(1_798_761_600)).toBe('2027-01-01T00:00:00Z');
  });

  it('is not past, not now, and exists', () => {
    for (const past of ['2026-01-02T03:04:05.678Z', '2026-01-02T03:04:05.9Z', '2020-01-01T00:00:00Z'])
      expect(readExpiry(past, now)).toEqual({ fault: expect.stringContaining(past) });
    for (const none of ['tomorrow', '2026-13-01T00:00:00Z', '9999-12-31T23:59:59-01:00'])
      expect(readExpiry(none, now)).toEqual({ fault: expect.stringMatching(/valid time/) });
  });
});

describe('a channel', () => {
  it.each([
    ['blue', 'core_blue'],
    ['core_blue', 'core_blue'],
    ['CORE_blue', 'core_blue'],
    ['Search Team 1', 'core_Search Team 1'],
    ['blue_READ', 'core_blue_READ'],
    ['x'.repeat(64), `core_${'x'.repeat(64)}`],
    [`core_${'x'.repeat(64)}`, `core_${'x'.repeat(64)}`],
    ['ROLE_admins', 'core_ROLE_admins'],
  ])('is called %s and means %s', (text, name) => expect(readChannelName(text, ROLES)).toEqual({ name }));

  it.each(['', ' ', 'core_', ' blue', 'blue ', 'core_ blue', 'a,b', 'a=b', 'ü', 'a\nb', 'x'.repeat(65)])(
    'is not called %j',
    (text) => expect(readChannelName(text, ROLES)).toEqual({ fault: expect.stringMatching(/1 to 64/) }),
  );

  it.each([
    'core_ROLE_ADMIN',
    'ROLE_ADMIN',
    'Core_role_admin',
    'stack_admin',
    'STACK_ADMIN',
    'readers',
    'core_READERS',
  ])('is not called like a group that gives a role: %s', (text) =>
    expect(readChannelName(text, ROLES)).toEqual({ fault: expect.stringMatching(/role/) }),
  );

  it.each([
    'holdfast_probe',
    'core_Holdfast_Probe',
    'holdfast_probe_READ',
    'core_holdfast_probe_WRITE',
    'core_holdfast_no_group',
  ])('is none of those that the stack keeps for itself, in no direction: %s', (text) => {
    expect(readChannelName(text, ROLES)).toEqual({ fault: expect.stringMatching(/reserved for Holdfast/) });
    expect(isChannel(text.startsWith('core_') ? text : `core_${text}`, ROLES)).toBe(false);
  });

  it('is a group with the prefix that gives no role', () => {
    const are = ['core_blue', 'core_ROLE_ADMIN', 'core_readers', 'stack_admin', 'authentik Admins', 'CORE_x'];
    expect(are.map((name) => isChannel(name, ROLES))).toEqual([true, false, false, false, false, false]);
  });
});

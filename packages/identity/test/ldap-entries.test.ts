// Entries: free attributes, what they may not replace, names that need escaping; large entries;
// schema.

import { afterEach, describe, expect, it } from 'vitest';
import type { Attributes } from '@holdfast/kit/json';
import { customAttributes } from '../ldap/entries.ts';
import { writeEntry } from '../ldap/result.ts';
import { fakeRoster } from './fake-roster.ts';
import { CORE, nodes, SERVICE, startLdap, type TestServer, user } from './ldap-wire.ts';

const shown = (attributes: Attributes, username?: string): Record<string, readonly string[]> =>
  Object.fromEntries(customAttributes(attributes, username).map(({ name, values }) => [name, values]));

describe('free attributes', () => {
  it('are shown by a name that LDAP can have, with every value', () => {
    expect(
      shown(
        {
          'goauthentik.io/user/expires': 'x',
          app_expires: 1_700_000_000,
          list: ['a', 'b', 'a', ''],
          flag: true,
          home: '/srv/%s/%s',
          nested: { a: 1 },
          nothing: null,
          empty: '',
          none: [],
          'bad key': 'x',
          '1st': 'x',
          ü: 'x',
          'a;binary': 'x',
        },
        'al$&ice',
      ),
    ).toEqual({
      'goauthentikio-user-expires': ['x'],
      app_expires: ['1700000000'],
      list: ['a', 'b'],
      flag: ['TRUE'],
      home: ['/srv/al$&ice/al$&ice'],
      nested: ['{"a":1}'],
    });
  });

  it('of a group keep %s', () => {
    expect(shown({ path: '%s' })).toEqual({ path: ['%s'] });
  });

  it('are kept back when they are private, however the key is written', () => {
    expect(
      shown({
        'holdfast.private/key': 'x',
        'Holdfast.Private/other': 'x',
        secret: 'x',
        'a.b/c': 'x',
        open: 'x',
        private_attributes: ['SECRET', 'a.b/c'],
      }),
    ).toEqual({ open: ['x'] });
    expect(shown({ secret: 'x', open: 'y', private_attributes: 'secret' })).toEqual({ open: ['y'] });
    expect(shown({ secret: 'x', private_attributes: { secret: true } })).toEqual({});
    expect(shown({ secret: 'x', private_attributes: [1] })).toEqual({});
  });

  it('never take the place of what rights are granted by and people are found by', () => {
    const keys = [
      'cn',
      'SAMAccountName',
      'uid',
      'mail',
      'member.Of',
      'member',
      'objectclass',
      'ak-active',
      'ak/superuser',
    ];
    const more = ['distinguishedName', 'dn', 'entryDN'];
    expect(shown(Object.fromEntries([...keys, ...more].map((key) => [key, 'forged'])))).toEqual({});
  });
});

describe('entries over the wire', () => {
  let server: TestServer;
  afterEach(async () => server.stop());

  it('show free attributes in the place of built-in ones, and of groups as well', async () => {
    const people = [
      { username: SERVICE, password: 'service' },
      {
        username: 'a, b',
        password: 'x',
        groups: ['#1', 'q\\w'],
        attributes: { displayName: 'Other', uidNumber: 77, memberOf: ['cn=core_ROLE_ADMIN'], Callsign: 'ü' },
      },
    ];
    const fake = fakeRoster(people, { groupAttributes: { '#1': { description: 'one', member: 'forged' } } });
    server = await startLdap({ fake });
    const wire = await server.asService();
    const { entries } = await wire.search(`ou=users,${CORE}`, { scope: 1 });
    const person = entries.find(({ dn }) => dn === user(String.raw`a\, b`));
    expect(person?.attributes).toMatchObject({
      displayName: ['Other'],
      uidNumber: ['77'],
      Callsign: ['ü'],
      memberOf: [String.raw`cn=\#1,ou=groups,${CORE}`, String.raw`cn=q\\w,ou=groups,${CORE}`],
    });
    const groups = await wire.search(`ou=groups,${CORE}`, { scope: 1 });
    expect(groups.entries[0]?.attributes).toMatchObject({
      cn: ['#1'],
      description: ['one'],
      member: [user(String.raw`a\, b`)],
    });
  });

  it('read a name with two bases where one lies within the other', async () => {
    const fake = fakeRoster([{ username: SERVICE, password: 'service' }]);
    server = await startLdap({ fake, bases: { core: 'dc=x', web: 'ou=web,dc=x' } });
    const wire = await server.as(user(SERVICE, 'ou=web,dc=x'), 'service');
    expect(fake.attempts[0]?.appPasswords).toBe(false);
    expect((await wire.search('ou=web,dc=x')).code).toBe(0);
    expect((await wire.search('dc=x')).code).toBe(50);
  });

  it('of 2,000 members arrive whole', async () => {
    const people = Array.from({ length: 2000 }, (_, count) => ({ username: `member${count}`, groups: ['all'] }));
    server = await startLdap({ people: [{ username: SERVICE, password: 'service' }, ...people] });
    const wire = await server.asService();
    const { entries } = await wire.search(`cn=all,ou=groups,${CORE}`, { scope: 0 });
    expect(new Set(entries[0]?.attributes['member']).size).toBe(2000);
  });
});

it('an entry is written whole wherever it ends in the buffer of the writer, which grows to 524,288 bytes', () => {
  const many = Array.from({ length: 520 }, () => 'y'.repeat(1000));
  for (let last = 2_100; last < 2_220; last++) {
    const bytes = writeEntry(1, 'cn=x', [{ name: 'v', values: [...many, 'z'.repeat(last)] }], false);
    const [message, ...rest] = nodes(bytes);
    expect(rest).toEqual([]);
    const [, operation] = nodes(message?.body ?? Buffer.alloc(0));
    const [, list] = nodes(operation?.body ?? Buffer.alloc(0));
    const [pair] = nodes(list?.body ?? Buffer.alloc(0));
    const [, set] = nodes(pair?.body ?? Buffer.alloc(0));
    const values = nodes(set?.body ?? Buffer.alloc(0)).map(({ body }) => body.toString());
    expect([values.length, values.at(-1)]).toEqual([521, 'z'.repeat(last)]);
  }
});

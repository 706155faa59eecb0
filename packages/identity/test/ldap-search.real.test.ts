// Searches: who sees what, scopes, filters, attributes.

import fc from 'fast-check';
import { afterEach, describe, expect, it } from 'vitest';
import { fakeRoster } from './fake-roster.ts';
import {
  CORE,
  equal,
  EVERYTHING,
  like,
  PEOPLE,
  present,
  SERVICE,
  startLdap,
  str,
  type TestServer,
  tlv,
  user,
  WEB,
} from './ldap-wire.ts';
import { runs } from '../../../test/support/runs.ts';

let server: TestServer;
afterEach(async () => server.stop());

const group = (name: string, base = CORE): string => `cn=${name},ou=groups,${base}`;
const virtual = (name: string): string => `cn=${name},ou=virtual-groups,${CORE}`;
const units = [CORE, `ou=users,${CORE}`, `ou=groups,${CORE}`, `ou=virtual-groups,${CORE}`];

describe('without a bind', () => {
  it('shows the root and nothing else', async () => {
    server = await startLdap();
    const wire = server.wire();
    const root = await wire.search('', { scope: 0 });
    expect(root.code).toBe(0);
    expect(root.entries[0]?.attributes).toMatchObject({
      supportedLDAPVersion: ['3'],
      namingContexts: [CORE, `ou=users,${CORE}`, `ou=groups,${CORE}`, WEB, `ou=users,${WEB}`, `ou=groups,${WEB}`],
      supportedControl: ['1.2.840.113556.1.4.319', '2.16.840.1.113730.3.4.2'],
      supportedExtension: ['1.3.6.1.4.1.4203.1.11.3'],
      subschemaSubentry: ['cn=subschema'],
    });
    for (const base of ['', CORE, user('Alice'), user('nobody'), 'cn=subschema', 'dc=other']) {
      expect((await wire.search(base)).code).toBe(50);
    }
    expect((await wire.search('cn=subschema', { scope: 0 })).code).toBe(50);
    expect(wire.answers.filter(({ tag }) => tag === 0x64)).toHaveLength(1);
    expect(server.roster.calls).toEqual([]);
  });
});

describe('a person', () => {
  it('sees itself, its groups with itself as only member, its own group and the containers', async () => {
    server = await startLdap();
    const wire = await server.as(user('alice'), 'once');
    const { code, entries, dns } = await wire.search(CORE);
    expect(code).toBe(0);
    expect(dns.toSorted()).toEqual(
      [...units, user('Alice'), group('core_red'), group('staff'), virtual('Alice')].toSorted(),
    );
    const members = entries.flatMap(({ attributes }) => attributes['member'] ?? []);
    expect(new Set(members)).toEqual(new Set([user('Alice')]));
    expect(entries.find(({ dn }) => dn === user('Alice'))?.attributes).toMatchObject({
      cn: ['Alice'],
      sAMAccountName: ['Alice'],
      displayName: ['Alice Ö'],
      mail: ['alice@example.org'],
      'ak-active': ['TRUE'],
      memberOf: [group('core_red'), group('staff')],
      callsign: ['RED-1'],
      uidNumber: ['2002'],
      pwdChangedTime: ['20260102030405Z'],
      distinguishedName: [user('Alice')],
    });
  });

  it('gets 32 for what is not there and for what is not its own alike', async () => {
    server = await startLdap();
    const wire = await server.as(user('bob'), 'bobs');
    for (const base of [
      user('Alice'),
      user('nobody'),
      group('staff'),
      group('none'),
      virtual('Alice'),
      'dc=other',
      '',
    ]) {
      expect((await wire.search(base)).code, base).toBe(32);
    }
    expect((await wire.search(group('core_red'), { scope: 0 })).entries[0]?.attributes['member']).toEqual([
      user('bob'),
    ]);
  });

  it('sees no more when the store hands out more than was asked', async () => {
    server = await startLdap({ fake: fakeRoster(PEOPLE, { loose: true }) });
    const wire = await server.as(user('bob'), 'bobs');
    expect((await wire.search(CORE)).dns.toSorted()).toEqual(
      [...units, user('bob'), group('core_red'), virtual('bob')].toSorted(),
    );
    expect((await wire.search(group('staff'))).code).toBe(32);
  });

  it('gets 50 on the other base, whatever it asks for there', async () => {
    server = await startLdap();
    const wire = await server.as(user('Alice', WEB), 'right');
    expect((await wire.search(user('Alice', CORE), { scope: 0 })).code).toBe(50);
    expect((await wire.search(user('nobody', CORE), { scope: 0 })).code).toBe(50);
    const own = await wire.search(user('Alice', WEB), { scope: 0 });
    expect(own.entries[0]?.attributes['memberOf']).toEqual([group('core_red', WEB), group('staff', WEB)]);
  });

  it('cannot tell by a filter what it may not see', async () => {
    server = await startLdap();
    const wire = await server.as(user('bob'), 'bobs');
    expect((await wire.search(CORE, { filter: equal('member', user('Alice')) })).dns).toEqual([]);
    expect((await wire.search(CORE, { filter: equal('mail', 'alice@example.org') })).dns).toEqual([]);
  });
});

describe('the service account', () => {
  it('sees everything, inactive people too', async () => {
    server = await startLdap();
    const wire = await server.asService();
    const { dns, entries } = await wire.search(CORE);
    const names = PEOPLE.map(({ username }) => username);
    expect(dns.toSorted()).toEqual(
      [
        ...units,
        group('core_red'),
        group('staff'),
        ...names.map((name) => user(name)),
        ...names.map(virtual),
      ].toSorted(),
    );
    const gone = entries.find(({ dn }) => dn === user('gone'));
    expect(gone?.attributes).toMatchObject({ 'ak-active': ['FALSE'], memberOf: [group('core_red')] });
    expect(entries.find(({ dn }) => dn === group('core_red'))?.attributes['member']).toHaveLength(3);
  });

  it.each([
    [CORE, 0, 1],
    [CORE, 1, 3],
    [CORE, 3, 13],
    [`ou=users,${CORE}`, 0, 1],
    [`ou=users,${CORE}`, 1, 4],
    [`ou=users,${CORE}`, 2, 5],
    [`OU=Groups,${CORE}`, 3, 2],
    [user('Alice'), 0, 1],
    [user('Alice'), 1, 0],
    [user('Alice'), 2, 1],
    [user('Alice'), 3, 0],
    [virtual('bob'), 0, 1],
    [group('STAFF'), 2, 1],
  ] as const)('below %s in scope %i: %i entries', async (base, scope, count) => {
    server = await startLdap();
    const wire = await server.asService();
    const { code, entries } = await wire.search(base, { scope });
    expect([code, entries.length]).toEqual([0, count]);
  });

  it('reads its own schema', async () => {
    server = await startLdap();
    const wire = await server.asService();
    const { entries } = await wire.search('cn=subschema', { scope: 0, attributes: ['+'] });
    const types = entries[0]?.attributes['attributeTypes'] ?? [];
    const known = types.map((type) => /NAME '([^']+)'/.exec(type)?.[1]);
    const all = (await wire.search(CORE, { attributes: ['*', '+'] })).entries.flatMap(({ attributes }) =>
      Object.keys(attributes),
    );
    expect([...new Set(all)].filter((name) => !known.includes(name))).toEqual(['callsign']);
  });
});

const and = (...parts: Buffer[]): Buffer => tlv(0xa0, ...parts);
const or = (...parts: Buffer[]): Buffer => tlv(0xa1, ...parts);
const not = (part: Buffer): Buffer => tlv(0xa2, part);
const atLeast = (attribute: string, value: string): Buffer => tlv(0xa5, str(attribute), str(value));
const atMost = (attribute: string, value: string): Buffer => tlv(0xa6, str(attribute), str(value));
const rule = (attribute: string, value: string, oid?: string): Buffer =>
  tlv(0xa9, ...(oid === undefined ? [] : [str(oid, 0x81)]), str(attribute, 0x82), str(value, 0x83));

const PEOPLE_NAMES = [SERVICE, 'Alice', 'bob', 'gone'];
const FILTERS: [string, Buffer, string[]][] = [
  ['equality', equal('cn', 'ALICE'), ['Alice']],
  ['equality by number', equal('2.5.4.3', 'alice'), ['Alice']],
  ['approximate', tlv(0xa8, str('CN'), str('alice')), ['Alice']],
  ['presence', present('mail'), ['Alice', 'bob']],
  ['presence of the unknown', present('nothing'), []],
  ['substring', like('mail', [0x80, 'AL'], [0x81, 'ce@'], [0x82, '.org']), ['Alice']],
  ['substring that overlaps', like('cn', [0x80, 'bob'], [0x82, 'bob']), []],
  ['substring in a name', like('memberOf', [0x81, 'cn=core_']), ['Alice', 'bob', 'gone']],
  ['at least, as a number', atLeast('uidNumber', '2003'), ['bob', 'gone']],
  ['at most, as a number', atMost('uidNumber', '2002'), [SERVICE, 'Alice']],
  ['a number that is none', not(atMost('uidNumber', 'x')), []],
  ['at most, as text', atMost('cn', 'bob'), [SERVICE, 'Alice', 'bob']],
  ['membership', equal('memberOf', `CN=staff, OU=groups,${CORE.toUpperCase()}`), ['Alice']],
  ['membership elsewhere', equal('memberOf', group('staff', WEB)), []],
  ['membership in what is no name', not(equal('memberOf', 'staff')), [SERVICE]],
  ['extensible', rule('cn', 'bob'), ['bob']],
  ['extensible with a rule', rule('cn', 'BOB', 'caseIgnoreMatch'), ['bob']],
  ['extensible in a chain', rule('memberOf', group('staff'), '1.2.840.113556.1.4.1941'), ['Alice']],
  ['extensible with an unknown rule', not(rule('cn', 'bob', '1.2.3')), []],
  [
    'extensible with parts of the name',
    tlv(0xa9, str('ou', 0x82), str('USERS', 0x83), tlv(0x84, Buffer.from([255]))),
    PEOPLE_NAMES,
  ],
  ['all of nothing', and(), PEOPLE_NAMES],
  ['any of nothing', or(), []],
  ['not', not(equal('cn', 'alice')), [SERVICE, 'bob', 'gone']],
  ['not of the unknown', not(equal('nothing', 'x')), []],
  ['not of a known one that is absent', not(equal('description', 'x')), PEOPLE_NAMES],
  ['the unknown and true', and(equal('nothing', 'x'), equal('cn', 'bob')), []],
  ['the unknown or true', or(equal('nothing', 'x'), equal('cn', 'bob')), ['bob']],
  ['not (the unknown and false)', not(and(equal('nothing', 'x'), equal('cn', 'bob'))), [SERVICE, 'Alice', 'gone']],
  ['bytes that are no text', not(tlv(0xa3, str('cn'), str(Buffer.from([0xff])))), []],
  ['custom attribute', equal('CallSign', 'red-1'), ['Alice']],
  ['inactive', equal('ak-active', 'false'), ['gone']],
];

describe('a filter', () => {
  it.each(FILTERS)('%s', async (_, filter, expected) => {
    server = await startLdap();
    const wire = await server.asService();
    const { code, dns } = await wire.search(`ou=users,${CORE}`, { scope: 1, filter });
    expect(code).toBe(0);
    expect(dns).toEqual(expected.map((name) => user(name)));
  });

  it('finds the same in the whole tree as in a store that narrows nothing', async () => {
    server = await startLdap();
    const wire = await server.asService();
    const leaf = fc.constantFrom(
      ...FILTERS.map(([, filter]) => filter),
      ...['user', 'group', 'groupOfNames', 'organizationalUnit', 'goauthentik.io/ldap/virtual-group', 'none'].map(
        (name) => equal('objectClass', name),
      ),
      ...['core_red', 'bob', 'users'].map((name) => equal('cn', name)),
      equal('member', user('bob')),
      equal('member', group('staff')),
      equal('distinguishedName', user('bob')),
      equal('distinguishedName', virtual('bob')),
      equal('mail', 'BOB@example.org'),
      EVERYTHING,
    );
    const { filter } = fc.letrec<{ filter: Buffer }>((tie) => ({
      filter: fc.oneof(
        { depthSize: 'small', withCrossShrink: true },
        leaf,
        fc.array(tie('filter'), { maxLength: 3 }).map((parts) => and(...parts)),
        fc.array(tie('filter'), { maxLength: 3 }).map((parts) => or(...parts)),
        tie('filter').map(not),
      ),
    }));
    const fake = fakeRoster(PEOPLE, { loose: true });
    const loose = await startLdap({ fake });
    const reference = await loose.asService();
    const all = (await reference.search(CORE)).dns;
    try {
      await fc.assert(
        fc.asyncProperty(filter, async (filter) => {
          const found = (await wire.search(CORE, { filter })).dns;
          expect(found).toEqual((await reference.search(CORE, { filter })).dns);
          const each: string[] = [];
          for (const dn of all) each.push(...(await reference.search(dn, { scope: 0, filter })).dns);
          expect(found).toEqual(each);
        }),
        { numRuns: runs(60) },
      );
    } finally {
      await loose.stop();
    }
  });

  it('asks the store for no more than it demands', async () => {
    server = await startLdap();
    const wire = await server.asService();
    const request = async (base: string, filter: Buffer): Promise<unknown[]> => {
      const before = server.roster.calls.length;
      await wire.search(base, { filter });
      return server.roster.calls.slice(before).flatMap(({ method, where }) => (where ? [[method, where]] : []));
    };
    expect(await request(CORE, and(equal('objectClass', 'user'), equal('cn', 'bob')))).toEqual([
      ['people', { username: 'bob' }],
    ]);
    expect(await request(CORE, and(equal('member', user('bob')), equal('objectClass', 'groupOfNames')))).toEqual([
      ['groups', { member: 'bob' }],
      ['people', { username: 'bob' }],
    ]);
    expect(await request(`ou=users,${CORE}`, equal('sAMAccountName', 'bob'))).toEqual([
      ['people', { username: 'bob' }],
    ]);
    expect(await request(`ou=users,${CORE}`, equal('mail', 'x@y'))).toEqual([['people', { email: 'x@y' }]]);
    expect(await request(`ou=users,${CORE}`, equal('memberOf', group('staff')))).toEqual([
      ['people', { group: 'staff' }],
    ]);
    expect(await request(CORE, equal('objectClass', 'organizationalUnit'))).toEqual([]);
    expect(await request(`ou=users,${CORE}`, or(equal('cn', 'bob'), equal('cn', 'Alice')))).toEqual([['people', {}]]);
  });

  it('that is too deep, too wide or of an unknown kind gets 2, and the connection goes on', async () => {
    server = await startLdap();
    const wire = await server.asService();
    let deep = EVERYTHING;
    for (let depth = 0; depth < 40; depth++) deep = not(deep);
    for (const filter of [deep, or(...Array.from({ length: 1000 }, () => EVERYTHING)), tlv(0xbe, 'x')]) {
      expect((await wire.search(CORE, { filter })).code).toBe(2);
    }
    expect((await wire.search(CORE)).code).toBe(0);
  });
});

describe('attributes', () => {
  it.each([
    [
      ['MAIL', 'cn'],
      ['cn', 'mail'],
    ],
    [['2.5.4.3'], ['cn']],
    [['1.1'], []],
    [['1.1', 'cn'], ['cn']],
    [['+'], ['entryDN', 'hasSubordinates', 'subschemaSubentry']],
    [
      ['cn', '+'],
      ['cn', 'entryDN', 'hasSubordinates', 'subschemaSubentry'],
    ],
    [['ntUserWorkstations'], []],
  ])('%j: %j', async (attributes, expected) => {
    server = await startLdap();
    const wire = await server.as(user('Alice'), 'right');
    const { entries } = await wire.search(user('Alice'), { scope: 0, attributes });
    expect(Object.keys(entries[0]?.attributes ?? {}).toSorted()).toEqual(expected);
  });

  it('come without values when only types are asked for', async () => {
    server = await startLdap();
    const wire = await server.as(user('Alice'), 'right');
    const { entries } = await wire.search(user('Alice'), { scope: 0, attributes: ['cn', 'mail'], typesOnly: true });
    expect(entries[0]?.attributes).toEqual({ cn: [], mail: [] });
  });
});

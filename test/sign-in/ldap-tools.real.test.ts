// The LDAP server asked by the tools that people use: ldapwhoami, ldapsearch, and the client library of the product.

import { execFile, spawnSync } from 'node:child_process';
import { Client } from 'ldapts';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { FakePerson } from '../../packages/identity/test/fake-roster.ts';
import {
  CORE,
  PEOPLE,
  SERVICE,
  startLdap,
  type TestServer,
  user,
  WEB,
} from '../../packages/identity/test/ldap-wire.ts';

const installed = ['ldapsearch', 'ldapwhoami'].every((tool) => spawnSync(tool, ['-VV']).error === undefined);
const reason = installed ? '' : ' (skipped: ldapsearch and ldapwhoami of the package ldap-utils are not installed)';

const AWKWARD = ['a,b', 'a+b', ' x', 'x ', '#x', 'ü', '\\', '*', '(', ')', 'a"b', 'a=b', '<a>', 'a;b', 'two  blanks'];
const CROWD: FakePerson[] = Array.from({ length: 1005 }, (_, count) => ({
  username: `crowd${count}`,
  groups: ['many'],
}));

let server: TestServer;
beforeAll(async () => {
  server = await startLdap({
    people: [
      ...PEOPLE,
      ...AWKWARD.map((username) => ({ username, password: `pw${username}`, groups: [`group ${username}`] })),
      ...CROWD,
    ],
  });
});
afterAll(async () => server.stop());

interface Ran {
  code: number;
  out: string;
  error: string;
  /** Decoded names of entries. */
  dns: string[];
}

async function run(tool: string, ...args: string[]): Promise<Ran> {
  const all = ['-x', '-H', `ldap://127.0.0.1:${server.port}`, ...args];
  const env = { ...process.env, LDAPRC: '/dev/null', LDAPNOINIT: '1' };
  return new Promise((resolve) => {
    execFile(tool, all, { env, maxBuffer: 1 << 26 }, (failure, out, error) => {
      const dns = [...out.matchAll(/^dn:(:?) (.*)$/gm)].map(([, coded, text = '']) =>
        coded === ':' ? Buffer.from(text, 'base64').toString() : text,
      );
      resolve({ code: failure === null ? 0 : Number(failure.code), out, error, dns });
    });
  });
}

const whoAmI = async (dn: string, password: string): Promise<Ran> => run('ldapwhoami', '-D', dn, '-w', password);
const searchAs = async (dn: string, password: string, ...args: string[]): Promise<Ran> =>
  run('ldapsearch', '-LLL', '-o', 'ldif-wrap=no', '-D', dn, '-w', password, ...args);
const asService = async (...args: string[]): Promise<Ran> => searchAs(user(SERVICE), 'service', ...args);

describe.skipIf(!installed)(`ldapwhoami${reason}`, () => {
  it('binds on both bases, with an app password on the core base only', async () => {
    expect(await whoAmI(user('alice'), 'right')).toMatchObject({ code: 0, out: `dn:${user('alice')}\n` });
    expect((await whoAmI(user('Alice'), 'once')).code).toBe(0);
    expect((await whoAmI(user('Alice', WEB), 'right')).code).toBe(0);
    expect((await whoAmI(user('Alice', WEB), 'once')).code).toBe(49);
    expect((await whoAmI(user('gone'), 'gones')).code).toBe(49);
    expect((await whoAmI('', '')).code).toBe(50);
    expect((await whoAmI('cn=x,dc=other', 'x')).code).toBe(50);
  });

  it('binds names that have to be escaped, in each way of escaping', async () => {
    for (const name of AWKWARD) {
      const hex = [...Buffer.from(name)].map((byte) => `\\${byte.toString(16).padStart(2, '0')}`).join('');
      const { code, out } = await whoAmI(user(hex), `pw${name}`);
      expect(code, name).toBe(0);
      const written = out.slice(3).trim();
      expect((await whoAmI(written, `pw${name}`)).code, written).toBe(0);
    }
  });
});

describe.skipIf(!installed)(`ldapsearch${reason}`, () => {
  it('reads the own entry and what the core server wants of it', async () => {
    const { code, out } = await searchAs(user('Alice'), 'once', '-s', 'base', '-b', user('alice'), '(objectClass=*)');
    expect(code).toBe(0);
    expect(out).toContain('distinguishedName: cn=Alice,ou=users,');
    const wanted = ['memberOf', 'ntUserWorkstations'];
    const own = await searchAs(user('Alice'), 'right', '-s', 'base', '-b', user('Alice'), '(objectClass=*)', ...wanted);
    expect(own.out.trim().split('\n')).toEqual([
      `dn: ${user('Alice')}`,
      `memberOf: cn=core_red,ou=groups,${CORE}`,
      `memberOf: cn=staff,ou=groups,${CORE}`,
    ]);
  });

  it.each([
    [`(&(member=${user('bob')})(objectClass=groupOfNames))`, `ou=groups,${CORE}`, [`cn=core_red,ou=groups,${CORE}`]],
    ['(sAMAccountName=BOB)', `ou=users,${CORE}`, [user('bob')]],
    ['(mail=Bob@example.org)', `ou=users,${CORE}`, [user('bob')]],
    ['(mail=*)', `ou=users,${CORE}`, [user('Alice'), user('bob')]],
    ['(&(objectclass=group)(CN=*ORE_R*))', `ou=groups,${CORE}`, [`cn=core_red,ou=groups,${CORE}`]],
    ['(&(objectClass=user)(cn=alice))', CORE, [user('Alice')]],
    ['(&(objectClass=user)(ak-active=FALSE))', CORE, [user('gone')]],
    [String.raw`(&(objectClass=user)(cn=\2a))`, CORE, [user('*')]],
    [String.raw`(&(objectClass=user)(cn=*\28*))`, CORE, [user('(')]],
  ])('%s below %s', async (filter, base, expected) => {
    const { code, dns } = await asService('-b', base, filter, 'cn');
    expect(code).toBe(0);
    expect(dns.toSorted()).toEqual(expected.toSorted());
  });

  it('finds each awkward name by the name that it was told, and its groups', async () => {
    const { dns } = await asService('-b', `ou=users,${CORE}`, '-s', 'one', '(!(cn=crowd*))', '1.1');
    expect(dns).toHaveLength(PEOPLE.length + AWKWARD.length);
    for (const dn of dns) {
      const found = await asService('-b', dn, '-s', 'base', '(objectClass=*)', '1.1');
      expect(found.dns, dn).toEqual([dn]);
    }
    for (const name of ['a,b', ' x', 'ü', '*']) {
      const hex = [...Buffer.from(`group ${name}`)].map((byte) => `\\5c${byte.toString(16).padStart(2, '0')}`).join('');
      const members = await asService('-b', `ou=users,${CORE}`, `(memberOf=cn=${hex},ou=groups,${CORE})`, 'cn');
      expect(members.dns, name).toHaveLength(1);
    }
  });

  it('pages by two over a thousand users, each once', async () => {
    const { code, dns } = await asService('-b', `ou=users,${CORE}`, '-E', 'pr=2/noprompt', '(objectClass=user)', '1.1');
    expect(code).toBe(0);
    expect(dns).toHaveLength(PEOPLE.length + AWKWARD.length + CROWD.length);
    expect(new Set(dns).size).toBe(dns.length);
  });

  it('gets 4 with what it allowed, 12 for a critical control, nothing without sign-in', async () => {
    const limited = await asService('-b', CORE, '-z', '10', '1.1');
    expect([limited.code, limited.dns.length]).toEqual([4, 10]);
    expect((await asService('-b', CORE, '-E', '!1.2.3.4')).code).toBe(12);
    expect((await asService('-b', CORE, '-e', '!1.2.3.4')).code).toBe(12);
    expect((await asService('-b', user('bob'), '-M', '-e', '1.2.3.4')).code).toBe(0);
    expect((await asService('-b', user('bob'), '-MM')).code).toBe(0);
    expect((await run('ldapsearch', '-b', CORE)).code).toBe(50);
    expect((await searchAs(user('bob'), 'bobs', '-b', user('Alice'))).code).toBe(32);
    expect((await searchAs(user(SERVICE, WEB), 'service', '-b', CORE)).code).toBe(50);
  });
});

describe('ldapts', () => {
  it('binds, searches by pages, compares, and is told what is refused', async () => {
    const client = new Client({ url: `ldap://127.0.0.1:${server.port}`, timeout: 10_000 });
    await expect(client.bind(user('Alice'), 'wrong')).rejects.toMatchObject({ code: 49 });
    await client.bind(user(SERVICE), 'service');
    const { searchEntries } = await client.search(`ou=groups,${CORE}`, {
      filter: '(&(objectClass=group)(cn=many))',
      attributes: ['cn', 'member'],
    });
    expect(searchEntries).toHaveLength(1);
    expect(searchEntries[0]?.['member']).toHaveLength(CROWD.length);
    const paged = await client.search(`ou=users,${CORE}`, {
      scope: 'sub',
      paged: { pageSize: 100 },
      attributes: ['cn'],
    });
    expect(paged.searchEntries).toHaveLength(1 + PEOPLE.length + AWKWARD.length + CROWD.length);
    expect(await client.compare(user('bob'), 'cn', 'BOB')).toBe(true);
    await expect(client.del(user('bob'))).rejects.toMatchObject({ code: 50 });
    await client.unbind();
  });
});

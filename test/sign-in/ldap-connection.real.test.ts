// One connection to a directory: who asks is always known.

import { PresenceFilter } from 'ldapts';
import { afterEach, describe, expect, it } from 'vitest';
import { type LdapSearch, openLdap } from '../../shared/sign-in/ldap/connection.ts';
import { ldapWorld, PASSWORD, SERVICE_PASSWORD } from './fake-ldap-world.ts';

const CORE = 'DC=core,DC=holdfast';
const SERVICE_DN = `cn=adm_ldapservice,ou=users,${CORE}`;
const ALICE_DN = `cn=alice,ou=users,${CORE}`;
const ended: (() => Promise<void>)[] = [];

afterEach(async () => {
  for (const end of ended.splice(0)) await end();
});

describe('one connection', () => {
  async function open() {
    const { server, end } = await ldapWorld();
    const until = performance.now() + 3000;
    const connection = await openLdap({ host: '127.0.0.1', port: server.port, tls: false, caFile: undefined }, until);
    ended.push(async () => {
      connection.close();
      await end();
    });
    const filter = new PresenceFilter({ attribute: 'objectClass' });
    const limits = { maxEntries: 1, maxBytes: 10_000 };
    const search: LdapSearch = { base: ALICE_DN, scope: 'base', filter, attributes: ['cn'], ...limits };
    return { server, connection, search: (as: string) => connection.search(as, search, until), until };
  }

  it('asks as nobody but the one who is named', async () => {
    const { server, connection, search, until } = await open();
    await expect(search(ALICE_DN)).rejects.toThrow('another identity');
    expect(await connection.bind(SERVICE_DN, SERVICE_PASSWORD, until)).toBe(0);
    await expect(search(ALICE_DN)).rejects.toThrow('another identity');
    expect((await search(SERVICE_DN)).entries).toHaveLength(1);
    expect(await connection.bind(ALICE_DN, 'wrong', until)).toBe(49);
    expect(connection.identity).toBeUndefined();
    await expect(search(SERVICE_DN)).rejects.toThrow('another identity');
    expect(server.requests.filter(({ kind }) => kind === 'search')).toHaveLength(1);
  });

  it('is nobody while a bind is under way, and after it has ended', async () => {
    const { server, connection, search, until } = await open();
    await connection.bind(SERVICE_DN, SERVICE_PASSWORD, until);
    server.mood = () => {};
    const late = connection.bind(ALICE_DN, PASSWORD, performance.now() + 50);
    expect(connection.identity).toBeUndefined();
    await expect(late).rejects.toMatchObject({ code: 'unavailable' });
    await expect(search(SERVICE_DN)).rejects.toMatchObject({ code: 'unavailable' });
    expect(server.connections).toBe(1);
  });
});

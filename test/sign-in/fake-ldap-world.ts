// A directory over LDAP that talks to the small server of the tests, with a few people in it.

import type { Fields } from '@holdfast/kit/log';
import { Secret } from '@holdfast/kit/secret';
import { LdapDirectory, type LdapDirectoryOptions } from '../../shared/sign-in/ldap/directory.ts';
import { type LdapServerFake, startLdapServer } from './fake-ldap-server.ts';

export const SERVICE_PASSWORD = 'the+service=secret-8931';
export const PASSWORD = 'the-own-secret-7719';
const CORE = 'DC=core,DC=holdfast';
const WEB = 'DC=web,DC=holdfast';

export async function ldapWorld(input: Partial<LdapDirectoryOptions> = {}, tls?: { key: string; cert: string }) {
  const server = await startLdapServer(tls);
  const logged: { event: string; fields: Fields | undefined }[] = [];
  const log = (event: string, fields?: Fields): void => void logged.push({ event, fields });
  for (const base of [CORE, WEB]) {
    addUser(server, base, 'adm_ldapservice', SERVICE_PASSWORD);
    addUser(server, base, 'alice', PASSWORD);
    server.entries.set(`ou=groups,${base}`.toLowerCase(), { cn: ['stack_admin'], member: ['cn=alice', 'cn=bob'] });
  }
  const directory = new LdapDirectory({
    url: `${tls === undefined ? 'ldap' : 'ldaps'}://127.0.0.1:${server.port}`,
    coreBase: CORE,
    webBase: WEB,
    serviceAccount: { username: 'adm_ldapservice', password: new Secret(SERVICE_PASSWORD) },
    log: { info: log, warn: log, error: log },
    withinMs: 600,
    ...input,
  });
  return {
    server,
    directory,
    logged,
    end: async (): Promise<void> => {
      await server.close();
      await directory.close();
    },
  };
}

export function addUser(server: LdapServerFake, base: string, username: string, password: string): void {
  const dn = `cn=${username},ou=users,${base}`.toLowerCase();
  server.passwords.set(dn, password);
  server.entries.set(dn, { cn: [username], memberOf: [`cn=stack_admin,ou=groups,${base}`], 'ak-active': ['TRUE'] });
}

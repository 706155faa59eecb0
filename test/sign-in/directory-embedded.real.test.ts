// The directory adapter and the embedded provider's LDAP server over a real PostgreSQL, held to the contract together.

import { describe } from 'vitest';
import { createLdapServer, type LdapServer } from '@holdfast/identity/ldap/server';
import { Secret } from '@holdfast/kit/secret';
import { LdapDirectory } from '../../shared/sign-in/ldap/directory.ts';
import { testProvider } from '../e2e/embedded/identity-provider.ts';
import { memoryLog } from '../http/fake-deps.ts';
import { directoryContract, type DirectoryWorld } from './directory-contract.ts';

const BASES = { core: 'DC=core,DC=holdfast', web: 'DC=web,DC=holdfast' };
const SERVICE = { username: 'adm_ldapservice', password: 'the password of the service account' };

describe('the embedded provider', () => {
  const provider = testProvider();

  async function makeWorld(): Promise<DirectoryWorld> {
    const { roster, checkPassword } = provider.store;
    const pks = new Map<string, number>();
    const groups = new Map<string, string>();
    const newServer = (): LdapServer =>
      createLdapServer({ roster, checkPassword, bases: BASES, searchAccount: SERVICE.username, log: memoryLog() });
    let server = newServer();
    const port = await server.listen(0, '127.0.0.1');

    const change = async (method: string, path: string, json: object): Promise<unknown> => {
      const { status, body } = await provider.ask(method, path, { json });
      if (status >= 300) throw new Error(`${method} ${path}: ${status} ${JSON.stringify(body)}`);
      return body as unknown;
    };
    async function createUser(username: string, password: string): Promise<void> {
      const { pk } = (await provider.create({ username })) as { pk: number };
      pks.set(username, pk);
      await change('POST', `/core/users/${pk}/set_password/`, { password });
    }
    async function createGroup(name: string): Promise<void> {
      if (groups.has(name)) return;
      const { pk } = (await provider.group({ name })) as { pk: string };
      groups.set(name, pk);
    }

    await createUser(SERVICE.username, SERVICE.password);
    const directory = new LdapDirectory({
      url: `ldap://127.0.0.1:${port}`,
      coreBase: BASES.core,
      webBase: BASES.web,
      serviceAccount: { username: SERVICE.username, password: new Secret(SERVICE.password) },
      log: memoryLog(),
    });
    return {
      directory,
      createUser,
      groups: (containing) => directory.groups(containing),
      createGroup,
      async join(username, group) {
        await createGroup(group);
        await change('POST', `/core/groups/${groups.get(group)}/add_user/`, { pk: pks.get(username) });
      },
      async createAppPassword(username, expires) {
        const identifier = `app-${crypto.randomUUID()}`;
        const intent = 'app_password';
        const user = pks.get(username);
        await change('POST', '/core/tokens/', { identifier, intent, user, expires: expires.toISOString() });
        const { body } = await provider.ask('GET', `/core/tokens/${identifier}/view_key/`);
        return (body as { key: string }).key;
      },
      async deactivate(username) {
        await change('PATCH', `/core/users/${pks.get(username)}/`, { is_active: false });
      },
      joinElsewhere: undefined,
      stop: () => server.close(0),
      async start() {
        server = newServer();
        await server.listen(port, '127.0.0.1');
      },
      async end() {
        await directory.close();
        await server.close(0);
      },
    };
  }

  directoryContract(makeWorld, {
    appPasswords: true,
    inactiveUsers: true,
    groupsElsewhere: false,
    restart: true,
    listsGroups: true,
    anyUserName: true,
  });
});

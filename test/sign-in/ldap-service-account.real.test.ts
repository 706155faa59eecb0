// The service account that the directory refuses: at the first start it has its password a moment later than we ask.

import { afterEach, describe, expect, it, vi } from 'vitest';
import { DEFAULT_RULE } from '@holdfast/kit/lockout';
import { Secret } from '@holdfast/kit/secret';
import type { LdapDirectoryOptions } from '../../shared/sign-in/ldap/directory.ts';
import { ldapWorld, PASSWORD } from './fake-ldap-world.ts';

const SERVICE_DN = 'cn=adm_ldapservice,ou=users,DC=core,DC=holdfast';
const ended: (() => Promise<void>)[] = [];

afterEach(async () => {
  vi.useRealTimers();
  for (const end of ended.splice(0)) await end();
});

async function world(input: Partial<LdapDirectoryOptions>) {
  const made = await ldapWorld(input);
  ended.push(() => made.end());
  return { ...made, binds: () => made.server.requests.filter(({ kind }) => kind === 'bind').map(({ dn }) => dn) };
}

describe('a service account that the directory refuses', () => {
  it('is done without when it is refused, which is said once and not tried again at once', async () => {
    vi.useFakeTimers({ toFake: ['performance'] });
    const password = new Secret('an-old-secret');
    const { server, directory, logged, binds } = await world({
      serviceAccount: { username: 'adm_ldapservice', password },
    });
    await Promise.all([1, 2, 3].map(() => directory.signIn('core', 'alice', 'wrong')));
    expect(await directory.signIn('core', 'alice', PASSWORD)).toMatchObject({ username: 'alice' });
    for (const socket of server.open) socket.destroy();
    expect(await directory.signIn('core', 'alice', PASSWORD)).toMatchObject({ username: 'alice' });
    expect(logged).toEqual([
      {
        event: 'directory.service_account_refused',
        fields: { base: 'core', account: 'adm_ldapservice', result: 49 },
      },
    ]);
    expect(binds().filter((dn) => dn === SERVICE_DN)).toHaveLength(1);
    for (const call of [directory.find('alice'), directory.probe('core', 'stack_admin')])
      await expect(call).rejects.toMatchObject({
        code: 'upstream',
        message: expect.stringContaining('refuses the service account adm_ldapservice on the core base'),
      });
  });

  it('is asked for again ever more seldom, and as before once it was accepted', async () => {
    vi.useFakeTimers({ toFake: ['performance'] });
    const password = new Secret('the-secret-to-come');
    const { server, directory, binds } = await world({
      serviceAccount: { username: 'adm_ldapservice', password },
    });
    const bindCount = (): number => binds().filter((dn) => dn === SERVICE_DN).length;
    const refusedAt: number[] = [];
    for (let second = 0; second < 300; second++) {
      const before = bindCount();
      await directory.find('alice').catch(() => undefined);
      if (bindCount() > before) refusedAt.push(second);
      vi.advanceTimersByTime(1_000);
    }
    expect(refusedAt).toEqual([0, 2, 6, 14, 30, 62, 122, 182, 242]);
    expect(refusedAt.length).toBeLessThan(DEFAULT_RULE.failures);
    server.passwords.set(SERVICE_DN.toLowerCase(), 'the-secret-to-come');
    vi.advanceTimersByTime(60_000);
    expect(await directory.find('alice')).toMatchObject({ username: 'alice' });
    server.passwords.delete(SERVICE_DN.toLowerCase());
    for (const socket of server.open) socket.destroy();
    await expect(directory.find('alice')).rejects.toMatchObject({ code: 'upstream' });
    vi.advanceTimersByTime(2_000);
    const before = bindCount();
    await expect(directory.find('alice')).rejects.toMatchObject({ code: 'upstream' });
    expect(bindCount()).toBe(before + 1);
  });
});

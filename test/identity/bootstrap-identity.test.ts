import { beforeEach, describe, expect, it } from 'vitest';
import { AppError } from '@holdfast/kit/app-error';
import { type BootstrapDeps, bootstrapIdentity } from '../../shared/identity/bootstrap.ts';
import type { AppliedPasswords } from '../../shared/identity/port.ts';
import { fakeIdentity } from './fake-identity.ts';

const WANTED = {
  adminGroup: 'Chiefs',
  viewerGroup: 'stack_viewer',
  webadminPassword: 'a password of the settings',
  ldapServicePassword: 'the password of the service',
};
const EVERYTHING = [
  'created group core_ROLE_ADMIN',
  'created group Chiefs',
  'created group stack_viewer',
  'created account webadmin',
  'added webadmin to core_ROLE_ADMIN',
  'set the password of webadmin to the one in the settings',
  'created account svc_api',
  'created account svc_nodered',
  'created account svc_probe',
  'created account svc_canary',
  'created group core_holdfast_probe',
  'added svc_probe to core_holdfast_probe',
  'added svc_canary to core_holdfast_probe',
  'created group core_holdfast_no_group_READ',
  'created account adm_ldapservice',
  'set the password of adm_ldapservice to the one in the settings',
];

function memoryPasswords(): AppliedPasswords {
  const applied = new Map<string, string>();
  return {
    isApplied: async (username, password) => applied.get(username) === password,
    remember: async (username, password) => void applied.set(username, password),
    forget: async (username) => void applied.delete(username),
  };
}

let identity: ReturnType<typeof fakeIdentity>;
let deps: BootstrapDeps;
let refused: boolean;

beforeEach(() => {
  identity = fakeIdentity();
  refused = false;
  deps = {
    identity,
    appliedPasswords: memoryPasswords(),
    directory: {
      signIn: async (base, username, password) => {
        expect([base, username, password]).toEqual(['core', 'adm_ldapservice', WANTED.ldapServicePassword]);
        return refused ? undefined : { dn: 'cn=adm_ldapservice', username, isActive: true, groups: [] };
      },
    },
  };
});

async function bootstrap(input: Partial<typeof WANTED> = {}): Promise<string[]> {
  const { changes, refused: words } = await bootstrapIdentity(deps, { ...WANTED, ...input });
  expect(words).toEqual([]);
  return changes;
}

const idOf = async (username: string): Promise<number> => (await identity.accounts.named(username))?.id ?? 0;

describe('the bootstrap', () => {
  it('makes everything that is missing, and a second one changes nothing', async () => {
    expect(await bootstrap()).toEqual(EVERYTHING);
    expect(await bootstrap()).toEqual([]);
    expect((await identity.groups.named('core_ROLE_ADMIN'))?.members.map(({ username }) => username)).toEqual([
      'webadmin',
    ]);
    expect((await identity.accounts.named('svc_probe'))?.kind).toBe('service');
    expect((await identity.accounts.named('webadmin'))?.kind).toBe('person');
  });

  it('brings back what was deleted, deactivated or taken out', async () => {
    await bootstrap();
    await identity.accounts.delete(await idOf('svc_nodered'));
    await identity.accounts.change(await idOf('svc_api'), { isActive: false });
    await identity.groups.delete((await identity.groups.named('Chiefs'))?.id ?? '');
    const admins = await identity.groups.named('core_ROLE_ADMIN');
    await identity.groups.removeMember(admins?.id ?? '', await idOf('webadmin'));
    expect(await bootstrap()).toEqual([
      'created group Chiefs',
      'added webadmin to core_ROLE_ADMIN',
      'reactivated account svc_api',
      'created account svc_nodered',
    ]);
  });

  it('leaves a password that webadmin was given since, until the one of the settings changes', async () => {
    await bootstrap();
    await identity.accounts.setPassword(await idOf('webadmin'), 'chosen by the person');
    expect(await bootstrap()).toEqual([]);
    expect(await bootstrap({ webadminPassword: 'another of the settings' })).toEqual([
      'set the password of webadmin to the one in the settings',
    ]);
  });

  it('gives a webadmin that was deleted the password again, also when a start ended in between', async () => {
    await bootstrap();
    await identity.accounts.delete(await idOf('webadmin'));
    const ends = { ...identity.accounts, setPassword: () => Promise.reject(new Error('killed')) };
    await expect(bootstrapIdentity({ ...deps, identity: { ...identity, accounts: ends } }, WANTED)).rejects.toThrow(
      'killed',
    );
    expect(await bootstrap()).toContain('set the password of webadmin to the one in the settings');
  });

  it('gives the service account its password whenever the directory refuses it', async () => {
    await bootstrap();
    refused = true;
    expect(await bootstrap()).toEqual(['set the password of adm_ldapservice to the one in the settings']);
  });

  it.each(['unavailable', 'upstream'] as const)(
    'does not set it while the directory does not answer, or makes no sense (%s): it is tried again',
    async (code) => {
      await bootstrap();
      const id = await idOf('adm_ldapservice');
      await identity.accounts.setPassword(id, 'as it was');
      deps.directory.signIn = () => Promise.reject(new AppError(code, 'nobody there'));
      await expect(bootstrap()).rejects.toThrow('nobody there');
      expect(identity.accepts('adm_ldapservice', 'as it was')).toBe(true);
    },
  );

  it('finds what another process has made at the same moment', async () => {
    await Promise.all([bootstrapIdentity(deps, WANTED), bootstrapIdentity(deps, WANTED)]);
    expect((await identity.groups.list('stack_viewer')).length).toBe(1);
    expect(await bootstrap()).toEqual([]);
  });

  it('makes everybody although the directory does not answer yet', async () => {
    await bootstrap();
    for (const name of ['svc_api', 'svc_probe']) await identity.accounts.delete(await idOf(name));
    deps.directory.signIn = () => Promise.reject(new AppError('unavailable', 'nobody there'));
    await expect(bootstrap()).rejects.toThrow('nobody there');
    expect(await idOf('svc_api')).toBeGreaterThan(0);
    expect(await idOf('svc_probe')).toBeGreaterThan(0);
  });

  it('says which setting to change when a policy refuses its password, and does the rest', async () => {
    const { accounts } = identity;
    let tries = 0;
    const setPassword = async (id: number, password: string): Promise<void> => {
      tries += 1;
      if (password === WANTED.webadminPassword)
        throw new AppError('invalid', 'The identity provider refused the change');
      await accounts.setPassword(id, password);
    };
    deps.identity = { ...identity, accounts: { ...accounts, setPassword } };
    const outcome = await bootstrapIdentity(deps, WANTED);
    expect(outcome.changes).toEqual(EVERYTHING.filter((each) => !each.startsWith('set the password of webadmin')));
    expect(outcome.refused).toEqual([
      'The password of webadmin was not set. The identity provider refused the change. Remedy: set CORE_WEBADMIN_PASSWORD to a password that its policies accept, and restart.',
    ]);
    expect(tries).toBe(2);
    deps.identity = identity;
    expect(await bootstrap()).toEqual(['set the password of webadmin to the one in the settings']);
  });

  it('turns a webadmin that somebody made a service account into a person again', async () => {
    await bootstrap();
    await identity.accounts.change(await idOf('webadmin'), { kind: 'service', isActive: false });
    expect(await bootstrap()).toEqual(['reactivated account webadmin', 'made webadmin a person account again']);
    expect(await identity.accounts.named('webadmin')).toMatchObject({ kind: 'person', isActive: true });
  });

  it('spells the group of the core as the core does, whatever ADMIN_GROUP is called', async () => {
    await bootstrap({ adminGroup: 'core_role_admin' });
    expect((await identity.groups.list('core_')).map(({ name }) => name)).toEqual([
      'core_ROLE_ADMIN',
      'core_holdfast_no_group_READ',
      'core_holdfast_probe',
    ]);
    expect(await bootstrap({ adminGroup: 'core_ROLE_ADMIN' })).toEqual([]);
  });
});

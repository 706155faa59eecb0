import { beforeEach, describe, expect, it } from 'vitest';
import { AppError } from '../../shared/domain/app-error.ts';
import type { AppliedPasswords } from '../../shared/ports/applied-passwords.ts';
import { bootstrapIdentity, type BootstrapDeps } from '../../shared/verbs/bootstrap-identity.ts';
import { fakeIdentity } from '../fakes/identity.ts';

const WANTED = {
  adminGroup: 'Chiefs',
  viewerGroup: 'stack_viewer',
  webadminPassword: 'a password of the settings',
  ldapServicePassword: 'the password of the service',
};
const EVERYTHING = [
  'group Chiefs was made',
  'group stack_viewer was made',
  'group core_ROLE_ADMIN was made',
  'account webadmin was made',
  'webadmin is a member of core_ROLE_ADMIN',
  'webadmin has the password of the settings',
  'account adm_ldapservice was made',
  'adm_ldapservice has the password of the settings',
  'account svc_api was made',
  'account svc_nodered was made',
  'account svc_probe was made',
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
      probe: async () => {
        if (refused) throw new AppError('upstream', 'The directory refuses adm_ldapservice');
        return 1;
      },
    },
  };
});

const idOf = async (username: string): Promise<number> => (await identity.accounts.named(username))?.id ?? 0;

describe('the bootstrap', () => {
  it('makes everything that is missing, and a second one changes nothing', async () => {
    expect(await bootstrapIdentity(deps, WANTED)).toEqual(EVERYTHING);
    expect(await bootstrapIdentity(deps, WANTED)).toEqual([]);
    expect((await identity.groups.named('core_ROLE_ADMIN'))?.members.map(({ username }) => username)).toEqual([
      'webadmin',
    ]);
    expect((await identity.accounts.named('svc_probe'))?.kind).toBe('service');
    expect((await identity.accounts.named('webadmin'))?.kind).toBe('person');
  });

  it('brings back what was deleted, deactivated or taken out', async () => {
    await bootstrapIdentity(deps, WANTED);
    await identity.accounts.delete(await idOf('svc_nodered'));
    await identity.accounts.change(await idOf('svc_api'), { isActive: false });
    await identity.groups.delete((await identity.groups.named('Chiefs'))?.id ?? '');
    const admins = await identity.groups.named('core_ROLE_ADMIN');
    await identity.groups.removeMember(admins?.id ?? '', await idOf('webadmin'));
    expect(await bootstrapIdentity(deps, WANTED)).toEqual([
      'group Chiefs was made',
      'webadmin is a member of core_ROLE_ADMIN',
      'account svc_api is active again',
      'account svc_nodered was made',
    ]);
  });

  it('leaves a password that webadmin was given since, until the one of the settings changes', async () => {
    await bootstrapIdentity(deps, WANTED);
    await identity.accounts.setPassword(await idOf('webadmin'), 'chosen by the person');
    expect(await bootstrapIdentity(deps, WANTED)).toEqual([]);
    expect(await bootstrapIdentity(deps, { ...WANTED, webadminPassword: 'another of the settings' })).toEqual([
      'webadmin has the password of the settings',
    ]);
  });

  it('gives a webadmin that was deleted the password again, also when a start ended in between', async () => {
    await bootstrapIdentity(deps, WANTED);
    await identity.accounts.delete(await idOf('webadmin'));
    const ends = { ...identity.accounts, setPassword: () => Promise.reject(new Error('killed')) };
    await expect(bootstrapIdentity({ ...deps, identity: { ...identity, accounts: ends } }, WANTED)).rejects.toThrow(
      'killed',
    );
    expect(await bootstrapIdentity(deps, WANTED)).toContain('webadmin has the password of the settings');
  });

  it('gives the service account its password whenever the directory refuses it', async () => {
    await bootstrapIdentity(deps, WANTED);
    refused = true;
    expect(await bootstrapIdentity(deps, WANTED)).toEqual(['adm_ldapservice has the password of the settings']);
  });

  it('does not set it while the directory does not answer: it is tried again', async () => {
    await bootstrapIdentity(deps, WANTED);
    deps.directory.probe = () => Promise.reject(new AppError('unavailable', 'nobody there'));
    await expect(bootstrapIdentity(deps, WANTED)).rejects.toThrow('nobody there');
  });

  it('finds what another process has made at the same moment', async () => {
    await Promise.all([bootstrapIdentity(deps, WANTED), bootstrapIdentity(deps, WANTED)]);
    expect((await identity.groups.list('stack_viewer')).length).toBe(1);
    expect(await bootstrapIdentity(deps, WANTED)).toEqual([]);
  });
});

// What must exist at the identity provider, as desired state: groups, the first administrator, the accounts of our own
// parts. Run at every start; where everything is as it should be, nothing is written.

import { AppError } from '../domain/app-error.ts';
import { LDAP_SERVICE_ACCOUNT } from '../domain/directory-bases.ts';
import { ADMIN_ROLE_GROUP, WEBADMIN } from '../domain/names.ts';
import type { AppliedPasswords } from '../ports/applied-passwords.ts';
import type { Directory } from '../ports/directory.ts';
import type { Account, Group, Identity, NewAccount } from '../ports/identity.ts';

export interface WantedIdentity {
  adminGroup: string;
  viewerGroup: string;
  webadminPassword: string | undefined;
  ldapServicePassword: string | undefined;
}

export interface BootstrapDeps {
  identity: Identity;
  directory: Pick<Directory, 'probe'>;
  appliedPasswords: AppliedPasswords;
}

const OWN_ACCOUNTS: readonly NewAccount[] = [
  { username: LDAP_SERVICE_ACCOUNT, name: 'LDAP service', kind: 'service' },
  { username: 'svc_api', name: 'Management API', kind: 'service' },
  { username: 'svc_nodered', name: 'Flow engine', kind: 'service' },
  { username: 'svc_probe', name: 'End-to-end probe', kind: 'service' },
];

/** Resolves with what was changed, in words; rejects when a part does not answer, and may then be run again. */
export async function bootstrapIdentity(deps: BootstrapDeps, wanted: WantedIdentity): Promise<string[]> {
  const { identity } = deps;
  const changes: string[] = [];
  const changed = (what: string): void => void changes.push(what);
  for (const name of [wanted.adminGroup, wanted.viewerGroup]) await ensureGroup(identity, name, changed);
  const admins = await ensureGroup(identity, ADMIN_ROLE_GROUP, changed);
  const beforeWebadmin = (): Promise<void> => deps.appliedPasswords.forget(WEBADMIN);
  const webadmin = await ensureAccount(
    identity,
    { username: WEBADMIN, name: 'Web administrator' },
    changed,
    beforeWebadmin,
  );
  if (!admins.members.some(({ id }) => id === webadmin.account.id)) {
    await identity.groups.addMember(admins.id, webadmin.account.id);
    changed(`${WEBADMIN} is a member of ${ADMIN_ROLE_GROUP}`);
  }
  await giveWebadminPassword(deps, webadmin, wanted.webadminPassword, changed);
  for (const account of OWN_ACCOUNTS) {
    const ensured = await ensureAccount(identity, account, changed);
    if (account.username === LDAP_SERVICE_ACCOUNT)
      await giveServicePassword(deps, ensured, wanted.ldapServicePassword, changed);
  }
  return changes;
}

type Changed = (what: string) => void;

interface Ensured {
  account: Account;
  isNew: boolean;
}

async function ensureGroup(identity: Identity, name: string, changed: Changed): Promise<Group> {
  const existing = await identity.groups.named(name);
  if (existing !== undefined) return existing;
  const made = await orTheOneOfAnother(
    () => identity.groups.create(name),
    () => identity.groups.named(name),
  );
  changed(`group ${name} was made`);
  return { members: [], ...made };
}

/** `before` runs before an account is made, so that a crash in between is not taken for a finished start. */
async function ensureAccount(
  identity: Identity,
  wanted: NewAccount,
  changed: Changed,
  before: () => Promise<void> = async () => undefined,
): Promise<Ensured> {
  const existing = await identity.accounts.named(wanted.username);
  if (existing === undefined) {
    await before();
    const account = await orTheOneOfAnother(
      () => identity.accounts.create(wanted),
      () => identity.accounts.named(wanted.username),
    );
    changed(`account ${wanted.username} was made`);
    return { account, isNew: true };
  }
  if (existing.isActive) return { account: existing, isNew: false };
  changed(`account ${wanted.username} is active again`);
  return { account: await identity.accounts.change(existing.id, { isActive: true }), isNew: false };
}

/** Two processes may start at the same moment. */
async function orTheOneOfAnother<T>(make: () => Promise<T>, find: () => Promise<T | undefined>): Promise<T> {
  try {
    return await make();
  } catch (error) {
    const other = error instanceof AppError && error.code === 'conflict' ? await find() : undefined;
    if (other === undefined) throw error;
    return other;
  }
}

/** Set when it is new or was changed in the settings: one that the person has changed since stays. */
async function giveWebadminPassword(
  { identity, appliedPasswords }: BootstrapDeps,
  { account, isNew }: Ensured,
  password: string | undefined,
  changed: Changed,
): Promise<void> {
  if (password === undefined) return;
  if (!isNew && (await appliedPasswords.isApplied(WEBADMIN, password))) return;
  await identity.accounts.setPassword(account.id, password);
  await appliedPasswords.remember(WEBADMIN, password);
  changed(`${WEBADMIN} has the password of the settings`);
}

/** Nobody but our own parts uses it, so it always follows the settings. */
async function giveServicePassword(
  { identity, directory }: BootstrapDeps,
  { account, isNew }: Ensured,
  password: string | undefined,
  changed: Changed,
): Promise<void> {
  if (password === undefined) return;
  if (!isNew && !(await isRefused(directory))) return;
  await identity.accounts.setPassword(account.id, password);
  changed(`${LDAP_SERVICE_ACCOUNT} has the password of the settings`);
}

async function isRefused(directory: Pick<Directory, 'probe'>): Promise<boolean> {
  try {
    await directory.probe('core', ADMIN_ROLE_GROUP);
    return false;
  } catch (error) {
    if (error instanceof AppError && error.code === 'upstream') return true;
    throw error;
  }
}

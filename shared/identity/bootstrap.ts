// Ensures the required groups and accounts at the identity provider: the role groups, the first
// administrator, and Holdfast's own accounts. Runs at every start; writes nothing when all is as it
// should be.

import { AppError } from '@holdfast/kit/app-error';
import { type Directory, LDAP_SERVICE_ACCOUNT } from '@holdfast/kit/directory';
import {
  ADMIN_ROLE_GROUP,
  API_ACCOUNT,
  CANARY_ACCOUNT,
  FLOWS_ACCOUNT,
  PROBE_ACCOUNT,
  PROBE_GROUP,
  UNGROUPED_GROUP,
  WEBADMIN,
} from '@holdfast/kit/names';
import type { Account, AppliedPasswords, Group, Identity, NewAccount } from './port.ts';

export interface WantedIdentity {
  adminGroup: string;
  viewerGroup: string;
  webadminPassword: string | undefined;
  ldapServicePassword: string | undefined;
}

export interface BootstrapDeps {
  identity: Identity;
  directory: Pick<Directory, 'signIn'>;
  appliedPasswords: AppliedPasswords;
}

/**
 * Stored under this name: the password of settings that were replaced while in effect. No account
 * can have it.
 */
export const REPLACED_WEBADMIN = `${WEBADMIN} replaced`;

type OwnAccount = NewAccount & { kind: 'person' | 'service' };

const LDAP_ACCOUNT: OwnAccount = { username: LDAP_SERVICE_ACCOUNT, name: 'LDAP service', kind: 'service' };
const OWN_ACCOUNTS: readonly OwnAccount[] = [
  { username: API_ACCOUNT, name: 'Management API', kind: 'service' },
  { username: FLOWS_ACCOUNT, name: 'Flow engine', kind: 'service' },
  { username: PROBE_ACCOUNT, name: 'End-to-end probe', kind: 'service' },
  { username: CANARY_ACCOUNT, name: 'Revocation canary', kind: 'service' },
];

export interface Bootstrapped {
  /** Changes made, as sentences. */
  changes: string[];
  /** Problems that only a change of settings can solve, as sentences. */
  refused: string[];
}

/** Rejects when a service does not answer; it can then be run again. */
export async function bootstrapIdentity(deps: BootstrapDeps, wanted: WantedIdentity): Promise<Bootstrapped> {
  const { identity } = deps;
  const changes: string[] = [];
  const refused: string[] = [];
  const changed = (what: string): void => void changes.push(what);
  // First of all, so that it has this spelling, whatever ADMIN_GROUP is called.
  const admins = await ensureGroup(identity, ADMIN_ROLE_GROUP, changed);
  for (const name of [wanted.adminGroup, wanted.viewerGroup]) await ensureGroup(identity, name, changed);
  const beforeWebadmin = (): Promise<void> => deps.appliedPasswords.forget(WEBADMIN);
  const webadmin = await ensureAccount(
    identity,
    { username: WEBADMIN, name: 'Web administrator', kind: 'person' },
    changed,
    beforeWebadmin,
  );
  if (!admins.members.some(({ id }) => id === webadmin.account.id)) {
    await identity.groups.addMember(admins.id, webadmin.account.id);
    changed(`added ${WEBADMIN} to ${ADMIN_ROLE_GROUP}`);
  }
  await unlessRefused('CORE_WEBADMIN_PASSWORD', WEBADMIN, refused, () =>
    giveWebadminPassword(deps, webadmin, wanted.webadminPassword, changed),
  );
  for (const account of OWN_ACCOUNTS) await ensureAccount(identity, account, changed);
  await ensureProbeChannel(identity, changed);
  await ensureGroup(identity, UNGROUPED_GROUP, changed);
  const service = await ensureAccount(identity, LDAP_ACCOUNT, changed);
  // Last: a directory that does not answer yet delays nothing else.
  await unlessRefused('LDAP_BIND_PASSWORD', LDAP_SERVICE_ACCOUNT, refused, () =>
    giveServicePassword(deps, service, wanted.ldapServicePassword, changed),
  );
  return { changes, refused };
}

/** A password that the provider's policy refuses is refused on every attempt. */
async function unlessRefused(
  variable: string,
  username: string,
  refused: string[],
  give: () => Promise<void>,
): Promise<void> {
  try {
    await give();
  } catch (error) {
    if (!(error instanceof AppError) || error.code !== 'invalid') throw error;
    const remedy = `Remedy: set ${variable} to a password that its policies accept, and restart.`;
    refused.push(`The password of ${username} was not set. ${withStop(error.message)} ${remedy}`);
  }
}

function withStop(sentence: string): string {
  return sentence.endsWith('.') ? sentence : `${sentence}.`;
}

type Changed = (what: string) => void;

interface Ensured {
  account: Account;
  isNew: boolean;
}

/** The group of this name; created if missing, also while another process creates it. */
export async function ensureGroup(
  { groups }: Pick<Identity, 'groups'>,
  name: string,
  changed: Changed = () => undefined,
): Promise<Group> {
  const existing = await groups.named(name);
  if (existing !== undefined) return existing;
  const made = await orTheOneOfAnother(
    () => groups.create(name),
    () => groups.named(name),
  );
  changed(`created group ${name}`);
  return { members: [], ...made };
}

/**
 * `before` runs before an account is created, so that a crash in between is not taken for a
 * finished start.
 */
async function ensureAccount(
  identity: Identity,
  wanted: OwnAccount,
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
    changed(`created account ${wanted.username}`);
    return { account, isNew: true };
  }
  const { id, isActive, kind } = existing;
  if (isActive && kind === wanted.kind) return { account: existing, isNew: false };
  const account = await identity.accounts.change(id, { isActive: true, kind: wanted.kind });
  if (!isActive) changed(`reactivated account ${wanted.username}`);
  if (kind !== wanted.kind) changed(`made ${wanted.username} a ${wanted.kind} account again`);
  return { account, isNew: false };
}

/**
 * Without a channel the probe's event would reach no one, and a release would not end the canary's
 * connection.
 */
async function ensureProbeChannel(identity: Identity, changed: Changed): Promise<void> {
  const { id, members } = await ensureGroup(identity, PROBE_GROUP, changed);
  for (const username of [PROBE_ACCOUNT, CANARY_ACCOUNT]) {
    const account = await identity.accounts.named(username);
    if (account === undefined || members.some((member) => member.id === account.id)) continue;
    await identity.groups.addMember(id, account.id);
    changed(`added ${username} to ${PROBE_GROUP}`);
  }
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

/**
 * Set when it is new or was changed in the settings: a password that the person has changed since
 * stays.
 */
async function giveWebadminPassword(
  { identity, appliedPasswords }: BootstrapDeps,
  { account, isNew }: Ensured,
  password: string | undefined,
  changed: Changed,
): Promise<void> {
  if (password === undefined) return;
  // A process that was started with the old settings is restarted with the new ones; those are not
  // reverted.
  if (!isNew && (await appliedPasswords.isApplied(REPLACED_WEBADMIN, password))) return;
  await appliedPasswords.forget(REPLACED_WEBADMIN);
  if (!isNew && (await appliedPasswords.isApplied(WEBADMIN, password))) return;
  await identity.accounts.setPassword(account.id, password);
  await appliedPasswords.remember(WEBADMIN, password);
  changed(`set the password of ${WEBADMIN} to the one in the settings`);
}

/** Only Holdfast itself uses it, so it always follows the settings. */
async function giveServicePassword(
  { identity, directory }: BootstrapDeps,
  { account, isNew }: Ensured,
  password: string | undefined,
  changed: Changed,
): Promise<void> {
  if (password === undefined) return;
  if (!isNew && (await directory.signIn('core', LDAP_SERVICE_ACCOUNT, password)) !== undefined) return;
  await identity.accounts.setPassword(account.id, password);
  changed(`set the password of ${LDAP_SERVICE_ACCOUNT} to the one in the settings`);
}

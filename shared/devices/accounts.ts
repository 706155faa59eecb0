// Shared by the code about people: its context, the lookup of users, and how they are displayed.

import { AppError } from '@holdfast/kit/app-error';
import { PROVIDER_ADMINS, type ServiceKind } from '@holdfast/kit/names';
import type { Actor } from '../audit/port.ts';
import type { Core } from '../core/port.ts';
import type { Account, Exclusive, GroupName, Identity } from '../identity/port.ts';
import { appExpiresOf, isChannel, isHiddenName, isoOfSeconds } from '../identity/rules.ts';
import type { Authenticator } from '../sign-in/port.ts';
import { type Principal, type Role, type RoleGroups, roleOf } from '../sign-in/rules.ts';
import type { EnrollmentTokens, RevocationDeps } from './port.ts';

/** Whoever is put out loses all certificates. */
export interface PeopleDeps extends RevocationDeps {
  identity: Identity;
  authenticator: Pick<Authenticator, 'forget'>;
  peopleLock: Exclusive;
  deviceLock: Exclusive;
  core: RevocationDeps['core'] & Pick<Core, 'regroup'>;
  enrollmentTokens: Pick<EnrollmentTokens, 'remove'>;
  settings: { ADMIN_GROUP: string; VIEWER_GROUP: string; USERS_HIDDEN_PREFIXES: readonly string[] };
}

export interface PeopleContext {
  deps: PeopleDeps;
  actor: Actor;
  /** Whoever signed in; absent when Holdfast acts by itself. */
  principal?: Principal;
  /**
   * To be asked when a turn has come that had to be waited for: rejects when whoever signed in may
   * not do this any more. Else somebody who is being put out could take it back with a request that
   * was on its way.
   */
  mustStillBeIn?: () => Promise<void>;
}

/** A person as everybody sees it. */
export interface UserView {
  id: number;
  username: string;
  name: string;
  email: string;
  is_active: boolean;
  role: Role;
  /** Names of channels, with their prefix. */
  groups: string[];
  /** ISO 8601; null: never. */
  expires_at: string | null;
  /** The same in seconds of Unix time. */
  app_expires: number | null;
  /** ISO 8601; null when the provider does not say. */
  created_at: string | null;
  last_login: string | null;
}

export function roleGroupsOf({ settings }: Pick<PeopleDeps, 'settings'>): RoleGroups {
  return { admin: settings.ADMIN_GROUP, viewer: settings.VIEWER_GROUP };
}

export function roleOfAccount(account: Account, deps: Pick<PeopleDeps, 'settings'>): Role {
  const names = account.groups.map(({ name }) => name);
  return roleOf(names, roleGroupsOf(deps));
}

export function channelsOf(account: Account, deps: Pick<PeopleDeps, 'settings'>): GroupName[] {
  const roles = roleGroupsOf(deps);
  return account.groups.filter(({ name }) => isChannel(name, roles));
}

export function toUserView(account: Account, deps: Pick<PeopleDeps, 'settings'>): UserView {
  const { id, username, name, email, isActive, attributes, createdAt, lastLogin } = account;
  const expires = appExpiresOf(attributes);
  return {
    id,
    username,
    name,
    email,
    is_active: isActive,
    role: roleOfAccount(account, deps),
    groups: channelsOf(account, deps)
      .map((group) => group.name)
      .toSorted(),
    expires_at: expires === null ? null : isoOfSeconds(expires),
    app_expires: expires,
    created_at: createdAt,
    last_login: lastLogin,
  };
}

/** Programs, accounts of the provider, and whoever has a hidden prefix. */
export function isHidden({ kind, username }: Account, { settings }: Pick<PeopleDeps, 'settings'>): boolean {
  return kind !== 'person' || isHiddenName(username, settings.USERS_HIDDEN_PREFIXES);
}

/**
 * The person of that id; `not_found` for nobody and, unless they are asked for, for hidden
 * accounts.
 */
export async function userOf(
  deps: Pick<PeopleDeps, 'identity' | 'settings'>,
  id: number,
  { withHidden = false }: { withHidden?: boolean } = {},
): Promise<Account> {
  const account = await deps.identity.accounts.get(id);
  if (account === undefined || (!withHidden && isHidden(account, deps)))
    throw new AppError('not_found', 'There is no user with this id. GET /api/users lists them.');
  return account;
}

/** Such a person could make anybody an administrator there. */
function administersProvider({ groups }: Account): boolean {
  return groups.some(({ name }) => name.toLowerCase() === PROVIDER_ADMINS.toLowerCase());
}

/**
 * A token of the scope `users` is for the people below an administrator, and gives nobody a role.
 */
export function mustBeAllowed(
  { deps, principal }: PeopleContext,
  account: Account | undefined,
  { setsRole = false }: { setsRole?: boolean } = {},
): void {
  if (principal?.by.kind !== 'token' || principal.by.scope !== 'users') return;
  if (setsRole)
    throw new AppError(
      'forbidden',
      'This token has the scope users: it cannot set roles. Use a token of the scope admin.',
    );
  if (account !== undefined && (roleOfAccount(account, deps) === 'admin' || administersProvider(account)))
    throw new AppError(
      'forbidden',
      `This token has the scope users: it cannot change the administrator ${account.username}. Use a token of the scope admin.`,
    );
}

/**
 * Throws `forbidden`: the right of the admin API is more than a token of the scope `users` may give
 * or take.
 */
export function mustBeAllowedKind({ principal }: Pick<PeopleContext, 'principal'>, kind: ServiceKind): void {
  if (kind !== 'admin' || principal?.by.kind !== 'token' || principal.by.scope !== 'users') return;
  throw new AppError(
    'forbidden',
    'This token has the scope users: it cannot create or delete service accounts of the kind admin, nor revoke their certificates. Use a token of the scope admin.',
  );
}

// Determines the person behind an accepted credential, and their permissions.

import type { DirectoryEntry } from '@holdfast/kit/directory';
import { ADMIN_ROLE_GROUP, WEBADMIN } from '@holdfast/kit/names';

/** `viewer` reads, `admin` may do everything, `none` sees only their own data. */
export const ROLES = ['none', 'viewer', 'admin'] as const;
export type Role = (typeof ROLES)[number];

/**
 * Permissions of an API token: reading, people and their devices, or everything that its owner may
 * do.
 */
export const SCOPES = ['read', 'users', 'admin'] as const;
export type Scope = (typeof SCOPES)[number];

/**
 * The role that a route requires: `open` none, `own` any signed-in person, else at least that role.
 */
export type Access = 'open' | 'own' | 'viewer' | 'admin';

/**
 * The part of the API that a route belongs to. `monitoring` (health, metrics, alerts) is open to
 * METRICS_TOKEN and to the emergency sign-in, `people` (users, groups, enrollment, certificates) to
 * tokens of the scope `users`.
 */
export type Area = 'monitoring' | 'people' | 'rest';

export type SignedInBy =
  | { kind: 'password' }
  | { kind: 'session'; id: string }
  | { kind: 'token'; id: string; scope: Scope }
  | { kind: 'metrics' }
  | { kind: 'break-glass' };

export interface Principal {
  username: string;
  /** The role of the person, whatever the scope of a token. */
  role: Role;
  /** Names of the person's groups, as the directory spells them. */
  groups: string[];
  by: SignedInBy;
}

/** The names of the two groups that grant a role. */
export interface RoleGroups {
  admin: string;
  viewer: string;
}

/** The role that membership of these groups grants. */
export function roleOf(groups: readonly string[], names: RoleGroups): Role {
  const held = new Set(groups.map((name) => name.toLowerCase()));
  if (held.has(ADMIN_ROLE_GROUP.toLowerCase()) || held.has(names.admin.toLowerCase())) return 'admin';
  return held.has(names.viewer.toLowerCase()) ? 'viewer' : 'none';
}

/** The effective role of this sign-in: a token has at most the role of its scope. */
export function roleInForce({ role, by }: Principal): Role {
  if (by.kind === 'metrics' || by.kind === 'break-glass') return 'viewer';
  if (by.kind !== 'token' || by.scope === 'admin') return role;
  if (by.scope === 'users') return 'none';
  return role === 'none' ? 'none' : 'viewer';
}

/** The access that a route requires of every caller. */
export interface RouteDemand {
  access: Access;
  area: Area;
}

export interface Demand extends RouteDemand {
  /** True for methods that change nothing. */
  safe: boolean;
}

/** Why the request is not allowed, as a sentence; undefined when it is. */
export function whyNot(principal: Principal, { access, area, safe }: Demand): string | undefined {
  const { by, role } = principal;
  if (access === 'open') return undefined;
  if (by.kind === 'metrics' && (area !== 'monitoring' || !safe))
    return 'METRICS_TOKEN can read only health, metrics and alerts. Sign in, or use an API token.';
  if (by.kind === 'break-glass' && (area !== 'monitoring' || !safe))
    return 'The directory does not answer. Until it does, webadmin can read only health, metrics and alerts.';
  if (by.kind === 'token' && by.scope === 'users' && area !== 'people')
    return 'This token has the scope users: it can use only users, groups, enrollment and certificates.';
  if (by.kind === 'token' && by.scope === 'read' && (!safe || access === 'admin'))
    return 'This token has the scope read: it can only read what a viewer can read.';
  if (access === 'admin' && role !== 'admin') return 'This requires the role admin.';
  if (access === 'viewer' && role === 'none') return 'This requires the role viewer or admin.';
  return undefined;
}

/** The directory's entry of a person, with the permissions that it grants. */
export function principalOf({ username, groups }: DirectoryEntry, roles: RoleGroups, by: SignedInBy): Principal {
  return { username, role: roleOf(groups, roles), groups, by };
}

/** The holder of METRICS_TOKEN. */
export const METRICS: Principal = { username: 'metrics', role: 'viewer', groups: [], by: { kind: 'metrics' } };
/** The holder of the password of the settings while the directory does not answer. */
export const BREAK_GLASS: Principal = { username: WEBADMIN, role: 'viewer', groups: [], by: { kind: 'break-glass' } };

/** An app password gives no access to Holdfast itself. */
export function withoutRights({ username }: DirectoryEntry): Principal {
  return { username, role: 'none', groups: [], by: { kind: 'password' } };
}

/**
 * No directory has a longer name; a longer one, or one with control characters, is wrong without a
 * query.
 */
const MAX_USERNAME_LENGTH = 255;
const MAX_AUDITED_LENGTH = 100;
const USUAL = /^[\w.-]{1,64}$/;
const CONTROL = /\p{Cc}/u;
const EVERY_CONTROL = /\p{Cc}/gu;

export function mayExist(username: string): boolean {
  return username.length <= MAX_USERNAME_LENGTH && !CONTROL.test(username);
}

/** Text from a name field, shortened for the log. */
export function auditedName(username: string): string {
  if (USUAL.test(username)) return username;
  return username.slice(0, MAX_AUDITED_LENGTH).replaceAll(EVERY_CONTROL, '\uFFFD').toWellFormed();
}

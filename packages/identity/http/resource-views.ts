// Formats users, groups and tokens for the API, without keys and hashes.

import type { IdentityKeys } from '../model/keys.ts';
import type { GroupOfAccount, StoredAccount } from '../store/account-rows.ts';
import type { MemberOfGroup, StoredGroup } from '../store/groups.ts';
import type { StoredToken } from '../store/tokens.ts';

const AVATAR = "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 1 1'/%3E";

function toGroupOfUserView({ uuid, num_pk, name, is_superuser, attributes }: GroupOfAccount) {
  return { pk: uuid, num_pk, name, is_superuser, attributes };
}

/** `groups_obj` is null when groups are not wanted. */
export function toUserView(account: StoredAccount, keys: IdentityKeys, withGroups = true) {
  return {
    pk: account.pk,
    username: account.username,
    name: account.name,
    is_active: account.is_active,
    last_login: account.last_login,
    date_joined: account.date_joined,
    is_superuser: account.is_superuser,
    groups: account.groups.map(({ uuid }) => uuid),
    groups_obj: withGroups ? account.groups.map(toGroupOfUserView) : null,
    roles: [],
    roles_obj: [],
    email: account.email,
    avatar: AVATAR,
    attributes: account.attributes,
    uid: keys.uid(account.pk),
    path: account.path,
    type: account.type,
    uuid: account.uuid,
    password_change_date: account.password_changed_at ?? account.date_joined,
    last_updated: account.last_updated,
  };
}

/** The caller's own view of itself. */
export function toSelfView(account: StoredAccount, keys: IdentityKeys) {
  const { pk, username, name, is_active, is_superuser, email, type } = account;
  return {
    pk,
    username,
    name,
    is_active,
    is_superuser,
    is_current: true,
    groups: account.groups.map((group) => ({ name: group.name, pk: group.uuid })),
    roles: [],
    email,
    avatar: AVATAR,
    uid: keys.uid(pk),
    settings: {},
    type,
    system_permissions: [],
  };
}

export function toGroupView(group: StoredGroup, keys: IdentityKeys) {
  return {
    pk: group.uuid,
    num_pk: group.num_pk,
    name: group.name,
    is_superuser: group.is_superuser,
    parents: [],
    parents_obj: null,
    users: group.members?.map(({ pk }) => pk) ?? [],
    users_obj: group.members?.map((member) => toMemberView(member, keys)) ?? null,
    attributes: group.attributes,
    roles: [],
    roles_obj: [],
    inherited_roles_obj: [],
    children: [],
    children_obj: null,
  };
}

function toMemberView(member: MemberOfGroup, keys: IdentityKeys) {
  const login = member.last_login;
  return { ...member, last_login: login === null ? null : new Date(login), uid: keys.uid(member.pk) };
}

export function toTokenView(token: StoredToken, keys: IdentityKeys) {
  return {
    pk: token.uuid,
    managed: token.managed,
    identifier: token.identifier,
    intent: token.intent,
    user: token.accountPk,
    user_obj: toUserView(token.account, keys),
    description: token.description,
    expires: token.expires,
    expiring: token.expiring,
  };
}

// Builds the entries of the tree: attributes of users, groups and containers.

import type { Attributes, Json } from '@holdfast/kit/json';
import type { Person, TreeGroup } from '../model/roster.ts';
import { type Attribute, entry, type Entry, SUBSCHEMA_NAME, text } from './entry.ts';
import { CLASSES } from './schema.ts';
import { type Container, containerName, leafKey, leafName, type Tree } from './tree.ts';

const PRIVATE_PREFIX = 'holdfast.private/';
const PRIVATE_LIST = 'private_attributes';

/**
 * What the core server grants rights by, or finds people by: nobody's free data may take the place
 * of it.
 */
const PROTECTED: ReadonlySet<string> = new Set([
  'cn',
  'samaccountname',
  'uid',
  'mail',
  'memberof',
  'member',
  'objectclass',
  'ak-active',
  'ak-superuser',
  'dn',
  'distinguishedname',
  'entrydn',
  'subschemasubentry',
  'hassubordinates',
]);

/**
 * A descriptor of LDAP, and the underscore, which the provider that is imitated lets through
 * (`app_expires`).
 */
const DESCRIPTOR = /^[A-Za-z][A-Za-z0-9_-]{0,127}$/;

/**
 * Free attributes of accounts and groups as the directory shows them: `/` in a key becomes `-`, `.`
 * is dropped, lists have several values. A key that begins with `holdfast.private/`, or that the
 * list `private_attributes` names, is not shown. In values of a user `%s` stands for the username.
 * Two keys of one name: the first counts.
 */
export function customAttributes(attributes: Attributes, username?: string): Attribute[] {
  const hidden = hiddenNames(attributes[PRIVATE_LIST]);
  if (hidden === undefined) return [];
  const found = new Map<string, Attribute>();
  for (const [key, value] of Object.entries(attributes)) {
    const name = ldapName(key);
    const lower = name.toLowerCase();
    if (key.toLowerCase().startsWith(PRIVATE_PREFIX) || hidden.has(lower)) continue;
    if (!DESCRIPTOR.test(name) || PROTECTED.has(lower) || found.has(lower)) continue;
    const values = (Array.isArray(value) ? value : [value]).flatMap((each) => valueText(each, username));
    if (values.length > 0) found.set(lower, { name, values: [...new Set(values)] });
  }
  return [...found.values()];
}

function ldapName(key: string): string {
  return key.replaceAll('/', '-').replaceAll('.', '');
}

/** Undefined when the list is none: then nothing is shown rather than too much. */
function hiddenNames(list: Json | undefined): ReadonlySet<string> | undefined {
  const keys = list === undefined || list === null ? [] : Array.isArray(list) ? list : [list];
  if (!keys.every((key) => typeof key === 'string')) return undefined;
  return new Set([PRIVATE_LIST, ...keys].map((key) => ldapName(key).toLowerCase()));
}

function valueText(value: Json, username: string | undefined): string[] {
  if (value === null || value === '') return [];
  if (typeof value === 'boolean') return [value ? 'TRUE' : 'FALSE'];
  if (typeof value !== 'string') return [typeof value === 'number' ? String(value) : JSON.stringify(value)];
  return [username === undefined ? value : value.replaceAll('%s', () => username)];
}

/** First numbers of accounts and groups, as the provider that is imitated has them. */
const FIRST_ACCOUNT = 2000;
const FIRST_GROUP = 4000;

function names(name: string, tree: Tree, container: Container, labels: readonly string[]): Attribute {
  return {
    name,
    values: labels.map((label) => leafName(tree, container, label)),
    keys: () => labels.map((label) => leafKey(container, label)),
  };
}

function truth(name: string, value: boolean): Attribute {
  return text(name, value ? 'TRUE' : 'FALSE');
}

/** Generalized time, as LDAP writes it. */
export function generalizedTime(date: Date): string {
  return `${date.toISOString().slice(0, 19).replaceAll(/[-T:]/g, '')}Z`;
}

function ownName(tree: Tree, container: Container, label: string): Attribute[] {
  return [
    names('distinguishedName', tree, container, [label]),
    names('entryDN', tree, container, [label]),
    text('subschemaSubentry', SUBSCHEMA_NAME),
    truth('hasSubordinates', false),
  ];
}

export function userEntry(tree: Tree, person: Person): Entry {
  const { username } = person;
  const number = String(FIRST_ACCOUNT + person.pk);
  return entry(leafName(tree, 'users', username), [
    text('name', person.name),
    text('displayName', person.name),
    text('sn', person.name),
    text('uidNumber', number),
    text('gidNumber', number),
    text('homeDirectory', `/home/${username}`),
    text('pwdChangedTime', person.passwordChangedAt === undefined ? '' : generalizedTime(person.passwordChangedAt)),
    text('createTimestamp', generalizedTime(person.createdAt)),
    text('modifyTimestamp', generalizedTime(person.changedAt)),
    ...customAttributes(person.attributes, username),
    text('objectClass', ...CLASSES.user),
    text('cn', username),
    text('sAMAccountName', username),
    text('uid', person.uid),
    text('mail', person.email),
    truth('ak-active', person.isActive),
    truth('ak-superuser', person.isSuperuser),
    names(
      'memberOf',
      tree,
      'groups',
      person.groups.map(({ name }) => name),
    ),
    ...ownName(tree, 'users', username),
  ]);
}

/** `members` are those that the reader may see. */
export function groupEntry(tree: Tree, group: TreeGroup, members: readonly string[]): Entry {
  return entry(leafName(tree, 'groups', group.name), [
    text('gidNumber', String(FIRST_GROUP + group.numPk)),
    text('createTimestamp', generalizedTime(group.createdAt)),
    text('modifyTimestamp', generalizedTime(group.changedAt)),
    ...customAttributes(group.attributes),
    text('objectClass', ...CLASSES.group),
    text('cn', group.name),
    text('sAMAccountName', group.name),
    text('uid', group.uuid),
    truth('ak-superuser', group.isSuperuser),
    names('member', tree, 'users', members),
    ...ownName(tree, 'groups', group.name),
  ]);
}

export function virtualGroupEntry(tree: Tree, person: Person): Entry {
  const { username } = person;
  return entry(leafName(tree, 'virtual-groups', username), [
    text('objectClass', ...CLASSES.virtualGroup),
    text('cn', username),
    text('sAMAccountName', username),
    text('uid', person.uid),
    text('gidNumber', String(FIRST_ACCOUNT + person.pk)),
    truth('ak-superuser', person.isSuperuser),
    names('member', tree, 'users', [username]),
    ...ownName(tree, 'virtual-groups', username),
  ]);
}

export function containerEntry(tree: Tree, container: Container): Entry {
  return unit(containerName(tree, container), `ou/${container}`, [
    text('objectClass', 'top', 'organizationalUnit'),
    text('ou', container),
  ]);
}

const BASE_CLASSES = new Map([
  ['dc', 'domain'],
  ['o', 'organization'],
  ['ou', 'organizationalUnit'],
]);

export function baseEntry(tree: Tree): Entry {
  const pairs = tree.parts[0] ?? [];
  const classes = pairs.flatMap(({ type }) => BASE_CLASSES.get(type.toLowerCase()) ?? []);
  return unit(tree.base, 'base', [
    text('objectClass', 'top', ...classes),
    ...pairs.map(({ type, value }) => text(type.toLowerCase(), value)),
  ]);
}

function unit(dn: string, key: string, attributes: readonly Attribute[]): Entry {
  const own = { values: [dn], keys: () => [key] };
  return entry(dn, [
    ...attributes,
    { name: 'distinguishedName', ...own },
    { name: 'entryDN', ...own },
    text('subschemaSubentry', SUBSCHEMA_NAME),
    truth('hasSubordinates', true),
  ]);
}

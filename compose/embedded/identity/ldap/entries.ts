// Entries of the tree: which attributes a user, a group and a container show.

import type { Person, TreeGroup } from '../roster.ts';
import { customAttributes } from './custom-attributes.ts';
import { entry, SUBSCHEMA_NAME, text, type Attribute, type Entry } from './entry.ts';
import { CLASSES } from './schema.ts';
import { containerName, leafKey, leafName, type Container, type Tree } from './tree.ts';

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

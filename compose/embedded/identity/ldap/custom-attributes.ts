// Free attributes of accounts and groups as the directory shows them: `/` in a key becomes `-`, `.` is dropped, lists have
// several values. A key that begins with `holdfast.private/`, or that the list `private_attributes` names, is not shown.

import type { Attributes, Json } from '../../../../shared/ports/identity.ts';
import type { Attribute } from './entry.ts';

const PRIVATE_PREFIX = 'holdfast.private/';
const PRIVATE_LIST = 'private_attributes';

/** What the core server grants rights by, or finds people by: nobody's free data may take the place of it. */
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

/** A descriptor of LDAP, and the underscore, which the provider that is imitated lets through (`app_expires`). */
const DESCRIPTOR = /^[A-Za-z][A-Za-z0-9_-]{0,127}$/;

/** In values of a user `%s` stands for the username. Two keys of one name: the first counts. */
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

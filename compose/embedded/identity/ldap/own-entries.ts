// What the server says about itself: the root DSE and the subschema.

import { entry, SUBSCHEMA_NAME, text, type Entry } from './entry.ts';
import { PAGED_RESULTS } from './paging.ts';
import { ATTRIBUTE_TYPES, OBJECT_CLASSES } from './schema.ts';
import { containerName, type Tree } from './tree.ts';

export const MANAGE_DSA_IT = '2.16.840.1.113730.3.4.2';
export const WHO_AM_I = '1.3.6.1.4.1.4203.1.11.3';

export function rootDse(trees: readonly Tree[]): Entry {
  const contexts = trees.flatMap((tree) => [tree.base, containerName(tree, 'users'), containerName(tree, 'groups')]);
  return {
    ...entry('', [
      text('objectClass', 'top'),
      text('supportedLDAPVersion', '3'),
      text('namingContexts', ...contexts),
      text('subschemaSubentry', SUBSCHEMA_NAME),
      text('supportedControl', PAGED_RESULTS, MANAGE_DSA_IT),
      text('supportedExtension', WHO_AM_I),
      text('vendorName', 'Holdfast'),
      text('vendorVersion', 'embedded'),
    ]),
    operational: true,
  };
}

export function subschema(): Entry {
  return {
    ...entry(SUBSCHEMA_NAME, [
      text('objectClass', 'top', 'subschema'),
      text('cn', 'subschema'),
      text('attributeTypes', ...ATTRIBUTE_TYPES),
      text('objectClasses', ...OBJECT_CLASSES),
    ]),
    operational: true,
  };
}

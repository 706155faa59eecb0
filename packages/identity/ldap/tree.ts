// Resolves names below a base, and builds the names of users and groups.

import {
  escapeNameValue,
  formatDistinguishedName,
  parseDistinguishedName,
  partsAbove,
  type RelativeName,
} from '@holdfast/kit/distinguished-name';
import { nameKey as accountKey } from '../model/names.ts';
import { LABEL_CHARACTERS, NAME_CHARACTERS } from './limits.ts';
import { attributeKey } from './schema.ts';

export type Container = 'users' | 'groups' | 'virtual-groups';

export type Place =
  | { at: 'base' }
  | { at: 'container'; container: Container }
  | { at: 'leaf'; container: Container; label: string };

export interface Tree {
  /** On the core base app passwords count, on the web base they do not. */
  door: 'core' | 'web';
  base: string;
  parts: RelativeName[];
}

const CONTAINERS: readonly Container[] = ['users', 'groups', 'virtual-groups'];

export function createTree(door: Tree['door'], base: string): Tree {
  const parts = parseDistinguishedName(base);
  if (parts === undefined || parts.length === 0) throw new TypeError(`not a base of a directory: ${base}`);
  return { door, base, parts };
}

/** The parts of a name that came from outside; undefined when it is none. */
export function readName(text: string | undefined): RelativeName[] | undefined {
  if (text === undefined || text.length > NAME_CHARACTERS) return undefined;
  return parseDistinguishedName(text);
}

/** The tree that a name belongs to; of nested bases the inner one. */
export function treeOf(trees: readonly Tree[], name: readonly RelativeName[]): Tree | undefined {
  return trees
    .filter((tree) => partsAbove(name, tree.parts) !== undefined)
    .toSorted((a, b) => b.parts.length - a.parts.length)[0];
}

/** What a name stands for; undefined when nothing of the tree can have it. */
export function placeOf(tree: Tree, name: readonly RelativeName[]): Place | undefined {
  const above = partsAbove(name, tree.parts);
  if (above === undefined || above.length > 2) return undefined;
  const outer = above.at(-1);
  if (outer === undefined) return { at: 'base' };
  const unit = onlyValue(outer, 'ou')?.toLowerCase();
  const container = CONTAINERS.find((each) => each === unit);
  if (container === undefined) return undefined;
  if (above.length === 1) return { at: 'container', container };
  const label = onlyValue(above[0] ?? [], 'cn');
  return label === undefined || label.length > LABEL_CHARACTERS ? undefined : { at: 'leaf', container, label };
}

function onlyValue(part: RelativeName, type: string): string | undefined {
  const [pair] = part;
  return pair !== undefined && part.length === 1 && attributeKey(pair.type) === type ? pair.value : undefined;
}

export function containerName(tree: Tree, container: Container): string {
  return `ou=${container},${tree.base}`;
}

export function leafName(tree: Tree, container: Container, label: string): string {
  return `cn=${escapeNameValue(label)},${containerName(tree, container)}`;
}

/** Two names of leaves are the same exactly when their keys are. */
export function leafKey(container: Container, label: string): string {
  return `${container}/${accountKey(label)}`;
}

/**
 * Key of the name that a client compares with; undefined when it is no name. One that is not of
 * this tree equals none in it.
 */
export function nameKey(tree: Tree, text: string): string | undefined {
  const parts = readName(text);
  if (parts === undefined) return undefined;
  const place = placeOf(tree, parts);
  if (place === undefined) return `outside/${formatDistinguishedName(parts)}`;
  if (place.at === 'leaf') return leafKey(place.container, place.label);
  return place.at === 'base' ? 'base' : `ou/${place.container}`;
}

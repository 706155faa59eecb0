// Blueprints of authentik, read as far as ours go: entries with the tags !KeyOf, !Find and !Env.

import { readFileSync } from 'node:fs';
import { type CollectionTag, isScalar, parse, type ScalarTag, YAMLSeq } from 'yaml';

/** What stands in place of a value. */
export class Tagged {
  readonly tag: string;
  readonly args: unknown[];

  constructor(tag: string, args: unknown[]) {
    this.tag = tag;
    this.args = args;
  }
}

export interface BlueprintEntry {
  model: string;
  id?: string;
  state?: string;
  identifiers?: Record<string, unknown>;
  attrs?: Record<string, unknown>;
  permissions?: { permission: string; role?: unknown; user?: unknown }[];
}

export interface Blueprint {
  version: number;
  metadata: { name: string };
  entries: BlueprintEntry[];
}

const alone = (tag: string): ScalarTag => ({
  tag: `!${tag}`,
  resolve: (text) => new Tagged(tag, [text]),
});
const inRow = (tag: string): CollectionTag => ({
  tag: `!${tag}`,
  collection: 'seq',
  resolve: (row) => new Tagged(tag, row instanceof YAMLSeq ? row.items.map(plain) : []),
});

/** Any other tag is an error. */
export function readBlueprint(path: string): Blueprint {
  const customTags = [alone('KeyOf'), alone('Env'), inRow('Env'), inRow('Find')];
  return parse(readFileSync(path, 'utf8'), { customTags, strict: true, logLevel: 'error' }) as Blueprint;
}

/** Every value in a value, itself included. */
export function* valuesIn(value: unknown): Generator {
  yield value;
  if (value instanceof Tagged || typeof value !== 'object' || value === null) return;
  for (const inner of Object.values(value)) yield* valuesIn(inner);
}

function plain(node: unknown): unknown {
  if (isScalar(node)) return node.value;
  return node instanceof YAMLSeq ? node.items.map(plain) : node;
}

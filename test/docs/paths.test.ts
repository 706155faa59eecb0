// Every path that the documents name exists, every library that they describe is one of ours, and the README stays short.

import { existsSync, globSync, readFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { describe, expect, it } from 'vitest';

const root = resolve(import.meta.dirname, '../..');
const DOCUMENTS = [
  'README.md',
  'CONTRIBUTING.md',
  ...globSync('{docs,bench}/*.md', { cwd: root }),
  ...globSync('{packages,compose}/**/README.md', { cwd: root, exclude: (path) => path.includes('node_modules') }),
];
/** What a path in the text begins with when it is one of the repository. */
const TOP = 'releasing|functions|jobs|shared|packages|compose|scripts|test|bench|docs|monitor|\\.ci|\\.github';
/** Made by the reader, or by a command of ours. */
const MADE_LATER = ['compose/compose.local.yaml', 'compose/caddy/local', 'compose/flows/node_modules'];

const textOf = (path: string): string => readFileSync(join(root, path), 'utf8');

/** Targets of links, from the root. */
function linksIn(document: string): string[] {
  const found = textOf(document).matchAll(/(?:\]\(|(?:src|srcset|href)=")([^)"\s#]+)/g);
  return [...found]
    .map(([, target = '']) => target)
    .filter((target) => !/^[a-z]+:/.test(target))
    .map((target) => join(dirname(document), target));
}

/** Paths between backticks, and in blocks of code; braces stand for each of their words. */
function pathsIn(document: string): string[] {
  const found = textOf(document).matchAll(new RegExp(`(?<![\\w/.:-])(?:\\./)?((?:${TOP})/[\\w./*{},-]*)`, 'g'));
  return [...found].flatMap(([, path = '']) => eachOf(path.replace(/[.,]+$/, '')));
}

function eachOf(path: string): string[] {
  const braces = /\{([^}]*)\}/.exec(path);
  if (braces === null) return [path];
  return (braces[1] ?? '').split(',').flatMap((word) => eachOf(path.replace(braces[0], word)));
}

const isThere = (path: string): boolean =>
  path.includes('*') ? globSync(path, { cwd: root }).length > 0 : existsSync(join(root, path));

describe('the documents', () => {
  it.each(DOCUMENTS)('name only paths that exist: %s', (document) => {
    const named = [...linksIn(document), ...pathsIn(document)].filter(
      (path) => !MADE_LATER.some((made) => path.startsWith(made)),
    );
    expect([...new Set(named)].filter((path) => !isThere(path))).toEqual([]);
  });

  it('name many, so this finds them', () => {
    expect(DOCUMENTS.length).toBeGreaterThan(20);
    expect(linksIn('README.md').length).toBeGreaterThan(25);
    expect(pathsIn('CONTRIBUTING.md').length).toBeGreaterThan(30);
  });

  it('describe every library that we depend on, and no other', () => {
    const manifests = ['package.json', ...globSync('packages/*/package.json', { cwd: root })];
    const used = manifests.flatMap((path) => {
      const manifest = JSON.parse(textOf(path)) as Record<string, Record<string, string>>;
      return ['dependencies', 'devDependencies', 'optionalDependencies'].flatMap((kind) =>
        Object.keys(manifest[kind] ?? {}),
      );
    });
    const described = [...textOf('docs/libraries.md').matchAll(/\*\*([^*\n]+?(?:\\\*)?)\*\*/g)].map(
      ([, name = '']) => name,
    );
    const plain = (name: string): string => name.replace(/-(x64|arm64)$/, '-*').replace('\\*', '*');
    const ours = new Set(used.filter((name) => !/^@(holdfast|types)\//.test(name)).map(plain));
    expect(new Set(described.map(plain))).toEqual(new Set([...ours].filter((name) => name !== 'oxlint-tsgolint')));
  });

  it('begin with a README of at most 150 lines', () => {
    expect(textOf('README.md').trimEnd().split('\n').length).toBeLessThanOrEqual(150);
  });
});

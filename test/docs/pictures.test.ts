// The pictures of docs/img: none is missing where the documents show one, and none lies there that nobody sees.

import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { describe, expect, it } from 'vitest';

const root = resolve(import.meta.dirname, '../..');
const DOCUMENTS = ['README.md', 'docs/console.md', 'docs/architecture.md'];

function shownIn(document: string): string[] {
  const text = readFileSync(join(root, document), 'utf8');
  return [...text.matchAll(/(?:\]\(|src=")([^)"\s]+\.(?:png|svg))/g)].map(([, path = '']) =>
    relative(root, resolve(root, dirname(document), path)),
  );
}

describe('the pictures of the pages', () => {
  const there = readdirSync(join(root, 'docs/img')).map((name) => `docs/img/${name}`);
  const shown = new Set(DOCUMENTS.flatMap(shownIn));

  it('are there, all that the documents show', () => {
    expect([...shown].filter((path) => !there.includes(path))).toEqual([]);
    expect(shownIn('README.md').length).toBeGreaterThan(3);
  });

  it('are shown, all that are there', () => {
    expect(there.filter((path) => !shown.has(path))).toEqual([]);
  });
});

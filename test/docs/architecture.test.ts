// docs/architecture.md is true: the files that it walks through exist, and the orders are those that the architecture test holds.

import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { FEATURES, PACKAGES, ROOT } from '../house.ts';

const page = readFileSync(join(ROOT, 'docs/architecture.md'), 'utf8');

/** The text below a heading. */
function sectionOf(heading: string): string {
  return page.split(/^## /m).find((each) => each.startsWith(`${heading}\n`)) ?? '';
}

/** The files of the rows of its table, in order. */
function walkOf(heading: string): string[] {
  return sectionOf(heading)
    .split('\n')
    .flatMap((line) => /^\| \d* ?\| `([^`]+)` \|/.exec(line)?.[1] ?? []);
}

/** What is named in backticks below the prefix, in order, in the paragraph after these words. */
function orderOf(words: string, prefix: string): string[] {
  const paragraph = page.slice(page.indexOf(words)).split('\n\n')[1] ?? '';
  return [...paragraph.matchAll(/`([^`]+)`/g)].map(([, path = '']) => path.replace(prefix, ''));
}

describe('the page of the architecture', () => {
  it.each([
    ['A user is deactivated', 20],
    ['A CoT event arrives', 15],
  ])('walks through files that exist, one line each: %s', (heading, least) => {
    const walk = walkOf(heading);
    expect(walk.length).toBeGreaterThanOrEqual(least);
    expect(walk.filter((file) => !/\.tsx?$/.test(file) || !existsSync(join(ROOT, file)))).toEqual([]);
  });

  it('has a picture of each', () => {
    for (const heading of ['A user is deactivated', 'A CoT event arrives'])
      expect(sectionOf(heading)).toMatch(/!\[[^\]]{20,}\]\(img\/architecture-[a-z]+\.svg\)/);
  });

  it('gives features and packages in the order that is held', () => {
    expect(orderOf('Features, lowest first', 'shared/')).toEqual(FEATURES);
    expect(orderOf('Packages, lowest first', 'packages/')).toEqual(PACKAGES);
  });
});

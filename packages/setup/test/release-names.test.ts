// Which names in a release archive are refused: no name that is let through leads anywhere but
// below the directory.

import { resolve, sep } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { nameProblem, namesakes } from '../archive/archive.ts';
import { runs } from '../../../test/support/runs.ts';

describe('the names in a release archive', () => {
  it.each([
    ['top/../../etc/passwd', 'leads out of its folder'],
    ['..', 'leads out of its folder'],
    ['top/..', 'leads out of its folder'],
    ['/etc/passwd', 'has an absolute name'],
    ['C:/windows', 'has an absolute name'],
    ['top\\..\\x', 'has a backslash in its name'],
    ['top/a\u0000b', 'has control characters or broken text in its name'],
    ['top/a\nb', 'has control characters or broken text in its name'],
    ['top/a\u009bb', 'has control characters or broken text in its name'],
    ['top/\ufffd', 'has control characters or broken text in its name'],
    ['top//x', 'has an empty part in its name'],
    ['top/./x', 'has an empty part in its name'],
    ['', 'has an empty part in its name'],
    ['/', 'has an absolute name'],
    [`top/${'a'.repeat(256)}`, 'has a part longer than 255 bytes in its name'],
    [`top/${'ab/'.repeat(400)}c`, 'has a name longer than 1000 bytes'],
  ])('%j %s', (name, problem) => {
    expect(nameProblem(name)).toBe(problem);
  });

  it.each(['top/', 'top/tak/certs/makeCert.sh', 'top/..a/b..', 'top/Straße.txt', 'top/a b'])(
    '%j is let through',
    (name) => {
      expect(nameProblem(name)).toBeUndefined();
    },
  );

  it('never lead out of the directory when they are let through', () => {
    const part = fc.oneof(
      fc.constantFrom('..', '.', '', 'a', '...', 'C:', '~', '\\', ' '),
      fc.string({ maxLength: 4 }),
    );
    const name = fc.array(part, { minLength: 1, maxLength: 5 }).map((parts) => parts.join('/'));
    let accepted = 0;
    fc.assert(
      fc.property(name, (each) => {
        if (nameProblem(each) !== undefined) return;
        accepted += 1;
        expect(resolve('/releases/new', each).startsWith(`/releases/new${sep}`)).toBe(true);
      }),
      { numRuns: runs(2000) },
    );
    expect(accepted).toBeGreaterThan(runs(20));
  });

  it.each([
    [
      ['t/A', 't/a'],
      ['t/a', 't/A'],
    ],
    [
      ['t/a', 't/a'],
      ['t/a', 't/a'],
    ],
    [
      ['t/a', 't/a/b'],
      ['t/a/', 't/a'],
    ],
    [
      ['t/a/b', 't/A/c'],
      ['t/A/', 't/a/'],
    ],
    [
      ['t/a/b', 't/a'],
      ['t/a', 't/a/'],
    ],
    [
      ['t/\u00e9', 't/e\u0301'],
      ['t/e\u0301', 't/\u00e9'],
    ],
  ])('%j fall together', (names, found) => {
    expect(namesakes(names.map((name) => ({ name })))).toEqual(found);
  });

  it('of directories may come before, after or without their contents', () => {
    expect(namesakes(['t/', 't/a/', 't/a/b', 't/c/d', 't/c/'].map((name) => ({ name })))).toBeUndefined();
  });
});

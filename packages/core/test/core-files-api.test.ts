// Files on 8443 with the files in memory; and the pure rules of names, types, ranges and places.

import { afterAll, describe, expect, it } from 'vitest';
import { limitPerCaller } from '@holdfast/kit/concurrency';
import { coreFilesContract } from '../../../test/core/core-files-contract.ts';
import { contentDisposition, lastPart, servedType, textFault } from '../files/query-parameters.ts';
import { byteRange } from '../files/content-routes.ts';
import { contentUrl, toSizeView } from '../files/file-views.ts';
import { adminWorld } from './fake-core-admin.ts';

const worlds: { end(): void }[] = [];
afterAll(() => {
  for (const world of worlds) world.end();
});

coreFilesContract('in memory', async () => {
  const world = adminWorld();
  worlds.push(world);
  return world;
});

describe('a range of bytes', () => {
  it.each([
    [undefined, undefined],
    ['bytes=-', undefined],
    ['bytes=5-2', undefined],
    ['bytes=0-1,5-6', undefined],
    ['lines=0-1', undefined],
    ['bytes=0-9999999999999999', undefined],
    ['bytes=0-', { from: 0, length: 10 }],
    ['Bytes=2-3', { from: 2, length: 2 }],
    ['bytes=-3', { from: 7, length: 3 }],
    ['bytes=-99', { from: 0, length: 10 }],
    ['bytes=-0', 'unsatisfiable'],
    ['bytes=10-', 'unsatisfiable'],
  ])('%s of ten', (header, wanted) => {
    expect(byteRange(header, 10)).toEqual(wanted);
  });

  it('has nothing of an empty file', () => {
    expect([byteRange('bytes=0-', 0), byteRange('bytes=-1', 0)]).toEqual(['unsatisfiable', 'unsatisfiable']);
  });
});

describe('names and types', () => {
  it.each([
    ['plan.zip', 'attachment; filename="plan.zip"'],
    ['', 'attachment; filename="file"'],
    ['a/b\\c.zip', 'attachment; filename="c.zip"'],
    ['x\r\nset-cookie: y', 'attachment; filename="x  set-cookie: y"'],
    ["it's (1).zip", `attachment; filename="it's (1).zip"`],
    [`"Ü'`, `attachment; filename="__'"; filename*=UTF-8''%22%C3%9C%27`],
    ['\ud800.zip', `attachment; filename="_.zip"; filename*=UTF-8''%EF%BF%BD.zip`],
  ])('%j is written safely', (name, header) => {
    expect(contentDisposition(name)).toBe(header);
  });

  it.each([
    'text/html',
    'application/xhtml+xml',
    'image/svg+xml',
    'text/javascript',
    'application/pdf',
    'x',
    'a/b\r\nc',
    '',
  ])('%j is only bytes', (type) => {
    expect(servedType(type)).toBe('application/octet-stream');
  });

  it('takes names of every script, and nothing that cannot be seen', () => {
    for (const text of ['Übung', '🦊', 'план', '図面 1']) expect(textFault(text, 20)).toBeUndefined();
    for (const text of ['\0', 'a\nb', '\u202e', '\ufeff', '\ud800', '\x9b']) expect(textFault(text, 20)).toBeDefined();
    expect(lastPart('..\\..\\x/y')).toBe('y');
  });

  it('shows sizes and addresses as devices know them', () => {
    expect([0, 999, 1000, 2600, 999_499, 999_500, 4e8, 5e12].map(toSizeView)).toEqual([
      '0B',
      '999B',
      '1kB',
      '3kB',
      '999kB',
      '1MB',
      '400MB',
      '5000GB',
    ]);
    expect(contentUrl({ hostname: '::1', publicPort: 9443 }, 'ab')).toBe(
      'https://[::1]:9443/Marti/sync/content?hash=ab',
    );
  });
});

describe('the turnstile', () => {
  it('lets in so many, and of one person only a share', () => {
    const gate = limitPerCaller({ most: 3, maxPerOne: 2 });
    const leave = gate.enter('ada');
    expect(
      [gate.enter('ada'), gate.enter('ada'), gate.enter('bob'), gate.enter('cy')].map((each) => each !== undefined),
    ).toEqual([true, false, true, false]);
    leave?.();
    leave?.();
    expect([gate.inside, gate.enter('cy') !== undefined, gate.enter('dee')]).toEqual([2, true, undefined]);
  });
});

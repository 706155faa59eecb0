// Whatever devices, outside systems and strangers call themselves, it is text in every page and nothing else.

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { faultsOf, hostileWorld } from './hostile-world.ts';
import { visit } from './page-session.ts';

const NAMES = [
  '<script>alert(1)</script>',
  '"><img src=x onerror=alert(1)>',
  "' onfocus='alert(1)' autofocus='",
  '</title></textarea><svg onload=alert(1)>',
  'javascript:alert(1)//',
  '//evil.example/?a=1&b=2#c',
  '\u202Egnp.exe\u2066\u2028',
  'a\r\nLocation: https://evil.example\r\n\r\n<b>',
  'pay\u00adpal\u200b\u2060\ufeff\u061c\u200e\u200f',
  'nul\0bell\u0007esc\u001b[2J\u009b',
  '\ud800half\udfff',
  '${7*7}{{7*7}}<%= 7 %>__proto__',
  'constructor',
  `${'long '.repeat(2000)}<i>`,
];

const AT_PORTAL = /^\/(?:add-device|guides)$/;

async function expectHarmless(text: string): Promise<void> {
  const world = await hostileWorld(text);
  for (const [face, username] of [
    ['console', 'webadmin'],
    ['console', 'vera'],
    ['portal', 'webadmin'],
  ] as const) {
    const visitor = await visit({ deps: world.deps, around: world.around, face, username });
    for (const path of world.paths) {
      const answer = await visitor.get(path);
      const isThere = answer.status === 200 || username === 'vera' || (face === 'portal') !== AT_PORTAL.test(path);
      const found = {
        face,
        username,
        path,
        isThere,
        isOurs: answer.status < 500,
        faults: faultsOf(await answer.text()),
      };
      expect(found).toEqual({ face, username, path, isThere: true, isOurs: true, faults: [] });
      expect(answer.headers.get('cache-control')).toBe('no-store');
    }
  }
}

describe('the name of anything', () => {
  it.each(NAMES)('is text and no markup in every page: %j', async (text) => {
    await expectHarmless(text);
  });

  it('is seen, for all that', async () => {
    const { deps, around, paths } = await hostileWorld('<i>');
    const visitor = await visit({ deps, around });
    const pages = await Promise.all(paths.map(async (path) => (await visitor.get(path)).text()));
    expect(pages.filter((html) => html.includes('&lt;i&gt;')).length).toBeGreaterThan(20);
  });

  it('is so whatever it is', async () => {
    const unit = fc.constantFrom(
      '<',
      '>',
      '"',
      "'",
      '&',
      '=',
      '/',
      '`',
      ' ',
      '\0',
      '\n',
      '\u202e',
      '\ud800',
      '%',
      '#',
      '?',
      'é',
      'a',
    );
    await fc.assert(fc.asyncProperty(fc.string({ unit, minLength: 1, maxLength: 40 }), expectHarmless), { numRuns: 3 });
  });
});

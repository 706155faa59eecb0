import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { returnPath } from '../../shared/http/context.ts';
import { runs } from '../support/runs.ts';

describe('where a person goes after signing in', () => {
  it.each([
    ['/', '/'],
    ['/api/docs', '/api/docs'],
    ['/api/alerts?level=warning&page=2#top', '/api/alerts?level=warning&page=2#top'],
    ['/map/ü', '/map/%C3%BC'],
    ['/a/../b', '/b'],
    ['/sign-in-history', '/sign-in-history'],
    ['/@evil.org', '/@evil.org'],
    ['/http://evil.org', '/http://evil.org'],
  ])('%s is a path of ours', (text, path) => expect(returnPath(text)).toBe(path));

  it.each([
    [''],
    ['api/docs'],
    ['//evil.org'],
    ['///evil.org'],
    ['/\\evil.org'],
    ['/a\\..\\..\\\\evil.org'],
    ['/.//evil.org'],
    ['/a/..//evil.org'],
    ['/%2e//evil.org'],
    ['https://evil.org/'],
    ['javascript:alert(1)'],
    ['/\t/evil.org'],
    ['\t//evil.org'],
    ['/\n/evil.org'],
    ['/a\r\nSet-Cookie: a=b'],
    ['/\u0000'],
    ['/sign-in'],
    ['/sign-in/'],
    ['/sign-in?return_to=/sign-in'],
    ['/a/../sign-out'],
    ['/Sign-Out'],
    [`/${'a'.repeat(3000)}`],
    [undefined],
  ])('%j is not, and leads to the start', (text) => expect(returnPath(text)).toBe('/'));

  it('is, whatever the text is, the same host for a browser that reads it, and plain ASCII', () => {
    const pieces = fc.constantFrom('/', '\\', '..', '.', '%2e', '@', ':', 'evil.org', 'a', '?', '#', '\t', ' ', '%5c');
    fc.assert(
      fc.property(
        fc.oneof(
          fc.array(pieces).map((all) => all.join('')),
          fc.string(),
        ),
        (text) => {
          const path = returnPath(text);
          expect(new URL(path, 'https://ours.example:8080/sign-in').origin).toBe('https://ours.example:8080');
          expect(path).toMatch(/^\/(?!\/)[\x21-\x7e]*$/);
          expect(returnPath(path)).toBe(path);
        },
      ),
      { numRuns: runs(2000) },
    );
  });
});

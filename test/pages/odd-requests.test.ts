// Requests that no form of ours makes: every page has an answer to them, none changes anything, none breaks.

import { describe, expect, it } from 'vitest';
import type { Face } from '../../shared/http/context.ts';
import { faultsOf, hostileWorld } from './hostile-world.ts';
import { pagePaths, UPLOADS, visit } from './page-session.ts';

const FACES: Face[] = ['console', 'portal'];
const ODD = [
  '__proto__',
  'constructor',
  '%00',
  '%E0%A4%A',
  '..%2f..%2fetc',
  '%3Cscript%3E',
  '%0d%0aSet-Cookie:x',
  '%F0%9F%92%A9',
  '1e3',
  '-1',
  '99999999999999999999',
  'a'.repeat(5000),
];

/** Of what is no page: none. */
async function faultsIn(answer: Response): Promise<string[]> {
  const text = await answer.text();
  return (answer.headers.get('content-type') ?? '').startsWith('text/html') ? faultsOf(text) : [];
}

const QUERY_NAMES =
  'page search status done mode tables since until tail name cot schedule time cron app check show include verify live only days username'.split(
    ' ',
  );
const QUERIES = ['9999999', '<b>', '%00', '%ED%A0%80', '2026-03-29', '9999-12-31', '0001-01-01', 'x'.repeat(9000)];

describe('an address', () => {
  it.each(pagePaths('GET').filter((path) => path.includes(':')))('%s with anything in it is answered', async (path) => {
    for (const face of FACES) {
      const visitor = await visit({ face });
      for (const odd of ODD) {
        const answer = await visitor.get(path.replace(/:\w+/, odd));
        const found = { face, odd, isOurs: answer.status < 500, faults: await faultsIn(answer) };
        expect(found).toEqual({ face, odd, isOurs: true, faults: [] });
      }
    }
  });

  it.each(pagePaths('GET'))('%s with any query is answered', async (path) => {
    const visitor = await visit({ face: /^\/(?:add-device|guides|my-devices)/.test(path) ? 'portal' : 'console' });
    for (const value of QUERIES) {
      const query = QUERY_NAMES.map((name) => `${name}=${value}`).join('&');
      const answer = await visitor.get(`${path.replaceAll(/:\w+/g, '1')}?${query}`);
      const found = { value, isOurs: answer.status < 500, faults: await faultsIn(answer) };
      expect(found).toEqual({ value, isOurs: true, faults: [] });
    }
  });
});

const FIELD_NAMES =
  'name username scope days id kind groups new_group had had_name had_email email ends on role password repeated current again make change channel address uid connection confirm rows cutoff mode tables base cot geochat schedule time weekday cron from app file'.split(
    ' ',
  );

const VALUES = [
  '',
  '<b>',
  '\0\ud800\u202e',
  'x'.repeat(10_000),
  '9'.repeat(30),
  '1',
  '2026-03-29T02:30',
  'date',
  '__proto__',
  '/\\evil.example',
];

/** Every field of any form, some of them several times. */
function fieldsOf(value: string): Record<string, string | string[]> {
  const several = ['groups', 'had', 'name', 'tables'];
  return Object.fromEntries(FIELD_NAMES.map((name) => [name, several.includes(name) ? [value, value, 'x'] : value]));
}

describe('a form', () => {
  it.each(pagePaths('POST'))('%s with anything in it is answered, and never half done', async (path) => {
    for (const face of FACES) {
      const { deps, around } = await hostileWorld('Odd');
      let visitor = await visit({ deps, around, face });
      for (const value of VALUES) {
        if (path.startsWith('/account')) visitor = await visit({ deps, around, face });
        const before = deps.audit.records.length;
        const answer = await visitor.post(path.replaceAll(/:\w+/g, '6'), fieldsOf(value));
        const done = deps.audit.records
          .slice(before)
          .filter(({ phase, result }) => phase === 'outcome' && result === 'ok');
        const isRefused = answer.status >= 400;
        const found = { face, value, isOurs: answer.status < 500, faults: await faultsIn(answer) };
        expect(found).toEqual({ face, value, isOurs: true, faults: [] });
        expect(isRefused ? done : []).toEqual([]);
        expect(answer.headers.get('location') ?? '/').toMatch(/^\/(?![/\\])/);
        expect(answer.headers.get('cache-control')).toBe('no-store');
      }
    }
  });

  it.each(pagePaths('POST'))(
    '%s takes no body of another type, no megabyte more, and nothing from elsewhere',
    async (path) => {
      for (const face of FACES) {
        const visitor = await visit({ face });
        const there = (await visitor.post(path.replaceAll(/:\w+/g, '6'), {})).status !== 404;
        const again = await visit({ face });
        const place = path.replaceAll(/:\w+/g, '6');
        const statuses = [];
        for (const [headers, body] of [
          [{ 'sec-fetch-site': 'cross-site' }, 'a=b'],
          [{ 'sec-fetch-site': 'same-site' }, 'a=b'],
          [{ origin: 'null' }, 'a=b'],
          [{ origin: 'http://cot.example.org:3000' }, 'a=b'],
          [{ 'content-type': 'text/plain' }, 'a=b'],
          [{ 'content-type': 'application/json' }, '{}'],
          [{ 'content-type': 'multipart/form-data; boundary=x' }, '--x--'],
          [{}, `a=${'b'.repeat(1_000_001)}`],
        ] as [Record<string, string>, string][])
          statuses.push((await again.send(place, headers, body)).status);
        const wanted = [403, 403, 403, 403, 415, 415, 415, 413];
        // Forms with a file have that type, and the core limits their size.
        if (UPLOADS.has(path) && face === 'console') expect(statuses.toSpliced(6, 2)).toEqual(wanted.toSpliced(6, 2));
        else if (there && !UPLOADS.has(path)) expect(statuses).toEqual(wanted);
      }
    },
  );
});

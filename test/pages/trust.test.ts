// Who may do what on pages: asked again when a form has come in, seen in what is offered, and never changed by looking.

import { describe, expect, it } from 'vitest';
import type { Face } from '../../shared/http/context.ts';
import { fakeDeps, PASSWORD } from '../http/fake-deps.ts';
import { hostileWorld } from './hostile-world.ts';
import { pagePaths, UPLOADS, visit, type Visitor } from './page-session.ts';

const FACES: Face[] = ['console', 'portal'];
const placeOf = (path: string): string => path.replaceAll(/:\w+/g, '1');

/** Every address and every form that a page offers. */
function offered(html: string): { links: string[]; forms: string[] } {
  const all = (pattern: RegExp): string[] =>
    [...html.matchAll(pattern)].map(([, found = '']) => found.replaceAll('&amp;', '&'));
  return { links: all(/ (?:href|data-live)="(\/[^"#]*)[^"]*"/g), forms: all(/<form method="post" action="([^"]*)"/g) };
}

/** Goes to all that is offered, from the start. */
async function walk(visitor: Visitor, from: string[]): Promise<{ refused: string[]; forms: Set<string> }> {
  const seen = new Set(from);
  const linked = new Set<string>();
  const statuses = new Map<string, number>();
  const forms = new Set<string>();
  for (const path of seen) {
    if (seen.size > 600) break;
    const answer = await visitor.get(path);
    statuses.set(path, answer.status);
    if (answer.status !== 200 || !(answer.headers.get('content-type') ?? '').startsWith('text/html')) continue;
    const html = await answer.text();
    const { links, forms: sent } = offered(html);
    for (const link of links.filter((each) => !each.startsWith('/sign-in/'))) {
      seen.add(link);
      linked.add(link);
    }
    for (const form of sent) forms.add(form);
  }
  const refused = [...linked].filter((path) => (statuses.get(path) ?? 0) >= 400);
  return { refused, forms };
}

describe('what a page offers', () => {
  it.each(FACES.flatMap((face) => ['webadmin', 'vera', 'nora'].map((username): [Face, string] => [face, username])))(
    'at the %s to %s is nothing that is refused',
    async (face, username) => {
      const { deps, around, paths } = await hostileWorld('Odd');
      const visitor = await visit({ deps, around, face, username });
      const { refused, forms } = await walk(visitor, paths);
      expect(refused).toEqual([]);
      const denied: string[] = [];
      for (const form of forms) {
        const answer = await visitor.post(form, {});
        if (answer.status === 403 || answer.status === 404) denied.push(`${form} ${answer.status}`);
        if (form === '/sign-out' || form.startsWith('/account/sessions')) break;
      }
      expect(denied).toEqual([]);
    },
    60_000,
  );
});

describe('looking at pages', () => {
  it.each(FACES)('changes nothing at the %s', async (face) => {
    const { deps, around, paths } = await hostileWorld('Odd');
    const visitor = await visit({ deps, around, face });
    const before = deps.audit.records.length;
    const state = JSON.stringify([deps.theCore.certificates, await deps.opsJobs.list({}, 0, 50), deps.theCore.plugins]);
    for (const path of [...paths, ...pagePaths('GET').map(placeOf), ...paths]) await visitor.get(path);
    expect(deps.audit.records.slice(before).filter(({ result }) => result !== 'denied')).toEqual([]);
    expect(JSON.stringify([deps.theCore.certificates, await deps.opsJobs.list({}, 0, 50), deps.theCore.plugins])).toBe(
      state,
    );
  });
});

/** What some form or other wants. */
const FIELDS = { name: 'a', username: 'bob', scope: 'read', days: '30', kind: 'data', mode: 'standard', role: 'admin' };
const MORE = {
  ends: 'never',
  change: 'start',
  channel: 'email',
  address: '192.0.2.1',
  uid: 'x',
  password: 'a'.repeat(20),
};

/** The forms of an administrator that the portal has too; there is no other one there. */
const AT_BOTH = /^\/(?:people|groups)\b|^\/certificates\/:file\/revoke$/;

describe('a form', () => {
  it.each(
    pagePaths('POST').filter((path) => !/^\/(?:account|my-devices|add-device|health)/.test(path) && !UPLOADS.has(path)),
  )('%s is for who may do it when all of it has come', async (path) => {
    for (const face of FACES) {
      const deps = fakeDeps();
      const alma = deps.directory.addPerson('alma', PASSWORD);
      alma.groups.push('stack_admin');
      const visitor = await visit({ deps, face, username: 'alma' });
      const before = deps.audit.records.length;
      const answer = await visitor.postSlowly(placeOf(path), { ...FIELDS, ...MORE }, async () => {
        alma.groups = [];
        await deps.authenticator.forget('alma');
      });
      const done = deps.audit.records.slice(before).filter(({ result }) => result !== 'denied');
      const refused = face === 'console' || AT_BOTH.test(path) ? 403 : 404;
      expect([face, answer.status, done]).toEqual([face, refused, []]);
    }
  });
});

describe('a session that has ended', () => {
  it('is a denied attempt in the audit log where it sends a form, as at the API, and none where it looks', async () => {
    const { deps, get, post } = await visit();
    deps.signIns.endAllOf('webadmin');
    await deps.authenticator.forget('webadmin');
    const before = deps.audit.records.length;
    expect((await get('/people')).headers.get('location')).toBe('/sign-in?return_to=/people');
    expect((await post('/people/new', { username: 'bob' })).headers.get('location')).toBe('/sign-in');
    expect(deps.audit.records.slice(before)).toMatchObject([
      { action: 'sign-in', target: 'POST /people/new', result: 'denied', detail: '{"by":"session"}' },
    ]);
  });

  it('is asked for nothing by a cookie alone that nobody has signed', async () => {
    const { deps, send } = await visit({ username: undefined });
    const answer = await send('/people/new', { cookie: 'holdfast=forged' }, 'username=bob');
    expect(answer.headers.get('location')).toBe('/sign-in');
    expect(deps.audit.records.map(({ result }) => result)).toEqual(['denied']);
  });
});

describe('what a page says of people', () => {
  it.each(FACES)('is kept by nothing at the %s', async (face) => {
    const { deps, around, paths } = await hostileWorld('Odd');
    const visitor = await visit({ deps, around, face });
    for (const path of [...paths, ...pagePaths('GET').map((each) => each.replace(':id', '6').replace(/:\w+/, '1'))]) {
      const answer = await visitor.get(path);
      if (answer.status !== 404) expect([path, answer.headers.get('cache-control')]).toEqual([path, 'no-store']);
    }
  });
});

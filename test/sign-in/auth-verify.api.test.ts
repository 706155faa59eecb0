import { describe, expect, it } from 'vitest';
import { createApp } from '../../functions/app.ts';
import { withQuickAnswers } from '../../functions/quick-answers.ts';
import { type Bindings, sessionCookieName } from '../../shared/http/context.ts';
import { problemSchema } from '../../shared/http/route.ts';
import type { Scope } from '../../shared/sign-in/rules.ts';
import { ADMIN, basic, type FakeDeps, fakeDeps, NOBODY, PASSWORD, READER, VIEWER } from '../http/fake-deps.ts';

const CONNECTION: Bindings = { requestId: 'request-1', clientAddress: '192.0.2.7', secure: false };
const deps = fakeDeps();
const app = createApp(deps);
type Sent = Record<string, string>;

async function verify(query: string, headers: Sent, on = app, method = 'GET'): Promise<Response> {
  return on.request(`/auth/verify${query}`, { method, headers }, CONNECTION);
}
const status = async (query: string, headers: Sent): Promise<number> => (await verify(query, headers)).status;
/** Remote-User and Remote-Groups; null where a header is missing. */
const remote = ({ headers }: Response): (string | null)[] => [headers.get('remote-user'), headers.get('remote-groups')];

async function bearerOf(scope: Scope, owner = 'webadmin', { signIns }: FakeDeps = deps): Promise<Sent> {
  const expiresAt = new Date(deps.now().getTime() + 3_600_000).toISOString();
  const { text } = await signIns.createToken({ owner, scope, name: 'a token', expiresAt });
  return { authorization: `Bearer ${text}` };
}

async function cookieOf(username: string): Promise<Sent> {
  const expiresAt = new Date(deps.now().getTime() + 3_600_000).toISOString();
  const { text } = await deps.signIns.openSession({ username, expiresAt, address: '', userAgent: '' });
  return { cookie: `${sessionCookieName(false)}=${text}` };
}

describe('GET /auth/verify', () => {
  it('tells who asks, by password, session or token, in headers alone', async () => {
    for (const headers of [ADMIN, await cookieOf('webadmin'), await bearerOf('admin')]) {
      const response = await verify('', headers);
      expect([response.status, await response.text(), ...remote(response)]).toEqual([
        200,
        '',
        'webadmin',
        'core_ROLE_ADMIN',
      ]);
      expect([response.headers.get('cache-control'), response.headers.get('x-request-id')]).toEqual([
        'no-store',
        'request-1',
      ]);
    }
  });

  it('has both headers for somebody without groups, too', async () =>
    expect(remote(await verify('', NOBODY))).toEqual(['nora', '']));

  it('answers HEAD as GET', async () => {
    const response = await verify('', VIEWER, app, 'HEAD');
    expect([response.status, ...remote(response)]).toEqual([200, 'vera', 'stack_viewer']);
    expect((await verify('', {}, app, 'HEAD')).status).toBe(401);
  });

  it('is 401 with the challenge for nobody, whatever headers say who it is', async () => {
    const claims = { 'remote-user': 'webadmin', 'remote-groups': 'stack_admin', 'x-forwarded-user': 'webadmin' };
    for (const headers of [
      {},
      claims,
      { authorization: '' },
      { authorization: 'Digest x' },
      { authorization: 'Bearer x' },
    ]) {
      const response = await verify('', headers);
      expect([response.status, response.headers.get('www-authenticate')]).toEqual([
        401,
        'Basic realm="Holdfast", charset="UTF-8"',
      ]);
      expect(remote(response)).toEqual([null, null]);
    }
    expect(await status('', { authorization: basic('vera', 'wrong') })).toBe(401);
    expect(await status('', { cookie: `${sessionCookieName(false)}=nothing` })).toBe(401);
  });

  it('demands a role that the person, and the scope of the token, must have', async () => {
    const table: [Sent, number, number, number][] = [
      [ADMIN, 200, 200, 200],
      [VIEWER, 200, 200, 403],
      [NOBODY, 200, 403, 403],
      [await cookieOf('webadmin'), 200, 200, 200],
      [await bearerOf('admin'), 200, 200, 200],
      [await bearerOf('admin', 'vera'), 200, 200, 403],
      [await bearerOf('read'), 200, 200, 403],
      [await bearerOf('read', 'nora'), 200, 403, 403],
      [await bearerOf('users'), 403, 403, 403],
      [READER, 403, 403, 403],
    ];
    for (const [headers, any, viewer, admin] of table)
      expect([
        headers,
        await status('', headers),
        await status('?role=viewer', headers),
        await status('?role=admin', headers),
      ]).toEqual([headers, any, viewer, admin]);
  });

  it.each(['?role=root', '?role=', '?role=Admin', '?base=web', '?base=', '?base=core&role=viewer'])(
    'says 400 to %s, before it looks who asks',
    async (query) => {
      for (const headers of [ADMIN, {}]) {
        const response = await verify(query, headers);
        expect([response.status, problemSchema.parse(await response.json()).code]).toEqual([400, 'malformed']);
      }
    },
  );

  it.each(['?role=viewer&role=admin', '?base=core&base=core', '?roles=admin', '?ROLE=admin', '?x=1'])(
    'lets nobody through with %s: a slip must not open a door',
    async (query) => expect(await status(query, ADMIN)).toBe(400),
  );

  it('takes a byte order mark for part of the name, as the core does, and not for nothing', async () => {
    for (const query of ['', '?base=core'])
      expect(await status(query, { authorization: basic('\ufeffwebadmin', PASSWORD) })).toBe(401);
  });

  it.each([
    'Basic %%%',
    'Basic /w==',
    `Basic ${Buffer.from([0xff, 0x3a, 0x61]).toString('base64')}`,
    'Basic',
    'Basic ',
    'basic =',
    `Basic ${Buffer.from('webadmin').toString('base64')}`,
  ])('says 400 to %s', async (authorization) => {
    for (const query of ['', '?base=core']) expect(await status(query, { authorization })).toBe(400);
  });

  it('shows of a token that may only read no group of administrators, however it is spelled', async () => {
    const own = fakeDeps({ ADMIN_GROUP: 'Chiefs' });
    for (const name of ['core_Blue', 'authentik Admins']) own.directory.addGroup(name);
    own.directory
      .addPerson('chief', PASSWORD)
      .groups.push('chiefs', 'core_ROLE_ADMIN', 'core_Blue', 'authentik admins');
    const there = createApp(own);
    const read = await verify('', await bearerOf('read', 'chief', own), there);
    expect(remote(read)).toEqual(['chief', 'core_Blue']);
    const full = await verify('', await bearerOf('admin', 'chief', own), there);
    expect(remote(full)).toEqual(['chief', 'Chiefs,core_ROLE_ADMIN,core_Blue,authentik%20Admins']);
  });

  it.each([
    ['jane doe', 'jane doe'],
    ["o'brien", "o'brien"],
    ['zoë', 'zo%C3%AB'],
    ['zo%C3%AB', 'zo%25C3%25AB'],
    ['Ⅷ', '%E2%85%A7'],
  ])('names %s as %s, and no two people alike', async (username, shown) => {
    const own = fakeDeps();
    own.directory.addGroup('core_a,stack_admin');
    own.directory.addGroup('core_Größe');
    own.directory.addPerson(username, PASSWORD).groups.push('core_a,stack_admin', 'core_Größe');
    const response = await verify('', { authorization: basic(username, PASSWORD) }, createApp(own));
    expect(remote(response)).toEqual([shown, 'core_a%2Cstack_admin,core_Gr%C3%B6%C3%9Fe']);
  });

  it('says 503 while the directory is away, and opens nothing to the emergency', async () => {
    const own = fakeDeps();
    own.directory.mood = 'down';
    const there = createApp(own);
    expect((await verify('', VIEWER, there)).status).toBe(503);
    expect((await verify('?base=core', ADMIN, there)).status).toBe(503);
    expect((await verify('', ADMIN, there)).status).toBe(403);
  });
});

describe('GET /auth/verify?base=core', () => {
  it('takes passwords and app passwords, and says nobody', async () => {
    const expires = new Date(deps.now().getTime() + 60_000);
    deps.directory.people.get('nora')?.appPasswords.push({ text: 'from the QR code', expires });
    const scanned = { authorization: basic('nora', 'from the QR code') };
    for (const headers of [NOBODY, scanned]) {
      const response = await verify('?base=core', headers);
      expect([response.status, ...remote(response)]).toEqual([200, '', '']);
    }
    expect(await status('', scanned)).toBe(401);
    expect(await status('?base=core', { authorization: basic('nora', 'wrong') })).toBe(401);
  });

  it('lets every bearer through, for the core to judge, and says nobody', async () => {
    for (const headers of [READER, { authorization: 'Bearer of.the.core' }, { authorization: 'bearer x' }]) {
      const response = await verify('?base=core', headers);
      expect([response.status, ...remote(response)]).toEqual([200, '', '']);
    }
  });

  it('takes no cookie', async () => {
    for (const headers of [await cookieOf('webadmin'), {}, { authorization: 'Bearer' }])
      expect(await status('?base=core', headers)).toBe(401);
  });
});

describe('from a locked address', () => {
  const locked = fakeDeps();
  const normal = createApp(locked);
  const quick = withQuickAnswers(normal.fetch, locked);

  it('a password is 429 wherever it goes, the rest is answered as ever, the short way exactly as the normal one', async () => {
    for (let count = 0; count < 10; count++) await verify('', { authorization: basic('vera', `${count}`) }, normal);
    const full = await bearerOf('admin', 'webadmin', locked);
    const bare = Buffer.from(`vera:${PASSWORD}`).toString('base64');
    const colonless = { authorization: `Basic ${Buffer.from('vera').toString('base64')}` };
    const headers: Sent[] = [
      VIEWER,
      {},
      full,
      { authorization: 'Basic %%%' },
      { authorization: `basic ${bare}` },
      { authorization: `Basic  ${bare}` },
      { authorization: `Basic ${bare} x` },
      { authorization: `Basic ${bare.slice(0, 4)}\t${bare.slice(4)}` },
      colonless,
    ];
    const paths = ['', '/', '?', '?role=admin', '?base=core', '?role=x', '?base=core&role=admin', '#x', 'x'];
    for (const method of ['GET', 'HEAD', 'POST'])
      for (const path of paths)
        for (const each of headers) {
          const ask = (fetch: typeof quick) =>
            fetch(new Request(`http://h/auth/verify${path}`, { method, headers: each }), CONNECTION);
          const [short, long] = [await ask(quick), await ask(normal.fetch)];
          const messagesOf = async (response: Response) => [
            method,
            path,
            each,
            response.status,
            Object.fromEntries(response.headers),
            await response.text(),
          ];
          expect(await messagesOf(short)).toEqual(await messagesOf(long));
        }
    expect((await verify('', VIEWER, normal)).headers.get('retry-after')).toBe('900');
    expect((await verify('', full, normal)).status).toBe(200);
    expect((await verify('?role=x', VIEWER, normal)).status).toBe(400);
  });

  it('the short way does not wait, asks nobody, and the attempt is noted', () => {
    const before = locked.audit.records.length;
    locked.directory.mood = 'down';
    const answer = quick(new Request('http://h/auth/verify', { headers: VIEWER }), CONNECTION);
    expect(answer instanceof Response ? answer.status : answer).toBe(429);
    expect(locked.audit.records.slice(before)).toMatchObject([
      { action: 'sign-in.locked', actor: 'vera', address: CONNECTION.clientAddress, request_id: 'request-1' },
    ]);
  });
});

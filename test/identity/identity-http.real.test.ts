// The identity provider's client and a provider that fails in every way: what people are told, and that no secret is in it.

import type { ServerResponse } from 'node:http';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Secret } from '@holdfast/kit/secret';
import {
  always,
  at,
  failureOf,
  newProviderForEachTest,
  newServer,
  over,
  PAGE,
  PASSWORD,
} from './fake-identity-moods.ts';
import { sayJson } from './fake-identity-server.ts';

newProviderForEachTest();

describe('a provider that fails', () => {
  it.each<[string, string, RegExp, (response: ServerResponse) => unknown]>([
    ['401', 'upstream', /does not accept our token.*\(401\): no/, (r) => sayJson(r, 401, { detail: 'no' })],
    ['403', 'upstream', /\(403\): Token invalid\/expired/, (r) => sayJson(r, 403, { detail: 'Token invalid/expired' })],
    ['403 with nothing', 'upstream', /\(403\)\. Correct IDENTITY_TOKEN/, (r) => sayJson(r, 403)],
    ['403 with a page', 'upstream', /\(403\)\. Correct/, (r) => sayJson(r, 403, '<html>forbidden</html>')],
    ['404 with a page', 'upstream', /has no such API.*IDENTITY_URL/, (r) => sayJson(r, 404, '<html>nginx</html>')],
    ['404 with other JSON', 'upstream', /has no such API/, (r) => sayJson(r, 404, { message: 'no route' })],
    [
      '400 with a page',
      'upstream',
      /400 and a body that is not JSON|does not/,
      (r) => sayJson(r, 400, '<h1>Bad Request (400)</h1>'),
    ],
    ['405', 'upstream', /with 405: Method/, (r) => sayJson(r, 405, { detail: 'Method not allowed' })],
    ['429', 'unavailable', /is limiting requests/, (r) => sayJson(r, 429, { detail: 'slow down' })],
    ['500', 'upstream', /internal error.*\(500 for/, (r) => sayJson(r, 500, { detail: 'oops' })],
    [
      '503 with a page',
      'unavailable',
      /is starting or unavailable \(503 for/,
      (r) => sayJson(r, 503, '<h1>starting</h1>'),
    ],
    ['200 with a page', 'upstream', /not JSON|not 204/, (r) => sayJson(r, 200, '<html>sign in</html>')],
    ['200 with nothing', 'upstream', /not JSON|not 204/, (r) => sayJson(r, 200, '')],
    ['JSON of another shape', 'upstream', /unexpected shape|not 204/, (r) => sayJson(r, 200, { hello: ['world'] })],
    ['an array', 'upstream', /unexpected shape|not 204/, (r) => sayJson(r, 200, [])],
    ['null', 'upstream', /unexpected shape|not 204/, (r) => sayJson(r, 200, 'null')],
    [
      'JSON that is deep',
      'upstream',
      /unexpected shape|not 204/,
      (r) => sayJson(r, 200, `${'['.repeat(99_999)}${']'.repeat(99_999)}`),
    ],
    [
      'half an answer',
      'unavailable',
      /closed the connection|cannot be talked to/,
      (r) => {
        r.writeHead(200, { 'content-length': '1000' });
        r.write('{"pagination"', () => r.destroy());
      },
    ],
    ['no answer but an end', 'unavailable', /closed the connection|cannot be talked to/, (r) => r.destroy()],
  ])('is told of when it answers %s, in every method', async (_, code, words, answer) => {
    always(answer);
    const { accounts, groups, appPasswords } = at.identity;
    const id = '00000000-0000-4000-8000-000000000001';
    const password = { identifier: 'tablet', accountId: 1, description: '', expiresAt: null };
    for (const work of [
      () => at.identity.me(),
      () => at.identity.version(),
      () => accounts.list(PAGE),
      () => accounts.list({ ...PAGE, page: 3 }),
      () => accounts.get(7),
      () => accounts.named('ada'),
      () => accounts.create({ username: 'ada', name: '' }),
      () => accounts.change(7, { isActive: false }),
      () => accounts.changeAttributes(7, { app_x: 1 }),
      () => accounts.setPassword(7, PASSWORD),
      () => accounts.delete(7),
      () => groups.list(),
      () => groups.get(id),
      () => groups.named('blue'),
      () => groups.create('blue'),
      () => groups.delete(id),
      () => groups.addMember(id, 7),
      () => groups.removeMember(id, 7),
      () => appPasswords.create(password),
      () => appPasswords.list('ada'),
      () => appPasswords.get('tablet'),
      () => appPasswords.reveal('tablet'),
      () => appPasswords.delete('tablet'),
    ]) {
      const error = await failureOf(work());
      expect([error.code, error.message]).toEqual([code, expect.stringMatching(words)]);
      expect(error.message).toMatch(/^The identity provider at 127\.0\.0\.1:\d+ /);
    }
  });

  it.each([301, 302, 303, 307, 308])(
    'is not followed elsewhere (%i), neither with the token nor without',
    async (status) => {
      const elsewhere = await newServer();
      always((response) =>
        response.writeHead(status, { location: `${elsewhere.url}/api/v3/?token=${at.server.token}` }).end(),
      );
      for (const work of [at.identity.me(), at.identity.accounts.setPassword(7, PASSWORD)]) {
        const error = await failureOf(work);
        expect(error.message).toContain(`a redirect to ${elsewhere.url}, which is not followed`);
        expect(error.code).toBe('upstream');
      }
      expect(elsewhere.calls).toEqual([]);
    },
  );

  it('is not waited for: before the answer, in the middle, and with a fetch that does not mind', async () => {
    at.identity = over({ withinMs: 150 });
    const late = {
      code: 'unavailable',
      message: expect.stringMatching(/did not answer GET \/core\/users\/me\/ within 0\.15 s$/),
    };
    always(() => undefined);
    expect(await failureOf(at.identity.me())).toMatchObject(late);
    always((response) => response.writeHead(200).write('{'));
    expect(await failureOf(at.identity.me())).toMatchObject(late);
    always((response) => {
      const drip = setInterval(() => (response.destroyed ? clearInterval(drip) : response.write(' ')), 20);
    });
    expect(await failureOf(at.identity.me())).toMatchObject(late);
    const deaf = over({ withinMs: 50, fetch: () => new Promise(() => undefined) });
    expect((await failureOf(deaf.me())).code).toBe('unavailable');
  });

  it('is cut off when it never ends', async () => {
    let written = 0;
    always((response) => {
      const more = (): void => {
        written += 100_000;
        if (!response.destroyed) setTimeout(more, response.write('[1,]'.repeat(25_000)) ? 0 : 5);
      };
      more();
    });
    const error = await failureOf(at.identity.accounts.list(PAGE));
    expect([error.code, error.message]).toEqual(['upstream', expect.stringMatching(/with more than 8388608 bytes$/)]);
    expect(written).toBeLessThan(40_000_000);
  });

  it('is not there', async () => {
    at.server.close();
    const error = await failureOf(at.identity.me());
    expect([error.code, error.message]).toEqual(['unavailable', expect.stringMatching(/refused the connection$/)]);
  });

  it('repeats the token and a password in its words, with control characters', async () => {
    const words = `bad \u0000\u001b[31m\u202e Bearer ${at.server.token}\r\n${PASSWORD} ${'long '.repeat(500)}`;
    for (const status of [403, 405, 500]) {
      always((response) => sayJson(response, status, { detail: words }));
      expect((await failureOf(at.identity.accounts.setPassword(7, PASSWORD))).message).toContain('***');
    }
    const bodies = [{ [words]: [words] }, { password: { a: { b: [words] } } }, [words], { detail: words }, words];
    for (const body of bodies) {
      always((response) => sayJson(response, 400, JSON.stringify(body)));
      const error = await failureOf(at.identity.accounts.setPassword(7, PASSWORD));
      expect([error.code, error.message]).toEqual(['invalid', expect.stringContaining('***')]);
    }
  });

  it('is not asked with a token that fits in no header', async () => {
    for (const text of ['line\nbreak-secret', 'ünicode-secret', '']) {
      const error = await failureOf(over({ token: new Secret(text) }).me());
      expect(error.message).toMatch(/IDENTITY_TOKEN has characters/);
      expect(error.message).not.toContain('secret');
    }
    expect(at.server.calls).toEqual([]);
  });

  it('is not shown with what a fetch says of it', async () => {
    const fetch = (): Promise<Response> => Promise.reject(new TypeError(`Bearer ${at.server.token} is no good`));
    expect((await failureOf(over({ fetch }).me())).message).toMatch(/cannot be talked to: Bearer \*\*\* is no good$/);
  });
});

describe('the address of a provider', () => {
  it.each(['', '/', '/below/here', '/below/here//'])('may be followed by %j', async (path) => {
    at.server = await newServer(path.replace(/\/+$/, ''));
    at.identity = over({ url: at.server.url + (path.endsWith('/') ? '/' : '') });
    expect(await at.identity.me()).toEqual({ username: 'akadmin', isSuperuser: true });
    expect(at.server.calls[0]?.path).toBe('/core/users/me/');
  });

  it('names the embedded provider, which speaks the API of an authentik release', async () => {
    always((response) => sayJson(response, 200, { version_current: '2026.8.3', build_hash: 'holdfast-0.1.0' }));
    expect(await at.identity.version()).toBe('Holdfast identity provider 0.1.0, authentik API 2026.8');
  });

  it('may hold a name and a password, which are not sent', async () => {
    at.identity = over({ url: at.server.url.replace('//', `//somebody:${PASSWORD}@`) });
    expect(await at.identity.version()).toBe('2026.8.3');
    always((response) => sayJson(response, 500));
    await failureOf(at.identity.me());
  });
});

describe('a provider at random', () => {
  const text = fc.oneof(
    fc.string({ unit: 'binary', maxLength: 60 }),
    fc.constantFrom('Bearer TOKEN', 'TOKEN', 'a TOKEN\n\u0000b', 'detail', 'username', 'user', 'expires'),
  );
  const { json } = fc.letrec<{ json: unknown }>((tie) => ({
    json: fc.oneof(
      { depthSize: 'small' },
      text,
      fc.constantFrom(null, true, 0, 1, -1, 1e300),
      fc.array(tie('json'), { maxLength: 4 }),
      fc.dictionary(text, tie('json'), { maxKeys: 4 }),
      fc.record({
        pagination: fc.record({ next: fc.nat(3), count: fc.nat(9) }),
        results: fc.array(tie('json'), { maxLength: 3 }),
      }),
      fc.record({
        pk: fc.nat(9),
        username: text,
        is_active: fc.boolean(),
        attributes: tie('json'),
        groups_obj: tie('json'),
      }),
      fc.record({ identifier: text, intent: fc.constant('app_password'), user: fc.nat(9), expiring: fc.boolean() }),
      fc.record({ key: text, detail: text }),
    ),
  }));
  const status = fc.constantFrom(200, 200, 200, 201, 204, 299, 302, 304, 400, 400, 403, 404, 404, 409, 418, 500);

  it('is answered with a value or with an error that gives nothing away', async () => {
    const SETS_PASSWORD = 0;
    const work: (() => Promise<unknown>)[] = [
      () => at.identity.accounts.setPassword(7, PASSWORD),
      () => at.identity.me(),
      () => at.identity.accounts.list(PAGE),
      () => at.identity.accounts.create({ username: 'ada', name: '' }),
      () => at.identity.accounts.changeAttributes(7, { app_x: 1 }),
      () => at.identity.groups.named('blue'),
      () => at.identity.appPasswords.create({ identifier: 't', accountId: 7, description: '', expiresAt: new Date() }),
      () => at.identity.appPasswords.delete('t'),
    ];
    const codes = ['upstream', 'unavailable', 'invalid', 'not_found', 'conflict'];
    await fc.assert(
      fc.asyncProperty(
        fc.nat(work.length - 1),
        fc.array(fc.tuple(status, json), { minLength: 1, maxLength: 4 }),
        async (which, answers) => {
          let next = 0;
          always((response) => {
            const [code, body] = answers[next++ % answers.length] ?? [500, ''];
            const secret = which === SETS_PASSWORD ? `${PASSWORD} ${at.server.token}` : at.server.token;
            sayJson(response, code, JSON.stringify(body).replaceAll('TOKEN', secret));
          });
          try {
            await work[which]?.();
          } catch (error) {
            expect(codes).toContain((await failureOf(Promise.reject(error as Error))).code);
          }
        },
      ),
      { numRuns: 400 },
    );
  });
});

// Who comes in on 8446: passwords behind a lock-out, tokens that are never worth more than their
// password, and the rights of administrators.

import fc from 'fast-check';
import { beforeEach, describe, expect, it } from 'vitest';
import { basic } from '../../../test/http/fake-deps.ts';
import { Tokens } from '../enrollment/tokens.ts';
import { credentialsOf } from '../enrollment/sign-in.ts';
import { wantedRepresentation } from '../enrollment/written-certificate.ts';
import { isFromForeignSite } from '../http/answers.ts';
import {
  ADA_SIGNS_IN,
  type AskOptions,
  type EnrollmentWorld,
  enrollmentWorld,
  PASSWORD,
} from './fake-core-enrollment.ts';
import { runs } from '../../../test/support/runs.ts';

const CONFIG = '/Marti/api/tls/config';
const FORM = { 'content-type': 'application/x-www-form-urlencoded' };
let world: EnrollmentWorld;
beforeEach(async () => {
  world = await enrollmentWorld();
});

const withHeader = async (authorization: string, options: AskOptions = {}): Promise<Response> =>
  world.ask(CONFIG, { ...options, headers: { authorization } });
const status = async (username: string, password: string, address?: string): Promise<number> =>
  (await withHeader(basic(username, password), address === undefined ? {} : { address })).status;
const tokenFor = (username: string, password: string, options: AskOptions = {}): Promise<Response> =>
  world.ask('/oauth/token', {
    method: 'POST',
    headers: { ...FORM, ...options.headers },
    body: new URLSearchParams({ grant_type: 'password', username, password }).toString(),
    ...options,
  });

async function token(username = 'ada', password = PASSWORD): Promise<string> {
  return ((await (await tokenFor(username, password)).json()) as { access_token: string }).access_token;
}

describe('a password', () => {
  it('is asked for by a page without a challenge, as a release does, when there is none or none that can be read', async () => {
    const headers = ['', 'Basic', 'Basic !!!', `Basic ${btoa('no colon')}`, 'Basic /////w==', 'Digest x', 'Bearer'];
    const answers = [await world.ask(CONFIG), ...(await Promise.all(headers.map((header) => withHeader(header))))];
    for (const answer of answers) {
      expect([answer.status, answer.headers.get('www-authenticate')]).toEqual([401, null]);
      expect(answer.headers.get('content-type')).toBe('text/html;charset=utf-8');
    }
    expect(world.binds).toEqual([]);
    expect(await status('ada', PASSWORD)).toBe(200);
  });

  it('may be an app password, and any UTF-8', async () => {
    expect(await status('ADA', 'code of ada')).toBe(200);
    world.directory.addPerson('zoë', 'pä:ss 🔑');
    expect(await status('zoë', 'pä:ss 🔑')).toBe(200);
    expect((await withHeader(`BASIC ${btoa(`ada:${PASSWORD}`)}`)).status).toBe(200);
  });

  it('is refused without asking under a name that nobody can have', async () => {
    for (const name of ['a'.repeat(256), 'ada\0', 'a\nda']) expect(await status(name, PASSWORD)).toBe(401);
    expect(world.binds).toEqual([]);
  });

  it('is asked for each time', async () => {
    expect(await status('ada', PASSWORD)).toBe(200);
    world.directory.addPerson('ada', 'another password');
    expect(await status('ada', PASSWORD)).toBe(401);
  });
});

describe('the lock-out', () => {
  const fail = async (times: number, address?: string): Promise<void> => {
    for (let count = 0; count < times; count++) expect(await status('ada', `guess ${count}`, address)).toBe(401);
  };

  it('answers 429 after ten failures, right password or not, without asking, for fifteen minutes', async () => {
    await fail(10);
    const requested = world.binds.length;
    const answer = await withHeader(ADA_SIGNS_IN);
    expect([answer.status, answer.headers.get('retry-after')]).toEqual([429, '900']);
    expect(world.binds).toHaveLength(requested);
    expect(await status('ada', PASSWORD, '192.0.2.8')).toBe(200);
    expect((await world.ask(CONFIG)).status).toBe(401);
    world.later(15 * 60_000);
    expect(await status('ada', PASSWORD)).toBe(200);
  });

  it('answers before it reads a body', async () => {
    await fail(10);
    let pulled = 0;
    const body = new ReadableStream<Uint8Array>({ pull: () => void (pulled += 1) }, { highWaterMark: 0 });
    const headers = { authorization: ADA_SIGNS_IN };
    const answer = await world.ask('/Marti/api/tls/signClient', { method: 'POST', headers, body });
    expect([answer.status, pulled]).toEqual([429, 0]);
  });

  it('counts an IPv6 network as one', async () => {
    await fail(10, '2001:db8:1:2::1');
    expect(await status('ada', PASSWORD, '2001:db8:1:2:ffff::9')).toBe(429);
    expect(await status('ada', PASSWORD, '2001:db8:1:3::1')).toBe(200);
  });

  it('counts failures alone: neither successes, nor a directory that does not answer, nor what cannot be read', async () => {
    await fail(9);
    for (let count = 0; count < 3; count++) expect(await status('ada', PASSWORD)).toBe(200);
    world.directory.mood = 'down';
    for (let count = 0; count < 3; count++) expect(await status('ada', 'guess')).toBe(503);
    world.directory.mood = 'up';
    for (let count = 0; count < 3; count++) expect((await withHeader('Basic !!!')).status).toBe(401);
    expect(await status('ada', PASSWORD)).toBe(200);
    await fail(1);
    expect(await status('ada', PASSWORD)).toBe(429);
  });

  it('counts names that nobody can have, and empty passwords', async () => {
    for (let count = 0; count < 5; count++) expect(await status('a\0', PASSWORD)).toBe(401);
    for (let count = 0; count < 5; count++) expect(await status('ada', '')).toBe(401);
    expect(await status('ada', PASSWORD)).toBe(429);
  });

  it('is one with that of /oauth/token', async () => {
    for (let count = 0; count < 5; count++) expect((await tokenFor('ada', 'guess')).status).toBe(401);
    await fail(5);
    const answer = await tokenFor('ada', PASSWORD);
    expect([answer.status, answer.headers.get('retry-after')]).toEqual([429, '900']);
  });

  it('lets no more than ten guesses pass that are sent together', async () => {
    const guesses = Array.from({ length: 50 }, (_, count) =>
      status(count % 2 === 0 ? 'ada' : 'wanda', `guess ${count}`),
    );
    const statuses = await Promise.all(guesses);
    expect(statuses.filter((each) => each === 401)).toHaveLength(10);
    expect(statuses.filter((each) => each === 429)).toHaveLength(40);
    expect(world.binds).toHaveLength(10);
  });
});

describe('a token', () => {
  it('comes for name and password in the form that clients take apart', async () => {
    const answer = await tokenFor('ADA', PASSWORD);
    expect([answer.status, answer.headers.get('content-type')]).toEqual([200, 'application/json']);
    const body = (await answer.json()) as { access_token: string };
    expect(body).toMatchObject({ token_type: 'Bearer', expires_in: 3600 });
    expect(answer.headers.get('set-cookie')).toBe(
      `access_token_0=${body.access_token}; Max-Age=3600; Path=/; HttpOnly; Secure; SameSite=Strict`,
    );
    expect(answer.headers.get('cache-control')).toBe('no-store');
    const seconds = Date.parse('2026-11-22T10:00:00Z') / 1000;
    const claims = { sub: 'ada', iat: seconds, nbf: seconds, exp: seconds + 3600 };
    expect(JSON.parse(Buffer.from(body.access_token.split('.')[1] ?? '', 'base64url').toString())).toMatchObject(
      claims,
    );
    const whole = Buffer.from(body.access_token, 'base64').toString().split('}');
    expect(JSON.parse(`${whole[1]}}`)).toMatchObject(claims);
  });

  it('comes for name and password in the address too, as one library sends them, and they reach no log', async () => {
    const query = new URLSearchParams({ grant_type: 'password', username: 'ada', password: PASSWORD });
    const status = async (): Promise<number> =>
      (await world.ask(`/oauth/token?${query.toString()}`, { method: 'POST' })).status;
    expect(await status()).toBe(200);
    query.set('password', 'guess 1234');
    expect(await status()).toBe(401);
    expect(JSON.stringify(world.log.events)).toContain('enrollment.failed');
    expect(JSON.stringify(world.log.events)).not.toContain('1234');
  });

  it('comes for nothing else', async () => {
    const wrong = await tokenFor('ada', 'guess');
    expect([wrong.status, await wrong.text()]).toEqual([401, '']);
    const cases: [number, string, AskOptions][] = [
      [400, '?username=bob', {}],
      [400, '', { body: '' }],
      [400, '', { body: 'grant_type=password&username=ada' }],
      [400, '', { body: `grant_type=password&username=ada&username=bob&password=${PASSWORD}` }],
      [400, '', { body: `grant_type=client_credentials&username=ada&password=${PASSWORD}` }],
      [415, '', { headers: { 'content-type': 'application/json' }, body: '{}' }],
      [413, '', { body: 'x'.repeat(70_000) }],
    ];
    for (const [expected, query, options] of cases) {
      const body = `grant_type=password&username=ada&password=${encodeURIComponent(PASSWORD)}`;
      const answer = await world.ask(`/oauth/token${query}`, { method: 'POST', headers: FORM, body, ...options });
      expect([query, options.body, answer.status]).toEqual([query, options.body, expected]);
    }
    expect((await world.ask('/oauth/token')).status).toBe(405);
    expect(world.binds).toEqual(['core ada']);
  });

  it('opens as a header and as a cookie, and binds each time', async () => {
    const bearer = await token();
    expect((await withHeader(`Bearer ${bearer}`)).status).toBe(200);
    const [one, other] = [bearer.slice(0, 100), bearer.slice(100)];
    for (const cookie of [`a=b; access_token_0=${bearer}`, `access_token_1=${other}; access_token_0=${one}`])
      expect((await world.ask(CONFIG, { headers: { cookie } })).status).toBe(200);
    expect((await world.ask(CONFIG, { headers: { cookie: `access_token_1=${bearer}` } })).status).toBe(401);
    expect(world.binds).toEqual(['core ada', 'core ada', 'core ada', 'core ada']);
  });

  it('ends with its hour, its account, its password, and when it is tampered with', async () => {
    const [hour, closed] = [await token(), await token('ada', 'code of ada')];
    const bearer = (text: string) => withHeader(`Bearer ${text}`).then((answer) => answer.status);
    const [head, , signature] = hour.split('.');
    const claims = { sub: 'wanda', aud: 'TAK', jti: crypto.randomUUID(), exp: 9e9 };
    const forged = Buffer.from(JSON.stringify(claims)).toString('base64url');
    const none = Buffer.from(JSON.stringify({ alg: 'none' })).toString('base64url');
    for (const text of [
      'x',
      `${head}.${forged}.${signature}`,
      `${none}.${forged}.`,
      hour.slice(0, -2),
      'y'.repeat(9000),
    ])
      expect(await bearer(text)).toBe(401);

    world.directory.people.get('ada')?.appPasswords.splice(0);
    expect([await bearer(closed), await bearer(hour)]).toEqual([401, 200]);
    world.directory.people.get('ada')?.appPasswords.push({ text: 'code of ada', expires: new Date(9e12) });
    expect(await bearer(closed)).toBe(401);
    world.later(3_599_000);
    expect(await bearer(hour)).toBe(200);
    world.later(1000);
    expect(await bearer(hour)).toBe(401);
  });

  it('that is refused is no failed password, and a locked address does not end it', async () => {
    const good = await token();
    for (let count = 0; count < 12; count++) await withHeader('Bearer nonsense');
    expect(await status('ada', PASSWORD)).toBe(200);
    for (let count = 0; count < 10; count++) await status('ada', 'guess');
    expect([(await withHeader(`Bearer ${good}`)).status, await status('ada', PASSWORD)]).toEqual([200, 429]);
  });

  it('is taken by whoever has the same key, and says nothing of its password', async () => {
    const now = (): Date => new Date('2026-11-22T12:00:00Z');
    const key = Buffer.alloc(32, 7);
    const { token: text } = await new Tokens(now, key).issue('ada', PASSWORD);
    const found = await new Tokens(now, Buffer.alloc(32, 7)).recognize(text);
    expect([found?.username, found?.password.reveal()]).toEqual(['ada', PASSWORD]);
    expect(await new Tokens(now, Buffer.alloc(32, 8)).recognize(text)).toBeUndefined();
    expect(await new Tokens(now).recognize(text)).toBeUndefined();
    const payload = Buffer.from(text.split('.')[1] ?? '', 'base64url').toString();
    expect(payload).toContain('"sub":"ada"');
    const { credential } = JSON.parse(payload) as { credential: string };
    expect(Buffer.from(credential, 'base64url').toString('latin1')).not.toContain(PASSWORD);
    const again = await new Tokens(now, key).issue('ada', PASSWORD);
    expect(again.token).not.toBe(text);
  });
});

describe('the rest of the API', () => {
  const admin = (authorization: string, path = '/Marti/api/certadmin/cert', options: AskOptions = {}) =>
    world.ask(path, { ...options, headers: { authorization, ...options.headers } });

  it('is for administrators with a password that opens the web base too', async () => {
    expect((await admin(basic('wanda', PASSWORD))).status).toBe(200);
    expect(world.callers).toEqual([{ username: 'wanda', by: 'password', role: 'ROLE_ADMIN' }]);
    expect(world.binds).toEqual(['core wanda', 'web wanda']);
    expect((await admin(basic('wanda', 'code of wanda'))).status).toBe(403);
    expect((await admin(ADA_SIGNS_IN)).status).toBe(403);
    expect((await admin('')).status).toBe(401);
    expect(world.callers).toHaveLength(1);
    expect((await admin(`Bearer ${await token('wanda')}`)).status).toBe(200);
    expect(world.callers.at(-1)).toEqual({ username: 'wanda', by: 'token', role: 'ROLE_ADMIN' });
    expect((await admin(`Bearer ${await token('wanda', 'code of wanda')}`)).status).toBe(403);
  });

  it('tells everybody version and own name', async () => {
    for (const path of ['version', 'version/config', 'util/user', 'util/user/roles'])
      expect((await admin(ADA_SIGNS_IN, `/Marti/api/${path}`)).status).toBe(200);
    expect(world.callers.map(({ role }) => role)).toEqual(Array.from({ length: 4 }, () => 'ROLE_ANONYMOUS'));
    const closed = [
      'version/',
      'version/info',
      'util/isAdmin',
      'util/user/%2e%2e/isAdmin',
      'util/userx',
      'tls/makeClientKeyStore',
    ];
    for (const path of closed) expect((await admin(ADA_SIGNS_IN, `/Marti/api/${path}`)).status).toBe(403);
    expect((await admin(ADA_SIGNS_IN, '/Marti/api/version', { method: 'DELETE' })).status).toBe(403);
  });
});

describe('a page of another site', () => {
  it('changes nothing', async () => {
    const url = '/Marti/api/certadmin/cert/revoke/1';
    const headers = { authorization: basic('wanda', PASSWORD) };
    const send = async (more: Record<string, string>, method = 'DELETE'): Promise<number> =>
      (await world.ask(url, { method, headers: { ...headers, ...more } })).status;
    const foreign = ['https://evil.example', 'null', 'http://cot.example.org:8446', 'https://cot.example.org', 'x'];
    for (const origin of foreign) expect([origin, await send({ origin })]).toEqual([origin, 403]);
    for (const site of ['cross-site', 'same-site', '']) expect(await send({ 'sec-fetch-site': site })).toBe(403);
    expect(world.callers).toEqual([]);
    expect((await tokenFor('ada', PASSWORD, { headers: { ...FORM, origin: 'https://evil.example' } })).status).toBe(
      403,
    );
    expect(await send({ origin: 'https://cot.example.org:8446', 'sec-fetch-site': 'same-origin' })).toBe(200);
    expect(await send({})).toBe(200);
    expect(await send({ origin: 'https://evil.example' }, 'GET')).toBe(200);
  });
});

describe('where the connection is not secure', () => {
  it('own pages have the scheme of the connection', () => {
    const from = (origin: string): boolean =>
      isFromForeignSite(new Request('http://cot.example.org/', { method: 'POST', headers: { origin } }), {
        secure: false,
      });
    expect([from('http://cot.example.org'), from('https://cot.example.org')]).toEqual([false, true]);
  });
});

describe('headers of any kind', () => {
  it('are read without an error', () => {
    const printable = fc.string({
      unit: fc.integer({ min: 0x20, max: 0xff }).map((code) => String.fromCharCode(code)),
    });
    const begun = fc.tuple(fc.constantFrom('Basic ', 'Bearer ', ''), fc.oneof(printable, fc.base64String()));
    fc.assert(
      fc.property(begun, printable, ([scheme, rest], cookie) => {
        const headers = new Headers({ cookie });
        if (scheme !== '') headers.set('authorization', scheme + rest);
        expect(['none', 'password', 'token']).toContain(credentialsOf(headers).kind);
        expect(['json', 'xml', undefined]).toContain(wantedRepresentation(rest));
      }),
      { numRuns: runs(1000) },
    );
  });
});

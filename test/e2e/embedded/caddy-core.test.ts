// No password reaches the core past the lockout, whatever spelling a client chooses; with the real
// Caddy in front of echoes.

import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ADDRESS, BAD, behindCaddy, type BehindCaddy, GOOD, issued, proxyMissing } from './behind-caddy.ts';
import { eventually } from './embedded.ts';

let proxy: BehindCaddy;

/** Both doors of the core. */
const ENDPOINTS = [
  { name: ADDRESS, enrollment: true },
  { name: `takserver.${ADDRESS}`, enrollment: false },
];

const FORM = 'grant_type=password&username=ada&password=right';
const [, WORD = ''] = BAD.split(' ');
const [, GOOD_WORD = ''] = GOOD.split(' ');

/** What is refused before anybody is asked, and what the door has judged. */
const SPELLINGS: [string, string[]][] = [
  ['wrong', [`Authorization: ${BAD}`]],
  ['in lower case', [`authorization: basic ${WORD}`]],
  ['in upper case', [`AUTHORIZATION: BASIC ${WORD}`]],
  ['behind two spaces', [`Authorization: Basic  ${WORD}`]],
  ['behind a tab', [`Authorization: Basic\t${WORD}`]],
  ['after a tab', [`Authorization:\t${BAD}`]],
  ['after spaces', [`Authorization:   ${BAD}`]],
  ['without a space', [`Authorization: Basic${WORD}`]],
  ['behind an underscore', [`Authorization: Basic_${WORD}`]],
  ['behind a comma', [`Authorization: Bearer x, ${BAD}`]],
  ['of two lines, the good one first', [`Authorization: ${GOOD}`, `Authorization: ${BAD}`]],
  ['of two lines, the good one last', [`Authorization: ${BAD}`, `authorization: ${GOOD}`]],
  ['of two lines, a token first', ['Authorization: Bearer x', `Authorization: ${BAD}`]],
  ['of two lines, nothing first', ['Authorization:', `Authorization: ${BAD}`]],
  ['of two lines, the same twice', [`Authorization: ${GOOD}`, `Authorization: ${GOOD}`]],
  ['folded', ['Authorization: Basic', ` ${WORD}`]],
  ['dropped from the question by Connection', [`Authorization: ${BAD}`, 'Connection: Authorization']],
  ['with a second user behind it', [`Authorization: Basic ${GOOD_WORD} ${WORD}`]],
  ['of another scheme', [`Authorization: Digest username="ada"`]],
  ['of nothing', ['Authorization:']],
  ['of the scheme alone', ['Authorization: Basic']],
];

/** Addresses that a core could read as its token end point. */
const LIKE_TOKEN = [
  '/oauth/token/',
  '/OAuth/Token',
  '/oauth/TOKEN',
  '//oauth/token',
  '/oauth//token',
  '/oauth/./token',
  '/x/../oauth/token',
  '/oauth/x/../token',
  '/oauth;x/token',
  '/oauth/token;x',
  '/oauth/token;jsessionid=1',
  '/;/oauth/token',
  '/%2e/oauth/token',
  '/oauth/token%2f',
  '/oauth/token%00',
  '/oauth/token%20',
  '/oauth/token.',
  '/oauth/token.json',
  '/%256fauth/token',
  '/oauth%252ftoken',
  '/oauth\\token',
  '/%5coauth/token',
  '/oauth/token%0d%0a',
  '/oauth%u002ftoken',
];

describe.skipIf(proxyMissing !== undefined)(proxyMissing ?? 'the core behind the proxy', () => {
  beforeAll(async () => {
    proxy = await behindCaddy();
    await issued(proxy);
  });
  afterAll(() => proxy?.end());

  const arrivedAtCore = (): number => proxy.core.arrived.length;

  for (const [how, headers] of SPELLINGS)
    it(`does not hear of a password ${how}`, async () => {
      for (const endpoint of ENDPOINTS) {
        const before = arrivedAtCore();
        const { status } = await proxy.ask({
          ...endpoint,
          headers,
          line: 'POST /Marti/api/tls/signClient/v2',
          body: 'x',
        });
        expect([400, 401]).toContain(status);
        expect(arrivedAtCore()).toBe(before);
      }
    });

  it('hears a password that the door has let in, and a token, which it judges itself', async () => {
    for (const entry of ENDPOINTS)
      for (const authorization of [GOOD, 'Bearer abc.def-ghi_jkl=']) {
        const questions = proxy.management.arrived.length;
        expect((await proxy.ask({ ...entry, headers: [`Authorization: ${authorization}`] })).status).toBe(200);
        expect(proxy.core.arrived.at(-1)?.headers).toContainEqual(['authorization', authorization]);
        expect(proxy.management.arrived.slice(questions).map(({ url }) => url)).toEqual(['/auth/verify?base=core']);
      }
  });

  it('is asked directly by whoever brings no Authorization', async () => {
    for (const door of ENDPOINTS) {
      const questions = proxy.management.arrived.length;
      const answer = await proxy.ask({ ...door, headers: ['Cookie: JSESSIONID=1'], line: 'GET /Marti/api/version' });
      expect([answer.status, proxy.management.arrived.length]).toEqual([200, questions]);
    }
  });

  it('leaves its token end point to management, with method, query and body', async () => {
    for (const door of ENDPOINTS)
      for (const [line, body] of [
        ['POST /oauth/token', FORM],
        [`POST /oauth/token?${FORM}`, ''],
        ['GET /oauth/token', ''],
        [`POST /oauth/token?${FORM}`, FORM],
        [`POST /%6fauth/token?${FORM}`, ''],
        [`POST /oauth%2ftoken?${FORM}`, ''],
      ] as const) {
        const before = arrivedAtCore();
        const headers = [`Authorization: ${BAD}`, 'Content-Type: application/x-www-form-urlencoded'];
        await proxy.ask({ ...door, line, headers, body });
        expect(arrivedAtCore()).toBe(before);
        const [method, url] = line.split(' ');
        expect(proxy.management.arrived.at(-1)).toMatchObject({ method, url, body });
      }
  });

  for (const path of LIKE_TOKEN)
    it(`never hears of ${path}`, async () => {
      for (const door of ENDPOINTS)
        for (const method of ['POST', 'GET']) {
          const before = arrivedAtCore();
          const { status } = await proxy.ask({ ...door, line: `${method} ${path}?${FORM}`, body: FORM });
          expect([400, 404]).toContain(status);
          expect(arrivedAtCore()).toBe(before);
        }
    });

  it('hears of its other addresses as they were written', async () => {
    for (const path of [
      '/Marti/api/tls/config',
      '/Marti/api/missions/a%20b?x=%2f',
      '/',
      '/login/redirect?to=/oauth/token',
    ]) {
      const { status } = await proxy.ask({ name: `takserver.${ADDRESS}`, line: `GET ${path}` });
      expect([status, proxy.core.arrived.at(-1)?.url]).toEqual([200, path]);
    }
  });

  it('is held to the CA that its last certificate came with, without a restart of the proxy', async () => {
    const file = (name: string): string => join(proxy.caddy.certificates, name);
    const own = readFileSync(file('ca.pem'), 'utf8');
    const status = async (): Promise<number> => (await proxy.ask({ enrollment: true })).status;
    const renewed = (serial: number, ca: string): void => {
      writeFileSync(file('ca.pem'), ca);
      writeFileSync(file('tls.caddy'), `tls /certificate/server-${serial}.pem /certificate/server-${serial}.key\n`);
    };
    const pid = proxy.caddy.pid();
    expect(await status()).toBe(200);
    renewed(2, proxy.ca);
    await eventually('the other CA', async () => (await status()) === 502, 15_000);
    renewed(3, own);
    await eventually('its own CA', async () => (await status()) === 200, 15_000);
    expect(proxy.caddy.pid()).toBe(pid);
  });
});

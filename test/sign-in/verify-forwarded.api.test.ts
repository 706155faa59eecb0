// Requests that a proxy asks about at /auth/verify, caused by pages of the same site and of others.

import { describe, expect, it } from 'vitest';
import { createApp } from '../../functions/app.ts';
import { withQuickAnswers } from '../../functions/quick-answers.ts';
import { ADMIN, fakeDeps, PASSWORD } from '../http/fake-deps.ts';

const deps = fakeDeps();
const app = createApp(deps);
const quick = withQuickAnswers(app.fetch, deps);
const HOST = 'nodered.cot.example.org';
const OURS = { origin: `https://${HOST}` };
const FOREIGN: [string, Record<string, string>][] = [
  ['another origin', { origin: 'https://evil.example' }],
  ['the same name in plain HTTP', { origin: `http://${HOST}` }],
  ['another port', { origin: `https://${HOST}:8443` }],
  ['an origin that is hidden', { origin: 'null' }],
  ['a cross-site page', { 'sec-fetch-site': 'cross-site' }],
  ['another host of the stack', { 'sec-fetch-site': 'same-site', ...OURS }],
];

/** By the normal way and by the short cut, which must agree. */
async function status(query: string, headers: Record<string, string>): Promise<number> {
  const bindings = { requestId: 'request-1', clientAddress: '192.0.2.7', secure: true };
  const sent = { ...ADMIN, 'x-forwarded-host': HOST, ...headers };
  const url = `http://management:8080/auth/verify${query}`;
  await quick(new Request(url, { headers: ADMIN }), bindings);
  const one = await app.fetch(new Request(url, { headers: sent }), bindings);
  const other = await quick(new Request(url, { headers: sent }), bindings);
  expect(one.status).toBe(other.status);
  return one.status;
}

describe.each(['', '?role=admin', '?base=core'])('/auth/verify%s', (query) => {
  it.each(FOREIGN)('refuses what may change something, caused by %s', async (_, headers) => {
    for (const method of ['POST', 'PUT', 'DELETE', 'PATCH', 'CONNECT', 'post', ''])
      expect([method, await status(query, { 'x-forwarded-method': method, ...headers })]).toEqual([method, 403]);
  });

  it.each(FOREIGN)('refuses a WebSocket of %s, and lets its links and pictures through', async (_, headers) => {
    const socket = { upgrade: 'websocket', 'sec-websocket-key': 'x' };
    expect(await status(query, { 'x-forwarded-method': 'GET', ...socket, ...headers })).toBe(403);
    for (const method of ['GET', 'HEAD', 'OPTIONS'])
      expect(await status(query, { 'x-forwarded-method': method, ...headers })).toBe(200);
  });

  it('lets through what pages of its own send, and what is no browser', async () => {
    for (const headers of [{}, OURS, { 'sec-fetch-site': 'same-origin' }, { 'sec-fetch-site': 'none' }]) {
      expect(await status(query, { 'x-forwarded-method': 'POST', ...headers })).toBe(200);
      expect(await status(query, { 'sec-websocket-key': 'x', ...headers })).toBe(200);
    }
  });

  it('refuses any origin where the host makes no sense', async () => {
    for (const host of ['', 'a b', '/'])
      expect(await status(query, { 'x-forwarded-method': 'POST', 'x-forwarded-host': host, ...OURS })).toBe(403);
  });
});

it('refuses before it looks who asks: a foreign page brings up no dialogue and counts no failure', async () => {
  const authorization = `Basic ${btoa(`webadmin:${PASSWORD}x`)}`;
  const headers = { 'x-forwarded-method': 'POST', origin: 'https://evil.example', authorization };
  for (let attempt = 0; attempt < 11; attempt++) expect(await status('', headers)).toBe(403);
  expect(await status('', { 'x-forwarded-method': 'POST' })).toBe(200);
});

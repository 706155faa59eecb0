import { beforeEach, describe, expect, it } from 'vitest';
import { AppError } from '@holdfast/kit/app-error';
import { createApp } from '../../functions/app.ts';
import type { CoreTokenOrder } from '../../shared/core/devices/port.ts';
import { type FakeDeps, fakeDeps, NOBODY, PASSWORD } from '../http/fake-deps.ts';

const HERE = '192.0.2.7';
const NORA = { grant_type: 'password', username: 'nora', password: PASSWORD };
let deps: FakeDeps;
let orders: CoreTokenOrder[];

beforeEach(() => {
  deps = fakeDeps();
  orders = [];
  deps.coreEnrollment.token = async (order) => {
    orders.push(order);
    return {
      status: 200,
      json: '{"access_token":"a.b.c"}',
      cookies: ['access_token_0=a.b; Path=/', 'access_token_1=.c; Path=/'],
    };
  };
});

type Form = Record<string, string> | [string, string][] | Uint8Array<ArrayBuffer> | string;

async function ask(form: Form, { query = '', headers = {}, from = HERE } = {}): Promise<Response> {
  const isWritten = typeof form === 'string' || form instanceof Uint8Array;
  const body = isWritten ? form : new URLSearchParams(form).toString();
  const type = { 'content-type': 'application/x-www-form-urlencoded', ...headers };
  const init = { method: 'POST', ...(body === '' ? { headers } : { body, headers: type }) };
  return createApp(deps).request(`/oauth/token${query}`, init, {
    requestId: 'request-1',
    clientAddress: from,
    secure: true,
  });
}

/** Status, and what is called wrong. */
async function refusal(answer: Response | Promise<Response>): Promise<[number, unknown]> {
  const { status, headers } = await answer;
  expect([headers.get('content-type'), headers.get('cache-control')]).toEqual(['application/json', 'no-store']);
  const reported = (await (await answer).json()) as Record<string, unknown>;
  expect(Object.keys(reported)).toEqual(['error', 'error_description']);
  return [status, reported['error']];
}

describe('POST /oauth/token', () => {
  it('checks the password and then passes the request on, and the answer back', async () => {
    const answer = await ask({ ...NORA, scope: 'a b' });
    expect([answer.status, await answer.text(), answer.headers.getSetCookie()]).toEqual([
      200,
      '{"access_token":"a.b.c"}',
      ['access_token_0=a.b; Path=/', 'access_token_1=.c; Path=/'],
    ]);
    expect(answer.headers.get('cache-control')).toBe('no-store');
    expect(orders).toEqual([{ username: 'nora', password: PASSWORD, further: [['scope', 'a b']] }]);
  });

  it('takes the fields from the address, and from address and body together', async () => {
    const { grant_type, username, password } = NORA;
    expect((await ask('', { query: `?${new URLSearchParams(NORA).toString()}` })).status).toBe(200);
    const query = `?${new URLSearchParams({ grant_type, username }).toString()}`;
    expect((await ask({ password }, { query })).status).toBe(200);
    expect(orders).toHaveLength(2);
  });

  it('takes an app password, as the core does', async () => {
    deps.directory.people.get('nora')?.appPasswords.push({ text: 'code', expires: new Date('2100-01-01') });
    expect((await ask({ ...NORA, password: 'code' })).status).toBe(200);
  });

  it('never shows a wrong password to the core: ten are 401, the eleventh and the right one 429 with Retry-After', async () => {
    for (let guess = 0; guess < 10; guess++)
      expect(await refusal(ask({ ...NORA, password: `guess ${guess}` }))).toEqual([401, 'invalid_grant']);
    for (const password of ['guess', PASSWORD]) {
      const answer = await ask({ ...NORA, password });
      expect(Number(answer.headers.get('retry-after'))).toBeGreaterThan(14 * 60);
      expect(await refusal(answer)).toEqual([429, 'temporarily_unavailable']);
    }
    expect(orders).toEqual([]);
    const verify = { headers: NOBODY };
    const bindings = { requestId: 'r', clientAddress: HERE, secure: true };
    expect((await createApp(deps).request('/auth/verify', verify, bindings)).status).toBe(429);
    expect((await ask(NORA, { from: '192.0.2.8' })).status).toBe(200);
  });

  it('counts no failure while the directory does not answer, nor when the core refuses what the directory accepts', async () => {
    const signIn = deps.directory.signIn.bind(deps.directory);
    deps.directory.signIn = () => Promise.reject(new AppError('unavailable', 'The directory does not answer.'));
    for (let attempt = 0; attempt < 11; attempt++)
      expect(await refusal(ask(NORA))).toEqual([503, 'temporarily_unavailable']);
    deps.directory.signIn = signIn;
    deps.coreEnrollment.token = async () => ({ status: 401, json: '{"error":"x"}', cookies: [] });
    for (let attempt = 0; attempt < 11; attempt++) {
      const answer = await ask(NORA);
      expect([answer.status, await answer.text(), answer.headers.get('set-cookie')]).toEqual([
        401,
        '{"error":"x"}',
        null,
      ]);
    }
    expect(await deps.authenticator.lockouts()).toEqual([]);
  });

  it.each([
    ['unavailable', 503, 'temporarily_unavailable'],
    ['upstream', 502, 'server_error'],
  ] as const)('says so when the core is %s', async (code, status, error) => {
    deps.coreEnrollment.token = () => Promise.reject(new AppError(code, 'The core.'));
    expect(await refusal(ask(NORA))).toEqual([status, error]);
  });

  it.each([
    ['nothing', {}],
    ['no grant', { username: 'nora', password: PASSWORD }],
    ['no name', { grant_type: 'password', password: PASSWORD }],
    ['two names', [...Object.entries(NORA), ['username', 'vera']] as [string, string][]],
    ['what is no UTF-8', new Uint8Array([0x61, 0x3d, 0xff])],
  ])('is 400 to %s, and counts nothing', async (_, form) => {
    expect(await refusal(ask(form))).toEqual([400, 'invalid_request']);
    expect(orders).toEqual([]);
  });

  it('is 400 to a name in the body and another in the address', async () => {
    expect(await refusal(ask(NORA, { query: '?username=vera' }))).toEqual([400, 'invalid_request']);
  });

  it('is 400 to another grant, 413 to more than 64 KB, 415 to another type, 403 to a page of another site', async () => {
    expect(await refusal(ask({ ...NORA, grant_type: 'refresh_token' }))).toEqual([400, 'unsupported_grant_type']);
    expect(await refusal(ask({ ...NORA, x: 'x'.repeat(65_536) }))).toEqual([413, 'invalid_request']);
    expect(await refusal(ask(NORA, { headers: { 'content-type': 'text/plain' } }))).toEqual([415, 'invalid_request']);
    expect(await refusal(ask(NORA, { headers: { origin: 'https://evil.example' } }))).toEqual([403, 'invalid_request']);
    expect(orders).toEqual([]);
  });

  it('audits a wrong password by the name alone', async () => {
    await ask({ ...NORA, password: 'a guess that nobody may read' });
    const { records } = deps.audit;
    expect(records.map(({ action, target, result }) => [action, target, result])).toEqual([
      ['sign-in', 'nora', 'denied'],
    ]);
    expect(JSON.stringify(records)).not.toContain('a guess that');
  });
});

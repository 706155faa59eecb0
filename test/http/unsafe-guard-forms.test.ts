// The guard of pages: the same as that of the API, for forms.

import { OpenAPIHono } from '@hono/zod-openapi';
import { describe, expect, it } from 'vitest';
import type { AppEnv } from '../../shared/http/context.ts';
import { MAX_BODY_BYTES, csrfGuard } from '../../shared/http/csrf-guard.ts';
import { onError } from '../../shared/http/problem.ts';
import { fakeAudit } from '../audit/fake-audit.ts';
import { memoryLog } from './fake-deps.ts';

const FORM = 'application/x-www-form-urlencoded';
const app = new OpenAPIHono<AppEnv>();
app.onError(onError(memoryLog(), fakeAudit()));
app.use('/sign-in', csrfGuard('form'));
app.post('/sign-in', async (c) => c.json(await c.req.parseBody()));
app.get('/sign-in', (c) => c.text('the page'));

async function post(
  headers: Record<string, string>,
  body: string | null = 'username=a&password=b+c%26d',
): Promise<Response> {
  const request = new Request('http://cot.example.org/sign-in', { method: 'POST', headers, body });
  return app.fetch(request, { requestId: 'request-1', clientAddress: '192.0.2.7', secure: false });
}

describe('a page that takes forms', () => {
  it.each([FORM, `${FORM}; charset=UTF-8`, 'Application/X-WWW-Form-Urlencoded'])('takes %s', async (type) => {
    const response = await post({ 'content-type': type, origin: 'http://cot.example.org' });
    expect([response.status, await response.json()]).toEqual([200, { username: 'a', password: 'b c&d' }]);
  });

  it.each(['application/json', 'text/plain', 'multipart/form-data; boundary=x', ''])(
    'refuses "%s" with 415 and says what it takes',
    async (type) => {
      const response = await post({ 'content-type': type });
      expect([response.status, await response.json()]).toEqual([
        415,
        expect.objectContaining({ code: 'media_type', detail: `The request body must be ${FORM}.` }),
      ]);
    },
  );

  it.each([{ origin: 'https://evil.org' }, { origin: 'null' }, { 'sec-fetch-site': 'cross-site' }])(
    'refuses a form of another site: %j',
    async (headers) => expect((await post({ 'content-type': FORM, ...headers })).status).toBe(403),
  );

  it('refuses more than 1 MB', async () =>
    expect((await post({ 'content-type': FORM }, 'x'.repeat(MAX_BODY_BYTES + 1))).status).toBe(413));

  it('needs no type where nothing is sent, and asks who only reads for nothing', async () => {
    expect((await post({}, null)).status).toBe(200);
    const read = new Request('http://cot.example.org/sign-in', { headers: { origin: 'https://evil.org' } });
    expect((await app.fetch(read, { requestId: '1', clientAddress: '', secure: false })).status).toBe(200);
  });
});

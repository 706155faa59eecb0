import { once } from 'node:events';
import { connect } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { z } from '@hono/zod-openapi';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createApp } from '../../functions/app.ts';
import type { App, Bindings } from '../../shared/http/context.ts';
import { MAX_BODY_BYTES } from '../../shared/http/csrf-guard.ts';
import { withRequestLog } from '../../shared/http/request-log.ts';
import { apiRoute, jsonAnswer, problemSchema } from '../../shared/http/route.ts';
import { type RunningServer, serveApp } from '../../shared/runtime/node-server.ts';
import { ADMIN, fakeDeps } from './fake-deps.ts';

const CONNECTION: Bindings = { requestId: 'request-1', clientAddress: '192.0.2.7', secure: false };
const HERE = 'http://cot.example.org:8080';
const JSON_TYPE = { 'content-type': 'application/json' };
const METHODS = ['POST', 'PUT', 'PATCH', 'DELETE'] as const;

/** The whole app with routes that answer what they were given. */
function appWithEcho(): App {
  const app = createApp(fakeDeps());
  const body = { content: { 'application/json': { schema: z.object({ text: z.string() }) } }, required: true };
  for (const method of ['post', 'put', 'patch'] as const) {
    const responses = { 200: jsonAnswer('The length', z.object({ length: z.int() })) };
    const route = apiRoute({ method, path: '/api/echo', request: { body }, responses }, { access: 'admin' });
    app.openapi(route, (c) => c.json({ length: c.req.valid('json').text.length }, 200));
  }
  app.delete('/api/echo', (c) => c.json({ length: 0 }, 200));
  app.get('/api/echo', (c) => c.json({ length: -1 }, 200));
  return app;
}

const app = appWithEcho();

interface Requested {
  method?: string;
  headers?: Record<string, string>;
  body?: string | ReadableStream<Uint8Array> | null;
  signedIn?: boolean;
  secure?: boolean;
  at?: string;
}

async function ask(query: Requested): Promise<[number, string]> {
  const { method = 'POST', headers = {}, body = null, signedIn = true, secure = false, at = HERE } = query;
  const request = new Request(`${at}/api/echo`, {
    method,
    headers: { ...(signedIn ? ADMIN : {}), ...headers },
    body,
    duplex: 'half',
  });
  const response = await app.fetch(request, { ...CONNECTION, secure });
  const text = await response.text();
  return [response.status, response.ok ? text : problemSchema.parse(JSON.parse(text)).code];
}

const hello = JSON.stringify({ text: 'hello' });
const sent = (headers: Record<string, string> = {}, more: Requested = {}) =>
  ask({ headers: { ...JSON_TYPE, ...headers }, body: hello, ...more });

describe('a method that may change something', () => {
  it.each(METHODS)('%s is 401 before anything else without sign-in', async (method) => {
    const headers = { origin: 'https://evil.org', 'content-type': 'text/plain' };
    expect(await ask({ method, headers, body: 'x'.repeat(MAX_BODY_BYTES + 1), signedIn: false })).toEqual([
      401,
      'unauthenticated',
    ]);
  });

  it.each(METHODS)('%s is refused from another site, whatever else it says', async (method) => {
    for (const headers of [{ origin: 'https://evil.org' }, { 'sec-fetch-site': 'cross-site' }])
      expect(await ask({ method, headers: { ...JSON_TYPE, ...headers }, body: hello })).toEqual([403, 'forbidden']);
  });

  it('is let through without the headers of a browser', async () =>
    expect(await sent()).toEqual([200, '{"length":5}']));

  it.each([
    [HERE, true],
    ['https://cot.example.org:8080', true],
    ['HTTP://COT.example.org:8080', true],
    ['http://cot.example.org', false],
    ['http://cot.example.org:8081', false],
    ['http://example.org:8080', false],
    ['http://evil.cot.example.org:8080', false],
    ['http://cot.example.org.:8080', false],
    ['http://cot.example.org:8080/', false],
    ['http://x@cot.example.org:8080', false],
    ['http://cot.example.org:8080, http://evil.org', false],
    ['ftp://cot.example.org:8080', false],
    ['cot.example.org:8080', false],
    ['null', false],
    ['', false],
    ['http://', false],
    ['http://cot.example.org:99999', false],
  ])('from the origin "%s" is let through: %s', async (origin, allowed) =>
    expect((await sent({ origin }))[0]).toBe(allowed ? 200 : 403),
  );

  it.each([
    ['http://cot.example.org', 'https://cot.example.org', false, true],
    ['http://cot.example.org', 'http://cot.example.org', false, true],
    ['http://cot.example.org:443', 'https://cot.example.org', false, true],
    ['https://cot.example.org', 'https://cot.example.org:443', true, true],
    ['https://cot.example.org', 'http://cot.example.org', true, false],
    ['http://[::1]:8080', 'http://[::1]:8080', false, true],
  ])('at %s from %s over TLS %s: %s', async (at, origin, secure, allowed) =>
    expect((await sent({ origin }, { at, secure }))[0]).toBe(allowed ? 200 : 403),
  );

  it.each([
    ['same-origin', 200],
    ['none', 200],
    ['same-site', 403],
    ['cross-site', 403],
    ['', 403],
    ['same-origin, cross-site', 403],
  ])('with Sec-Fetch-Site "%s" is %d', async (site, status) =>
    expect((await sent({ 'sec-fetch-site': site }))[0]).toBe(status),
  );
});

describe('what only reads', () => {
  it('is never asked where it comes from', async () => {
    const headers = { origin: 'https://evil.org', 'sec-fetch-site': 'cross-site' };
    expect(await ask({ method: 'GET', headers })).toEqual([200, '{"length":-1}']);
  });
});

/** A body whose length nobody knows beforehand; counts what was asked of it. */
function streamed(chunks: number, size: number): { body: ReadableStream<Uint8Array>; given: () => number } {
  let given = 0;
  const body = new ReadableStream<Uint8Array>(
    {
      pull(controller) {
        if (given === chunks) return controller.close();
        given++;
        controller.enqueue(new Uint8Array(size).fill(32));
      },
    },
    { highWaterMark: 0 },
  );
  return { body, given: () => given };
}

describe('a body', () => {
  it.each(['application/json', 'application/json; charset=utf-8', 'Application/JSON ;x=1'])('may be %s', async (type) =>
    expect((await sent({ 'content-type': type }))[0]).toBe(200),
  );

  it.each([
    'text/plain',
    'application/x-www-form-urlencoded',
    'multipart/form-data; boundary=x',
    'application/jsonp',
    'application/ld+json',
    'text/plain; application/json',
    'application/json, text/plain',
    '',
  ])('of the type "%s" is 415', async (type) =>
    expect(await sent({ 'content-type': type })).toEqual([415, 'media_type']),
  );

  it('needs no type when there is none', async () => {
    expect(await ask({ method: 'DELETE' })).toEqual([200, '{"length":0}']);
    expect(await ask({ method: 'DELETE', headers: { 'content-length': '0' }, body: '' })).toEqual([
      200,
      '{"length":0}',
    ]);
    expect(await ask({ method: 'DELETE', body: streamed(0, 1).body })).toEqual([200, '{"length":0}']);
    expect(await ask({})).toEqual([422, 'invalid']);
    expect(await ask({ headers: { 'content-type': 'text/plain' } })).toEqual([415, 'media_type']);
  });

  it('of 1 MB is taken, one byte more is 413', async () => {
    const most = JSON.stringify({ text: 'x'.repeat(MAX_BODY_BYTES - 11) });
    expect(most.length).toBe(MAX_BODY_BYTES);
    expect(await sent({}, { body: most })).toEqual([200, `{"length":${MAX_BODY_BYTES - 11}}`]);
    expect(await sent({}, { body: `${most} ` })).toEqual([413, 'too_large']);
  });

  it('is refused by its Content-Length before a byte is read', async () => {
    const { body, given } = streamed(100, 1000);
    const headers = { ...JSON_TYPE, 'content-length': String(MAX_BODY_BYTES + 1) };
    expect(await ask({ headers, body })).toEqual([413, 'too_large']);
    expect(given()).toBe(0);
  });

  it('without a length is counted while it is read, and no further', async () => {
    const { body, given } = streamed(1000, 100_000);
    expect(await ask({ headers: JSON_TYPE, body })).toEqual([413, 'too_large']);
    expect(given()).toBeLessThan(14);
  });

  it('that is longer than its Content-Length says is counted all the same', async () => {
    const { body } = streamed(1000, 100_000);
    expect(await ask({ headers: { ...JSON_TYPE, 'content-length': '10' }, body })).toEqual([413, 'too_large']);
  });

  it('that breaks off is 400, and so is a Content-Length that is no number', async () => {
    const broken = new ReadableStream<Uint8Array>({ pull: (controller) => controller.error(new Error('gone')) });
    expect(await ask({ headers: JSON_TYPE, body: broken })).toEqual([400, 'malformed']);
    expect(await sent({ 'content-length': 'many' })).toEqual([400, 'malformed']);
  });

  it.each(['{', '', 'null null', "{'text':1}"])('that is no JSON, such as "%s", is 400', async (body) =>
    expect(await ask({ headers: JSON_TYPE, body: body === '' ? ' ' : body })).toEqual([400, 'malformed']),
  );

  it.each(['null', '[]', '"text"', '{}', '{"text":1}'])('with invalid values, such as %s, is 422', async (body) =>
    expect(await ask({ headers: JSON_TYPE, body })).toEqual([422, 'invalid']),
  );
});

describe('over a socket', () => {
  const port = 29_400 + Math.floor(Math.random() * 500);
  let server: RunningServer;

  beforeAll(async () => {
    const { log, requests } = fakeDeps();
    const fetch = withRequestLog(
      (request, bindings) => app.fetch(request, bindings),
      log,
      () => 0,
      requests,
    );
    server = await serveApp(fetch, [{ address: '127.0.0.1', port }], log);
  });
  afterAll(() => server.close(0));

  /** The first answer to what is written; ends when it is there, or the server closes. */
  async function answerTo(
    head: string[],
    chunks: readonly string[] = [],
  ): Promise<{ answer: string; written: number }> {
    const socket = connect(port, '127.0.0.1');
    let answer = '';
    let written = 0;
    socket.setNoDelay(true);
    socket.on('error', () => undefined);
    socket.on('data', (data: Buffer) => (answer += data.toString()));
    const closed = once(socket, 'close').catch(() => undefined);
    await once(socket, 'connect');
    const common = [`Host: cot.example.org:${port}`, `Authorization: ${ADMIN.authorization}`];
    socket.write(`${[head[0], ...common, ...head.slice(1)].join('\r\n')}\r\n\r\n`);
    for (const chunk of chunks) {
      if (answer !== '' || socket.destroyed) break;
      socket.write(chunk);
      written += chunk.length;
      await delay(1);
    }
    const deadline = Date.now() + 3000;
    while (!/\r\n\r\n.*[}]$/s.test(answer) && Date.now() < deadline && !socket.closed) await delay(5);
    socket.destroy();
    await closed;
    return { answer, written };
  }

  const chunk = (text: string): string => `${text.length.toString(16)}\r\n${text}\r\n`;
  const CHUNKED = ['POST /api/echo HTTP/1.1', 'Content-Type: application/json', 'Transfer-Encoding: chunked'];

  it('a chunked body arrives whole', async () => {
    const { answer } = await answerTo(CHUNKED, [chunk('{"text":'), chunk('"hel'), chunk('lo"}'), '0\r\n\r\n']);
    expect(answer).toMatch(/^HTTP\/1\.1 200 .*\{"length":5\}$/s);
  });

  it('a body with a length arrives whole, for a page of our own', async () => {
    const head = ['POST /api/echo HTTP/1.1', `Content-Length: ${hello.length}`, 'Content-Type: application/json'];
    const { answer } = await answerTo([...head, `Origin: http://cot.example.org:${port}`], [hello]);
    expect(answer).toMatch(/^HTTP\/1\.1 200 /);
    const foreign = await answerTo([...head, 'Origin: http://cot.example.org'], [hello]);
    expect(foreign.answer).toMatch(/^HTTP\/1\.1 403 /);
  });

  it('an endless chunked body is refused soon after 1 MB', async () => {
    const piece = chunk('x'.repeat(50_000));
    const { answer, written } = await answerTo(
      CHUNKED,
      Array.from({ length: 1000 }, () => piece),
    );
    expect(answer).toMatch(/^HTTP\/1\.1 413 /);
    expect(written).toBeLessThan(10_000_000);
  });

  it('a large Content-Length is refused before the body is sent', async () => {
    const { answer } = await answerTo([...CHUNKED.slice(0, 2), 'Content-Length: 5000000000']);
    expect(answer).toMatch(/^HTTP\/1\.1 413 /);
  });

  it('a chunked body of another type is refused, an empty one is none, and no body needs no type', async () => {
    const plain = ['POST /api/echo HTTP/1.1', 'Content-Type: text/plain', 'Transfer-Encoding: chunked'];
    expect((await answerTo(plain, [chunk('x'), '0\r\n\r\n'])).answer).toMatch(/^HTTP\/1\.1 415 /);
    const emptied = ['DELETE /api/echo HTTP/1.1', 'Transfer-Encoding: chunked'];
    expect((await answerTo(emptied, ['0\r\n\r\n'])).answer).toMatch(/^HTTP\/1\.1 200 /);
    expect((await answerTo(['DELETE /api/echo HTTP/1.1'])).answer).toMatch(/^HTTP\/1\.1 200 /);
  });

  it.each(['POST', 'PUT', 'PATCH'])(
    '%s without a body, or with an empty one, is told what is missing',
    async (method) => {
      const bare = await answerTo([`${method} /api/echo HTTP/1.1`]);
      expect(bare.answer).toMatch(/^HTTP\/1\.1 422 .*text: is missing: provide text/s);
      const typed = await answerTo([`${method} /api/echo HTTP/1.1`, 'Content-Type: application/json']);
      expect(typed.answer).toMatch(/^HTTP\/1\.1 422 /);
      const emptied = [`${method} /api/echo HTTP/1.1`, 'Content-Type: application/json', 'Content-Length: 0'];
      expect((await answerTo(emptied)).answer).toMatch(/^HTTP\/1\.1 422 /);
    },
  );
});

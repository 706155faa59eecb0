// What Resend refuses because of one recipient reaches the others; and which refusals of a service are for good.

import { once } from 'node:events';
import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { Secret } from '@holdfast/kit/secret';
import { resendNotifier, twilioNotifier } from '../../shared/alerts/http-notifiers.ts';
import { MESSAGE } from './notifier-contract.ts';

const GOOD = ['duty@example.org', 'deputy@example.org'];
const BAD = 'gone@example.org';
const REFUSAL = { statusCode: 422, name: 'validation_error', message: 'Invalid `to` field.\nSee the docs.' };
const REFUSED = 'Resend rejected it (422): validation_error Invalid `to` field. See the docs.';

let server: Server | undefined;
afterEach(() => server?.close().closeAllConnections());

interface Request {
  to: string[];
  key: string | undefined;
}

/** A Resend that answers so, and what it was asked. */
async function resend(
  answer: (query: Request, count: number) => [number, unknown, Record<string, string>?] | undefined,
) {
  const requests: Request[] = [];
  server = createServer((request, response: ServerResponse) => {
    void request.toArray().then((chunks: Buffer[]) => {
      const { to } = JSON.parse(Buffer.concat(chunks).toString()) as { to: string[] };
      const call = { to, key: String(request.headers['idempotency-key']) };
      requests.push(call);
      const [status, body, headers = {}] = answer(call, requests.length) ?? [];
      if (status !== undefined) response.writeHead(status, headers).end(JSON.stringify(body));
    });
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const notifier = resendNotifier({ apiKey: new Secret('k'), from: 'a@example.org', baseUrl, fetch, withinMs: 700 });
  return { calls: requests, send: (to: string[]) => notifier.send(MESSAGE, to) };
}

const refusesBad = ({ to }: Request): [number, unknown] => (to.includes(BAD) ? [422, REFUSAL] : [200, { id: 'm1' }]);

describe('a mail that Resend refuses because of one recipient', () => {
  it('reaches the others, and that one is refused for good', async () => {
    const { calls: requests, send } = await resend(refusesBad);
    const to = [GOOD[0] ?? '', BAD, GOOD[1] ?? ''];
    expect(await send(to)).toEqual([
      { recipient: GOOD[0], accepted: true, detail: 'Resend accepted it: m1' },
      { recipient: BAD, accepted: false, detail: REFUSED, permanent: true },
      { recipient: GOOD[1], accepted: true, detail: 'Resend accepted it: m1' },
    ]);
    expect(requests.map((call) => call.to)).toEqual([to, ...to.map((recipient) => [recipient])]);
    expect(new Set(requests.map(({ key }) => key)).size).toBe(4);
    await send(to);
    expect(requests.slice(4).map(({ key }) => key)).toEqual(requests.slice(0, 4).map(({ key }) => key));
  });

  it('is not asked about twice when there is only that one', async () => {
    const { calls: asks, send } = await resend(refusesBad);
    expect(await send([BAD])).toMatchObject([{ accepted: false, detail: REFUSED, permanent: true }]);
    expect(asks).toHaveLength(1);
  });

  it('waits when Resend asks for a pause in between', async () => {
    const { calls: requested, send } = await resend((call, count) =>
      count === 3 ? [429, {}, { 'retry-after': '0' }] : refusesBad(call),
    );
    expect(await send([BAD, ...GOOD])).toMatchObject([{ accepted: false }, { accepted: true }, { accepted: true }]);
    expect(requested).toHaveLength(5);
  });

  it.each([401, 429, 500])('is not asked about for those who are left after %d', async (status) => {
    const { calls, send } = await resend((_, count) => (count === 1 ? [422, REFUSAL] : [status, {}]));
    const outcomes = await send([BAD, ...GOOD]);
    expect(outcomes.map(({ detail }) => detail)).toEqual(
      outcomes.map(() => expect.stringContaining(`(${status})`) as string),
    );
    expect(calls).toHaveLength(2);
  });

  it('ends in time when Resend hangs in between', async () => {
    const { calls, send } = await resend((_, count) => (count === 1 ? [422, REFUSAL] : undefined));
    const outcomes = await send([BAD, ...GOOD]);
    expect(outcomes).toEqual(
      [BAD, ...GOOD].map((recipient) => ({
        recipient,
        accepted: false,
        detail: expect.stringMatching(/did not answer within 0\.\d s$/),
      })),
    );
    expect(calls).toHaveLength(2);
  });

  it.each([401, 408, 409, 429, 500, 503, 302])('is not asked about one by one after %d', async (status) => {
    const { calls, send } = await resend(() => [status, {}]);
    await send(GOOD);
    expect(calls).toHaveLength(1);
  });
});

describe('a refusal', () => {
  it.each([
    [400, true],
    [401, true],
    [403, true],
    [404, true],
    [422, true],
    [402, undefined],
    [408, undefined],
    [409, undefined],
    [429, undefined],
    [500, undefined],
    [503, undefined],
    [200, undefined],
  ])('with %d is for good: %s', async (status, permanent) => {
    const { send } = await resend(() => [status, {}]);
    expect((await send([BAD]))[0]?.permanent).toBe(permanent);
    const answering = async (): Promise<Response> => Response.json({ code: 21211 }, { status });
    const twilio = twilioNotifier({
      accountSid: 'AC1',
      authToken: new Secret('k'),
      from: '+15557654321',
      fetch: answering,
    });
    expect((await twilio.send(MESSAGE, ['+15551234567']))[0]?.permanent).toBe(permanent);
  });

  it('is not for good when nobody answered', async () => {
    const notifier = resendNotifier({
      apiKey: new Secret('k'),
      from: 'a@example.org',
      fetch: () => Promise.reject(new Error('gone')),
    });
    expect((await notifier.send(MESSAGE, GOOD)).map(({ permanent }) => permanent)).toEqual([undefined, undefined]);
  });
});

// Email by Resend and SMS by Twilio and Brevo, against servers good and bad.

import { once } from 'node:events';
import {
  createServer,
  type IncomingHttpHeaders,
  type RequestListener,
  type Server,
  type ServerResponse,
} from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { Secret } from '@holdfast/kit/secret';
import { brevoNotifier, resendNotifier, twilioNotifier } from '../../shared/alerts/http-notifiers.ts';
import type { Notifier } from '../../shared/alerts/port.ts';
import { type Case, MESSAGE, notifierContract } from './notifier-contract.ts';

const KEY = 'k3y-that-nobody-sees';
const MAILS = ['duty@example.org', 'deputy@example.org'];
const NUMBERS = ['+15551234567', '+4915112345678'];

interface Made {
  notifier: Notifier;
  to: string[];
}

const SERVICES: Record<string, (baseUrl: string, fetch?: typeof globalThis.fetch) => Made> = {
  Resend: (baseUrl, fetch = globalThis.fetch) => ({
    notifier: resendNotifier({ apiKey: new Secret(KEY), from: 'a@example.org', baseUrl, fetch, withinMs: 400 }),
    to: MAILS,
  }),
  Twilio: (baseUrl, fetch = globalThis.fetch) => {
    const account = { accountSid: 'AC1', authToken: new Secret(KEY), from: '+15557654321' };
    return { notifier: twilioNotifier({ ...account, baseUrl, fetch, withinMs: 400 }), to: NUMBERS };
  },
  Brevo: (baseUrl, fetch = globalThis.fetch) => ({
    notifier: brevoNotifier({ apiKey: new Secret(KEY), baseUrl, fetch, withinMs: 400 }),
    to: NUMBERS,
  }),
};
const NAMES = Object.keys(SERVICES);

interface Request {
  path: string | undefined;
  headers: IncomingHttpHeaders;
  body: string;
}

const servers: Server[] = [];
afterEach(() => {
  for (const server of servers.splice(0)) server.close().closeAllConnections();
});

async function serving(listener: RequestListener): Promise<string> {
  const server = createServer(listener);
  servers.push(server);
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** A server that answers each call so, and what it was asked. */
async function answering(answer: (response: ServerResponse, request: Request) => void) {
  const requests: Request[] = [];
  const url = await serving(({ url: path, headers }, response) => {
    void response.req.toArray().then((chunks: Buffer[]) => {
      const call = { path, headers, body: Buffer.concat(chunks).toString() };
      requests.push(call);
      answer(response, call);
    });
  });
  return { url, asked: requests };
}

const json = (status: number, body: unknown, headers: Record<string, string> = {}) => {
  return (response: ServerResponse): unknown =>
    response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body));
};

const send = (name: string, url: string) => {
  const { notifier, to } = SERVICES[name]!(url);
  return notifier.send(MESSAGE, to);
};

describe('Resend', () => {
  it('is asked once for all recipients', async () => {
    const { url, asked: requests } = await answering(json(200, { id: '49a3999c' }));
    expect(await send('Resend', url)).toEqual(
      MAILS.map((recipient) => ({ recipient, accepted: true, detail: 'Resend accepted it: 49a3999c' })),
    );
    expect(requests).toMatchObject([
      { path: '/emails', headers: { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' } },
    ]);
    expect(JSON.parse(requests[0]?.body ?? '')).toEqual({
      from: 'a@example.org',
      to: MAILS,
      subject: MESSAGE.subject,
      text: MESSAGE.text,
      html: MESSAGE.html,
      headers: { 'Auto-Submitted': 'auto-generated', 'X-Auto-Response-Suppress': 'All' },
    });
  });

  it('sees the same key for the same mail, and another for other recipients or another text', async () => {
    const { url, asked: asks } = await answering(json(200, { id: '1' }));
    const { notifier } = SERVICES['Resend']!(url);
    await notifier.send(MESSAGE, MAILS);
    await notifier.send(MESSAGE, MAILS);
    await notifier.send(MESSAGE, MAILS.slice(1));
    await notifier.send({ ...MESSAGE, text: 'other' }, MAILS);
    await notifier.send({ ...MESSAGE, id: `x\r\n${'y'.repeat(300)}` }, MAILS);
    const keys = asks.map(({ headers }) => headers['idempotency-key']);
    expect(keys).toHaveLength(5);
    expect(new Set(keys).size).toBe(4);
    expect(keys[0]).toBe(keys[1]);
    expect(keys[0]).toMatch(/^alert-7f3a\/[0-9a-f]{24}$/);
    expect(String(keys[4]).length).toBeLessThanOrEqual(256);
  });

  it('cannot be given a key that no header carries, and that key is not shown', async () => {
    for (const key of ['k\u2713y-secret', 'line\nbreak-y-secret']) {
      const notifier = resendNotifier({ apiKey: new Secret(key), from: 'a@example.org', fetch });
      const [outcome] = await notifier.send(MESSAGE, MAILS);
      expect(outcome).toMatchObject({
        accepted: false,
        detail: expect.stringMatching(/^api\.resend\.com cannot be talked to: /),
      });
      expect(outcome?.detail).not.toContain('y-secret');
    }
  });
});

describe('Twilio', () => {
  it('is asked for each recipient, and answers for each', async () => {
    const { url, asked: requests } = await answering((response, { body }) =>
      new URLSearchParams(body).get('To') === NUMBERS[0]
        ? json(201, { sid: 'SM123', status: 'queued' })(response)
        : json(400, { code: 21211, message: "Invalid 'To' Phone Number", status: 400 })(response),
    );
    expect(await send('Twilio', url)).toMatchObject([
      { recipient: NUMBERS[0], accepted: true, detail: 'Twilio accepted it: SM123' },
      { recipient: NUMBERS[1], accepted: false, detail: "Twilio rejected it (400): 21211 Invalid 'To' Phone Number" },
    ]);
    const authorization = `Basic ${Buffer.from(`AC1:${KEY}`).toString('base64')}`;
    for (const { path, headers, body } of requests) {
      expect(path).toBe('/2010-04-01/Accounts/AC1/Messages.json');
      expect(headers).toMatchObject({ authorization, 'content-type': 'application/x-www-form-urlencoded' });
      const form = Object.fromEntries(new URLSearchParams(body));
      expect(form).toEqual({ To: expect.stringMatching(/^\+/), From: '+15557654321', Body: MESSAGE.brief });
    }
    expect(requests).toHaveLength(2);
  });
});

describe('Brevo', () => {
  it('is asked for each recipient, with the number as it wants it', async () => {
    const { url, asked: requests } = await answering(json(201, { messageId: 1511882900176220 }));
    expect(await send('Brevo', url)).toEqual(
      NUMBERS.map((recipient) => ({ recipient, accepted: true, detail: 'Brevo accepted it: 1511882900176220' })),
    );
    expect(requests.map(({ path, headers }) => [path, headers['api-key']])).toEqual(
      NUMBERS.map(() => ['/v3/transactionalSMS/send', KEY]),
    );
    expect(requests.map(({ body }) => JSON.parse(body) as unknown)).toEqual(
      expect.arrayContaining(
        NUMBERS.map((number) => ({
          sender: 'Holdfast',
          recipient: number.slice(1),
          content: MESSAGE.brief,
          type: 'transactional',
          unicodeEnabled: false,
        })),
      ),
    );
  });

  it('says why it refuses', async () => {
    const { url } = await answering(json(402, { code: 'not_enough_credits', message: 'SMS credits used up' }));
    expect(await send('Brevo', url)).toMatchObject([
      { accepted: false, detail: 'Brevo rejected it (402): not_enough_credits SMS credits used up' },
      { accepted: false },
    ]);
  });
});

describe.each(NAMES)('%s', (name) => {
  const words = async (answer: (response: ServerResponse) => unknown) => {
    const outcomes = await send(name, (await answering(answer)).url);
    expect(outcomes.map(({ accepted }) => accepted)).toEqual([false, false]);
    expect(outcomes[0]?.detail).toBe(outcomes[1]?.detail);
    return outcomes[0];
  };

  it('names the credential that it does not accept', async () => {
    const outcome = await words(json(401, { code: 20003, message: `Key ${KEY} is not valid` }));
    expect(outcome?.detail).toMatch(
      /^\w+ rejected the (API key|account SID and token) \(401\): .*Key \*\*\* is not valid$/,
    );
  });

  it('may ask for a pause, in seconds, as a date, or without saying how long', async () => {
    const until = { 'retry-after': 'Wed, 04 Mar 2026 05:08:07 GMT', date: 'Wed, 04 Mar 2026 05:06:07 GMT' };
    const past = { 'retry-after': 'Wed, 04 Mar 2020 05:08:07 GMT' };
    const cases: [Record<string, string>, number | undefined][] = [
      [{ 'retry-after': '30' }, 30],
      [until, 120],
      [past, 0],
      [{}, undefined],
      [{ 'retry-after': 'soon' }, undefined],
    ];
    for (const [headers, seconds] of cases) {
      const outcome = await words(json(429, { message: 'Too many' }, headers));
      expect(outcome?.detail).toBe(`${name} is rate limiting (429): Too many`);
      expect(outcome?.retryAfterSeconds).toBe(seconds);
    }
    const down = await words(json(503, {}, { 'retry-after': '7' }));
    expect(down).toMatchObject({ detail: `${name} has an internal error (503)`, retryAfterSeconds: 7 });
  });

  it('is not believed when it answers with a page, another shape, or without end', async () => {
    const page = (response: ServerResponse): unknown => response.end('<html>sign in to this network</html>');
    const endless = (response: ServerResponse): void => {
      const more = (): void => {
        if (!response.destroyed) setTimeout(more, response.write('[1,'.repeat(50_000)) ? 0 : 20);
      };
      more();
    };
    for (const answer of [page, json(200, ['x']), json(200, { id: 7, sid: 7, messageId: {} }), endless])
      expect((await words(answer))?.detail).toBe(`${name} answered 200 without a message id`);
    const broken = await words((response) => response.writeHead(500).end('\u0000{'));
    expect(broken?.detail).toBe(`${name} has an internal error (500)`);
  });

  it('is not followed elsewhere', async () => {
    const elsewhere = await answering(json(201, { id: 'x', sid: 'x', messageId: 1 }));
    for (const status of [301, 302, 307, 308]) {
      const outcome = await words((response) => response.writeHead(status, { location: elsewhere.url }).end());
      expect(outcome?.detail).toBe(`${name} answered ${status}, a redirect, which is not followed`);
    }
    expect(elsewhere.asked).toEqual([]);
  });

  it('is given up when it hangs, before or within its answer, and whatever the platform makes of it', async () => {
    let closed = 0;
    const hang = (response: ServerResponse): unknown => response.on('close', () => closed++);
    const stall = (response: ServerResponse): unknown =>
      hang(response.writeHead(200).on('close', () => {})) && response.write('{');
    for (const answer of [hang, stall])
      expect((await words(answer))?.detail).toMatch(/^127\.0\.0\.1:\d+ did not answer within 0\.4 s$/);
    await expect.poll(() => closed).toBe(name === 'Resend' ? 2 : 4);
    const { notifier, to } = SERVICES[name]!('http://service.example.org', () => new Promise(() => {}));
    expect((await notifier.send(MESSAGE, to))[0]?.detail).toBe('service.example.org did not answer within 0.4 s');
  });

  it('is not there, or closes the connection', async () => {
    const gone = await send(name, 'http://127.0.0.1:1');
    expect(gone[0]?.detail).toMatch(/^127\.0\.0\.1:1 (refused the connection|cannot be talked to: bad port)$/);
    const url = await serving((request) => request.socket.destroy());
    expect((await send(name, url))[0]?.detail).toMatch(/^127\.0\.0\.1:\d+ closed the connection$/);
  });

  const at = async (answer: (response: ServerResponse) => unknown): Promise<Case> => {
    const { notifier, to } = SERVICES[name]!((await answering(answer)).url);
    return { notifier, recipients: [...to, 'x', to[0]!], secrets: [KEY, Buffer.from(`AC1:${KEY}`).toString('base64')] };
  };
  const echo = (status: number) => (response: ServerResponse) => {
    const words = `${JSON.stringify(response.req.headers)} ${KEY}`;
    return json(status, { id: words, sid: words, messageId: words, code: words, name: words, message: `${words}\n` })(
      response,
    );
  };
  notifierContract(
    {
      'all is well': () => at(json(201, { id: 'a', sid: 'b', messageId: 3 })),
      'it repeats what it heard and accepts': () => at(echo(201)),
      'it repeats what it heard and refuses': () => at(echo(400)),
      'it hangs': () => at(() => {}),
      'it talks nonsense': () => at((response) => response.socket?.end('nonsense\r\n\r\n')),
    },
    1000,
  );
});

// What each variable of alerts changes: a management process with it sends a test message to
// servers of ours.

import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import type { IncomingMessage } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'vitest';
import type { SettingName } from '../../../shared/settings/table.ts';
import { mailSink, parseMail, type Taken } from '../../alerts/fake-mail-sink.ts';
import { basic } from '../../http/fake-deps.ts';
import { eventually, type TestStack } from './embedded.ts';
import { listenOn, manageAlone, managed } from './managed.ts';

interface Request {
  path: string;
  headers: IncomingMessage['headers'];
  body: string;
}

/** What was sent by processes that differ in their settings. */
interface Sent {
  /** With both variables of mail; of the other, with what must be set alone. */
  mail: Taken | undefined;
  plainMail: Taken | undefined;
  resend: Request;
  twilio: Request;
  brevo: Request;
  /** The status of the answer where nothing is set. */
  unset: number;
}

const MAIL = { ALERT_EMAIL_TO: 'a@example.org,b@example.org', ALERT_EMAIL_FROM: 'Duty desk <desk@example.org>' };
const RESEND = {
  ALERT_EMAIL_TO: 'duty@example.org',
  ALERT_EMAIL_FROM: 'holdfast@example.org',
  RESEND_API_KEY: 're_key',
};
const TWILIO = {
  ALERT_SMS_TO: '+15551234567',
  SMS_PROVIDER: 'twilio',
  TWILIO_ACCOUNT_SID: 'AC123',
  TWILIO_AUTH_TOKEN: 'twilio-token',
  TWILIO_FROM: '+15557654321',
};
const BREVO = { ALERT_SMS_TO: '+15551234567', SMS_PROVIDER: 'brevo', BREVO_API_KEY: 'brevo-key' };

interface RequestSink {
  url: string;
  first: () => Request;
  close(): void;
}

async function requestSink(): Promise<RequestSink> {
  const requests: Request[] = [];
  const service = listenOn((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      requests.push({ path: request.url ?? '', headers: request.headers, body: Buffer.concat(chunks).toString() });
      response.writeHead(201, { 'content-type': 'application/json' });
      response.end('{"id":"1","sid":"SM1","messageId":1,"reference":"1"}');
    });
  });
  const first = (): Request => {
    const [request] = requests;
    if (request === undefined) throw new Error('no request');
    return request;
  };
  return { url: await service.url, first, close: () => service.close() };
}

/** Each channel sends a test message, from processes beside the stack. */
async function sendAll(stack: TestStack, env: Record<string, string>): Promise<Sent> {
  const { webadmin } = stack.file();
  const headers = { authorization: basic(webadmin.username, webadmin.password), 'content-type': 'application/json' };
  const ask = async (more: Record<string, string>, channel: string): Promise<Response> => {
    const url = `http://127.0.0.1:${await managed({ ...env, ...more })}/api/ops/alerts/test`;
    return fetch(url, { method: 'POST', headers, body: JSON.stringify({ channel }) });
  };
  const sent = async (more: Record<string, string>, channel: string): Promise<void> =>
    expect(await (await ask(more, channel)).json()).toMatchObject({ delivered: true });

  const mails = await mailSink();
  const [resend, twilio, brevo] = [await requestSink(), await requestSink(), await requestSink()];
  try {
    const SMTP_URL = `smtp://127.0.0.1:${mails.port}`;
    const one = { ...MAIL, SMTP_URL, ...TWILIO, TWILIO_URL: twilio.url };
    const two = { ...RESEND, RESEND_URL: resend.url, ...BREVO, BREVO_URL: brevo.url };
    await sent(one, 'email');
    const [mail] = mails.taken.splice(0);
    await sent(one, 'sms');
    await sent(two, 'email');
    await sent(two, 'sms');
    await sent({ ALERT_EMAIL_TO: 'duty@example.org', SMTP_URL }, 'email');
    const plainMail = mails.taken.find(({ to }) => to.includes('duty@example.org'));
    const unset = (await ask({}, 'email')).status;
    return { mail, plainMail, resend: resend.first(), twilio: twilio.first(), brevo: brevo.first(), unset };
  } finally {
    await mails.close();
    for (const service of [resend, twilio, brevo]) service.close();
  }
}

const senderOf = (mail: Taken | undefined): string | undefined => parseMail(mail?.raw ?? '').headers.get('from');

/** `beside`: the running stack and the settings of a process beside it. */
export function alertBehaviours(
  beside: () => { stack: TestStack; env: Record<string, string> },
): Partial<Record<SettingName, () => Promise<void>>> {
  let all: Promise<Sent> | undefined;
  const sent = (): Promise<Sent> => (all ??= sendAll(beside().stack, beside().env));
  return {
    ALERT_EMAIL_TO: async () => {
      expect((await sent()).mail?.to).toEqual(['a@example.org', 'b@example.org']);
      expect((await sent()).unset).toBe(409);
    },
    ALERT_EMAIL_FROM: async () => {
      expect(senderOf((await sent()).mail)).toBe('Duty desk <desk@example.org>');
      expect(senderOf((await sent()).plainMail)).toBe('Holdfast <holdfast@cot.example.org>');
    },
    SMTP_URL: async () => expect((await sent()).plainMail).toMatchObject({ to: ['duty@example.org'] }),
    RESEND_API_KEY: async () => expect((await sent()).resend.headers.authorization).toBe('Bearer re_key'),
    RESEND_URL: async () => expect((await sent()).resend.path).toBe('/emails'),
    ALERT_SMS_TO: async () => expect(new URLSearchParams((await sent()).twilio.body).get('To')).toBe('+15551234567'),
    SMS_PROVIDER: async () => {
      const { twilio, brevo } = await sent();
      expect([twilio.path, brevo.path].map((path) => path.slice(0, 4))).toEqual(['/201', '/v3/']);
    },
    TWILIO_ACCOUNT_SID: async () => expect((await sent()).twilio.path).toBe('/2010-04-01/Accounts/AC123/Messages.json'),
    TWILIO_AUTH_TOKEN: async () =>
      expect((await sent()).twilio.headers.authorization).toBe(basic('AC123', 'twilio-token')),
    TWILIO_FROM: async () => expect(new URLSearchParams((await sent()).twilio.body).get('From')).toBe('+15557654321'),
    TWILIO_URL: async () => expect((await sent()).twilio.body).toContain('Holdfast'),
    BREVO_API_KEY: async () => expect((await sent()).brevo.headers['api-key']).toBe('brevo-key'),
    BREVO_URL: async () => expect(JSON.parse((await sent()).brevo.body)).toMatchObject({ recipient: '15551234567' }),
    HEARTBEAT_URL: async () => {
      const paths: string[] = [];
      const monitor = listenOn((request, response) => {
        paths.push(`${request.method} ${request.url}`);
        response.end();
      });
      await manageAlone({ HEARTBEAT_URL: `${await monitor.url}/ping/1234` }, () =>
        eventually('it beats as soon as everything was measured', () => paths.length > 0, 60_000),
      );
      monitor.close();
      expect(paths[0]).toBe('GET /ping/1234');
    },
    DATA_DIR: async () => {
      const place = mkdtempSync(join(tmpdir(), 'holdfast-data-'));
      await manageAlone({ DATA_DIR: join(place, 'own') }, () =>
        eventually('the journal is there', () => existsSync(join(place, 'own/alerts.json')), 60_000),
      );
      rmSync(place, { recursive: true });
    },
  };
}

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
import { answersPing, eventually, secretsOf, type TestStack } from './embedded.ts';
import { listenOn, manageAlone } from './managed.ts';

let around: TestStack | undefined;

/**
 * The stack whose directory and database the management processes use; it runs before the
 * behaviours are looked at.
 */
export function alertsBeside(stack: TestStack): void {
  around = stack;
}

/** What `POST /api/ops/alerts/test` answers under these settings. */
async function test(env: Record<string, string>, channel: string): Promise<{ status: number; body: string }> {
  if (around === undefined) throw new Error('beside no stack');
  const { state_database: DATABASE_URL, ldap, webadmin } = around.file();
  const { LDAP_BIND_PASSWORD = '' } = secretsOf(around);
  const places = { DATABASE_URL, LDAP_URL: ldap.url, LDAP_BASE_DN: ldap.base_dn, LDAP_BIND_PASSWORD };
  let answer = { status: 0, body: '' };
  await manageAlone({ ...places, ...env }, async (port) => {
    await eventually('it answers', () => answersPing(`http://127.0.0.1:${port}`), 10_000);
    const response = await fetch(`http://127.0.0.1:${port}/api/ops/alerts/test`, {
      method: 'POST',
      headers: { authorization: basic(webadmin.username, webadmin.password), 'content-type': 'application/json' },
      body: JSON.stringify({ channel }),
    });
    answer = { status: response.status, body: await response.text() };
  });
  return answer;
}

async function mailWith(env: Record<string, string>): Promise<Taken | undefined> {
  const sink = await mailSink();
  const { body } = await test(
    { ALERT_EMAIL_TO: 'duty@example.org', SMTP_URL: `smtp://127.0.0.1:${sink.port}`, ...env },
    'email',
  );
  await sink.close();
  expect(JSON.parse(body)).toMatchObject({ delivered: true });
  return sink.taken[0];
}

interface Request {
  path: string;
  headers: IncomingMessage['headers'];
  body: string;
}

/**
 * The first request that a service gets for a test message, when `urlVariable` says that it stands
 * here.
 */
async function requestWith(urlVariable: string, env: Record<string, string>, channel: string): Promise<Request> {
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
  const { body } = await test({ [urlVariable]: await service.url, ...env }, channel);
  service.close();
  expect(JSON.parse(body)).toMatchObject({ delivered: true });
  const [first] = requests;
  if (first === undefined) throw new Error('no request');
  return first;
}

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

const resend = (): Promise<Request> => requestWith('RESEND_URL', RESEND, 'email');
const twilio = (): Promise<Request> => requestWith('TWILIO_URL', TWILIO, 'sms');
const brevo = (): Promise<Request> => requestWith('BREVO_URL', BREVO, 'sms');

export const ALERT_BEHAVIOURS: Partial<Record<SettingName, () => Promise<void>>> = {
  ALERT_EMAIL_TO: async () => {
    expect((await mailWith({ ALERT_EMAIL_TO: 'a@example.org,b@example.org' }))?.to).toEqual([
      'a@example.org',
      'b@example.org',
    ]);
    expect((await test({}, 'email')).status).toBe(409);
  },
  ALERT_EMAIL_FROM: async () => {
    const from = async (env: Record<string, string>): Promise<string | undefined> =>
      parseMail((await mailWith(env))?.raw ?? '').headers.get('from');
    expect(await from({ ALERT_EMAIL_FROM: 'Duty desk <desk@example.org>' })).toBe('Duty desk <desk@example.org>');
    expect(await from({})).toBe('Holdfast <holdfast@cot.example.org>');
  },
  SMTP_URL: async () => expect(await mailWith({})).toMatchObject({ to: ['duty@example.org'] }),
  RESEND_API_KEY: async () => expect((await resend()).headers.authorization).toBe('Bearer re_key'),
  RESEND_URL: async () => expect((await resend()).path).toBe('/emails'),
  ALERT_SMS_TO: async () => expect(new URLSearchParams((await twilio()).body).get('To')).toBe('+15551234567'),
  SMS_PROVIDER: async () =>
    expect([(await twilio()).path, (await brevo()).path].map((path) => path.slice(0, 4))).toEqual(['/201', '/v3/']),
  TWILIO_ACCOUNT_SID: async () => expect((await twilio()).path).toBe('/2010-04-01/Accounts/AC123/Messages.json'),
  TWILIO_AUTH_TOKEN: async () => expect((await twilio()).headers.authorization).toBe(basic('AC123', 'twilio-token')),
  TWILIO_FROM: async () => expect(new URLSearchParams((await twilio()).body).get('From')).toBe('+15557654321'),
  TWILIO_URL: async () => expect((await twilio()).body).toContain('Holdfast'),
  BREVO_API_KEY: async () => expect((await brevo()).headers['api-key']).toBe('brevo-key'),
  BREVO_URL: async () => expect(JSON.parse((await brevo()).body)).toMatchObject({ recipient: '15551234567' }),
  HEARTBEAT_URL: async () => {
    const paths: string[] = [];
    const monitor = listenOn((request, response) => {
      paths.push(`${request.method} ${request.url}`);
      response.end();
    });
    await manageAlone({ HEARTBEAT_URL: `${await monitor.url}/ping/1234` }, () =>
      eventually('it beats as soon as everything was measured', () => paths.length > 0, 10_000),
    );
    monitor.close();
    expect(paths[0]).toBe('GET /ping/1234');
  },
  DATA_DIR: async () => {
    const place = mkdtempSync(join(tmpdir(), 'holdfast-data-'));
    await manageAlone({ DATA_DIR: join(place, 'own') }, () =>
      eventually('the journal is there', () => existsSync(join(place, 'own/alerts.json')), 15_000),
    );
    rmSync(place, { recursive: true });
  },
};

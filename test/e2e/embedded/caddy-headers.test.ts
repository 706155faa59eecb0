// What reaches each upstream of the reverse proxy, of what says who the client is; in front of
// echoes, with the real Caddy.

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Arrived, EchoServer } from '../../support/echo-server.ts';
import {
  ADDRESS,
  BAD,
  behindCaddy,
  type BehindCaddy,
  FLOWS_TOKEN,
  GOOD,
  issued,
  proxyMissing,
  VIDEO_READ_PASSWORD,
} from './behind-caddy.ts';
import { answerOf, openTls, textOf } from './raw-request.ts';

let proxy: BehindCaddy;

const CLIENT = '127.0.0.77';
const COOKIES = 'a=1; __Host-holdfast=ours; JSESSIONID=core; holdfast=ours; access_token=token; holdfast =ours';
const LIES = [
  'Remote-User: webadmin',
  'Remote-Groups: stack_admin',
  'remote_user: webadmin',
  'REMOTE_GROUPS: stack_admin',
  'Remote.User: webadmin',
  'X-Forwarded-For: 192.0.2.9',
  'X-Forwarded-Host: evil.test',
  'X-Forwarded-Proto: http',
  'X-Forwarded-User: webadmin',
  'x_forwarded_for: 192.0.2.9',
  'X-Real-IP: 192.0.2.9',
  'Forwarded: for=192.0.2.9',
  'X-Holdfast-Flows: a-guess',
  'x-holdfast-flows: another',
  'X_HOLDFAST_FLOWS: a-third',
];

interface Expected {
  host: string;
  enrollment?: boolean;
  upstream: (proxy: BehindCaddy) => EchoServer;
  authorization: string[];
  cookie: string[];
  remoteUser: string[];
  remoteGroups: string[];
  /** What lets in at the flow engine. */
  token?: string[];
}

const WHO = { remoteUser: ['ada'], remoteGroups: ['stack_admin,core_Blue'] };
const NOBODY = { remoteUser: [], remoteGroups: [] };
const KEPT = { authorization: [GOOD], cookie: ['a=1; JSESSIONID=core; access_token=token'] };
const READER = `Bearer read:${VIDEO_READ_PASSWORD}`;
const TABLE: Expected[] = [
  { host: ADDRESS, upstream: (p) => p.portal, authorization: [GOOD], cookie: [COOKIES], ...NOBODY },
  { host: `monitor.${ADDRESS}`, upstream: (p) => p.management, authorization: [GOOD], cookie: [COOKIES], ...NOBODY },
  { host: `nodered.${ADDRESS}`, upstream: (p) => p.flows, authorization: [], cookie: [], ...WHO, token: [FLOWS_TOKEN] },
  { host: `stream.${ADDRESS}`, upstream: (p) => p.video, authorization: [READER], cookie: [], ...WHO },
  { host: `takserver.${ADDRESS}`, upstream: (p) => p.core, ...KEPT, ...NOBODY },
  { host: ADDRESS, enrollment: true, upstream: (p) => p.core, ...KEPT, ...NOBODY },
];

const of = ({ headers }: Arrived, name: string): string[] =>
  headers.filter(([each]) => each === name).map(([, value]) => value);

const last = ({ arrived }: EchoServer): Arrived => {
  const found = arrived.at(-1);
  if (found === undefined) throw new Error('nothing has arrived');
  return found;
};

describe.skipIf(proxyMissing !== undefined)(proxyMissing ?? 'what reaches an upstream', () => {
  beforeAll(async () => {
    proxy = await behindCaddy();
    await issued(proxy);
  });
  afterAll(() => proxy?.end());

  for (const each of TABLE) {
    const { host, enrollment = false, upstream } = each;
    it(`of a client of ${host}${enrollment ? ' at 8446' : ''} is what the table says, whatever the client claims`, async () => {
      for (const more of [[], ['Connection: Remote-User, X-Forwarded-For, Authorization, Cookie']]) {
        const headers = [`Authorization: ${GOOD}`, `Cookie: ${COOKIES}`, ...LIES, ...more];
        const { status } = await proxy.ask({ name: host, enrollment, from: CLIENT, headers, line: 'GET /x?y=1' });
        expect(status).toBe(200);
        const arrived = last(upstream(proxy));
        expect({
          url: arrived.url,
          authorization: of(arrived, 'authorization'),
          cookie: of(arrived, 'cookie'),
          remoteUser: of(arrived, 'remote-user'),
          remoteGroups: of(arrived, 'remote-groups'),
          otherwise: arrived.headers.filter(([name]) => /^remote(?!-user$|-groups$)/.test(name)),
          token: of(arrived, 'x-holdfast-flows'),
          forwardedFor: of(arrived, 'x-forwarded-for'),
          forwardedProto: of(arrived, 'x-forwarded-proto'),
          others: arrived.headers.filter(([name]) => /^(?:x_.*|x-real-ip|forwarded|x-forwarded-user)$/.test(name)),
        }).toEqual({
          url: '/x?y=1',
          authorization: each.authorization,
          cookie: each.cookie,
          remoteUser: each.remoteUser,
          remoteGroups: each.remoteGroups,
          otherwise: [],
          token: each.token ?? [],
          forwardedFor: [CLIENT],
          forwardedProto: ['https'],
          others: [],
        });
        expect(of(arrived, 'x-forwarded-host')[0]).toMatch(new RegExp(`^${host.replaceAll('.', '\\.')}:\\d+$`));
      }
    });
  }

  it('is asked of the door with the credentials, the address of the client and no query of its own', async () => {
    await proxy.ask({
      name: `nodered.${ADDRESS}`,
      from: CLIENT,
      headers: [`Authorization: ${GOOD}`],
      line: 'GET /?secret=1',
    });
    const requested = last(proxy.management);
    expect([requested.method, requested.url, of(requested, 'x-forwarded-for')]).toEqual([
      'GET',
      '/auth/verify?role=admin',
      [CLIENT],
    ]);
    expect(JSON.stringify(requested)).not.toContain('secret');
  });

  it('is nothing for a client whom the door refuses, and the refusal is that of the door', async () => {
    for (const name of [`nodered.${ADDRESS}`, `stream.${ADDRESS}`]) {
      const before = proxy.flows.arrived.length + proxy.video.arrived.length;
      for (const headers of [[], [`Authorization: ${BAD}`], ['Remote-User: webadmin', 'Remote-Groups: stack_admin']]) {
        const answer = await proxy.ask({ name, headers });
        expect([answer.status, answer.headers.get('www-authenticate')]).toEqual([401, 'Basic realm="Holdfast"']);
      }
      expect(proxy.flows.arrived.length + proxy.video.arrived.length).toBe(before);
    }
  });

  it('keeps method and body', async () => {
    for (const [name, upstream] of [
      [`nodered.${ADDRESS}`, proxy.flows],
      [`takserver.${ADDRESS}`, proxy.core],
    ] as const) {
      const headers = [`Authorization: ${GOOD}`, 'Content-Type: text/plain'];
      await proxy.ask({ name, headers, line: 'PUT /flows?a=%20b', body: 'the body' });
      expect(last(upstream)).toMatchObject({ method: 'PUT', url: '/flows?a=%20b', body: 'the body' });
    }
  });

  it('goes both ways through a WebSocket behind the door, and through no other upgrade', async () => {
    const port = proxy.caddy.ports.https;
    const name = `nodered.${ADDRESS}`;
    const request = {
      port,
      ca: proxy.ca,
      name,
      host: `${name}:${port}`,
      line: 'GET /comms',
      headers: [
        `Authorization: ${GOOD}`,
        `Origin: https://${name}:${port}`,
        'Sec-Fetch-Site: same-origin',
        'Connection: keep-alive, Upgrade',
        'Upgrade: websocket',
        'Sec-WebSocket-Version: 13',
        'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
      ],
    };
    const socket = await openTls(request);
    let heard = '';
    socket.on('data', (chunk: Buffer) => (heard += chunk.toString('latin1')));
    socket.write(textOf(request));
    await expect.poll(() => heard).toContain('s3pPLMBiTxaQ9kYGzzhZRbK+xOo=');
    socket.write('frames');
    await expect.poll(() => heard).toMatch(/frames$/);
    expect(of(last(proxy.flows), 'remote-user')).toEqual(['ada']);
    socket.destroy();

    for (const upgrade of ['h2c', 'websocket, h2c', 'tls/1.0']) {
      const headers = [
        `Authorization: ${GOOD}`,
        'Connection: Upgrade, HTTP2-Settings',
        `Upgrade: ${upgrade}`,
        'HTTP2-Settings: AAMAAABkAAQAAP__',
      ];
      const answer = await answerOf(await sent(port, `takserver.${ADDRESS}`, headers));
      expect(answer.status).toBe(200);
      expect([of(last(proxy.core), 'upgrade'), of(last(proxy.core), 'http2-settings')]).toEqual([[], []]);
    }
  });

  async function sent(port: number, name: string, headers: string[]) {
    const socket = await openTls({ port, ca: proxy.ca, name });
    socket.write(textOf({ port, name, headers }));
    return socket;
  }
});

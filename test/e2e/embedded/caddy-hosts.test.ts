// The public face of subdomain mode: redirects, headers of every answer, strangers, clients without
// a name, pages of other sites, and a log without secrets; the real Caddy in front of echoes.

import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ADDRESS, behindCaddy, type BehindCaddy, GOOD, HOSTS, issued, proxyMissing } from './behind-caddy.ts';
import { askPlain } from './raw-request.ts';

const execute = promisify(execFile);
const NOWHERE = '127.0.0.1:1';
const NODERED = `nodered.${ADDRESS}`;
const SIGNED = `Authorization: ${GOOD}`;

let proxy: BehindCaddy;

const own = (name: string): string => `https://${name}:${proxy.caddy.ports.https}`;

interface Caused {
  by: string;
  headers: string[];
  line?: string;
  status: number;
}

const NAVIGATION = ['Sec-Fetch-Mode: navigate', 'Sec-Fetch-Dest: document'];
const UPGRADE = [
  'Connection: Upgrade',
  'Upgrade: websocket',
  'Sec-WebSocket-Version: 13',
  'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
];
const CAUSED: Caused[] = [
  { by: 'no browser', headers: [], status: 200 },
  { by: 'no browser, with POST', headers: [], line: 'POST /flows', status: 200 },
  {
    by: 'a page of its own',
    headers: ['Sec-Fetch-Site: same-origin', 'Origin: OWN'],
    line: 'POST /flows',
    status: 200,
  },
  { by: 'the person', headers: ['Sec-Fetch-Site: none', ...NAVIGATION], status: 200 },
  { by: 'a link of another site', headers: ['Sec-Fetch-Site: cross-site', ...NAVIGATION], status: 200 },
  { by: 'a link of a sister host', headers: ['Sec-Fetch-Site: same-site', ...NAVIGATION], status: 200 },
  {
    by: 'a frame of another site',
    headers: ['Sec-Fetch-Site: cross-site', 'Sec-Fetch-Mode: navigate', 'Sec-Fetch-Dest: iframe'],
    status: 403,
  },
  {
    by: 'an image of another site',
    headers: ['Sec-Fetch-Site: cross-site', 'Sec-Fetch-Mode: no-cors', 'Sec-Fetch-Dest: image'],
    status: 403,
  },
  { by: 'a script of a sister host', headers: ['Sec-Fetch-Site: same-site', 'Sec-Fetch-Mode: cors'], status: 403 },
  {
    by: 'a form of another site',
    headers: ['Sec-Fetch-Site: cross-site', ...NAVIGATION],
    line: 'POST /flows',
    status: 403,
  },
  {
    by: 'a form of another site in an old browser',
    headers: ['Origin: https://evil.test'],
    line: 'POST /flows',
    status: 403,
  },
  { by: 'a page without an origin', headers: ['Origin: null'], line: 'POST /flows', status: 403 },
  {
    by: 'a page of the same name without TLS',
    headers: [`Origin: http://${NODERED}`],
    line: 'POST /flows',
    status: 403,
  },
  { by: 'a page of the portal', headers: [`Origin: https://${ADDRESS}`], line: 'POST /flows', status: 403 },
  {
    by: 'a browser that says two things',
    headers: ['Sec-Fetch-Site: same-origin', 'Sec-Fetch-Site: cross-site'],
    status: 403,
  },
  { by: 'a WebSocket of another site', headers: ['Origin: https://evil.test', ...UPGRADE], status: 403 },
  {
    by: 'a WebSocket of another site that looks like a link',
    headers: ['Sec-Fetch-Site: cross-site', ...NAVIGATION, ...UPGRADE],
    status: 403,
  },
  { by: 'a WebSocket of its own', headers: ['Sec-Fetch-Site: same-origin', 'Origin: OWN', ...UPGRADE], status: 101 },
];

describe.skipIf(proxyMissing !== undefined)(proxyMissing ?? 'the proxy in subdomain mode', () => {
  beforeAll(async () => {
    proxy = await behindCaddy({ env: { VIDEO_HLS: NOWHERE, PUBLIC_HTTPS_SUFFIX: ':10443' } });
    await issued(proxy);
  });
  afterAll(() => proxy?.end());

  it('redirects plain HTTP to the same address of the same host, and strangers to the portal', async () => {
    const port = proxy.caddy.ports.http;
    for (const [host, target] of [
      ...HOSTS.map((name) => [name, name]),
      ['192.0.2.1', ADDRESS],
      ['evil.test', ADDRESS],
    ] as const) {
      const answer = await askPlain({ port, name: '', host, line: 'POST /a/b?c=d' });
      expect([answer.status, answer.headers.get('location')]).toEqual([308, `https://${target}:10443/a/b?c=d`]);
    }
  });

  it('sends its headers with every answer, its own errors too', async () => {
    for (const [name, enrollment, path, status] of [
      ...HOSTS.slice(0, 4).map((host) => [host, false, '/', 200] as const),
      [ADDRESS, true, '/', 200],
      [ADDRESS, true, '/OAUTH/token', 404],
      [`stream.${ADDRESS}`, false, '/', 502],
    ] as const) {
      const { headers, ...answer } = await proxy.ask({ name, enrollment, line: `GET ${path}`, headers: [SIGNED] });
      expect([name, answer.status]).toEqual([name, status]);
      expect(headers.get('strict-transport-security')).toBe('max-age=31536000');
      expect(headers.get('content-security-policy')).toMatch(/frame-ancestors '(?:self|none)'/);
      expect(headers.get('x-content-type-options')).toBe('nosniff');
      expect(headers.get('referrer-policy')).toBe('same-origin');
      for (const none of ['server', 'via', 'x-powered-by', 'alt-svc'])
        expect([none, headers.get(none)]).toEqual([none, undefined]);
    }
  });

  it('serves clients that name no host in the handshake, with the certificate of SERVER_ADDRESS', async () => {
    for (const [port, path] of [
      [proxy.caddy.ports.https, '/'],
      [proxy.caddy.ports.enrollment, '/Marti/api/tls/config'],
    ] as const) {
      const answer = await proxy.ask({ port, name: '', line: `GET ${path}` });
      expect(answer.status).toBe(200);
      const { stdout } = await execute('sh', [
        '-c',
        `openssl s_client -connect 127.0.0.1:${port} -noservername </dev/null 2>/dev/null | openssl x509 -noout -ext subjectAltName`,
      ]);
      expect(stdout.trim().split('\n').at(-1)?.trim()).toBe(`DNS:${ADDRESS}`);
    }
  });

  it('has nothing for a host that is none of its own', async () => {
    for (const host of ['evil.test', '192.0.2.1', `other.${ADDRESS}`, `${ADDRESS}.evil.test`])
      for (const enrollment of [false, true])
        expect((await proxy.ask({ host, enrollment, headers: [SIGNED] })).status).toBe(421);
  });

  for (const { by, headers, line = 'GET /', status } of CAUSED)
    it(`${status === 403 ? 'refuses' : 'lets through'} what is caused by ${by}`, async () => {
      for (const name of [NODERED, `takserver.${ADDRESS}`]) {
        const given = headers.map((header) => header.replace('OWN', own(name)));
        const upstream = name === NODERED ? proxy.flows : proxy.core;
        const before = upstream.arrived.length;
        const answer = await proxy.ask({ name, line, headers: [SIGNED, ...given] }).catch(() => undefined);
        if (status !== 101) expect(answer?.status).toBe(status);
        expect(upstream.arrived.length).toBe(before + (status === 403 ? 0 : 1));
      }
    });

  it('says why an upstream failed, and writes neither query nor credentials nor who it was', async () => {
    const before = proxy.caddy.log().length;
    const secrets = ['query-secret', 'cookie-secret', 'referer-secret', GOOD.slice(6)];
    const headers = [SIGNED, 'Cookie: a=cookie-secret', 'Referer: https://x.test/?referer-secret'];
    const answer = await proxy.ask({
      name: `stream.${ADDRESS}`,
      line: 'GET /live/index.m3u8?password=query-secret',
      headers,
    });
    expect(answer.status).toBe(502);
    expect(answer.body).toBe('502 Bad Gateway');
    await expect.poll(() => proxy.caddy.log().slice(before)).toContain('connection refused');
    const message = proxy.caddy.log().slice(before);
    expect(message).toContain('/live/index.m3u8');
    expect(secrets.filter((secret) => proxy.caddy.log().includes(secret))).toEqual([]);
    for (const line of message.trim().split('\n')) expect(() => JSON.parse(line) as unknown).not.toThrow();
  });

  it('answers for its health on the loopback address alone, and administers itself to nobody', async () => {
    const { stdout } = await execute('ss', ['-Hltnp']);
    const mine = stdout.split('\n').filter((line) => line.includes(`pid=${proxy.caddy.pid()},`));
    const ports = mine.map((line) => line.trim().split(/\s+/)[3] ?? '');
    const { http, https, enrollment, health } = proxy.caddy.ports;
    expect(ports.toSorted()).toEqual([`*:${http}`, `*:${https}`, `*:${enrollment}`, `127.0.0.1:${health}`].toSorted());
    expect((await askPlain({ port: health, name: 'anything' })).status).toBe(200);
  });
});

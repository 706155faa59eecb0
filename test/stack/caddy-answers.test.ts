// What of an upstream's answer reaches a browser; the real Caddy before echoes.

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type EchoServer, startEcho } from '../fakes/echo-server.ts';
import { ADDRESS, behindCaddy, type BehindCaddy, GOOD, issued, proxyMissing } from './behind-caddy.ts';
import type { RawAnswer } from './raw-request.ts';

const NODERED = `nodered.${ADDRESS}`;

let proxy: BehindCaddy;
let upstream: EchoServer;
let said: Record<string, string>;

const asked = (name: string, line: string): Promise<RawAnswer> =>
  proxy.ask({ name, line, headers: [`Authorization: ${GOOD}`] });

describe.skipIf(proxyMissing !== undefined)(proxyMissing ?? 'an answer through the proxy', () => {
  beforeAll(async () => {
    upstream = await startEcho(undefined, () => ({ status: 200, headers: said }));
    const [FLOWS, VIDEO_HLS, VIDEO_WEBRTC] = [upstream.place, upstream.place, upstream.place];
    proxy = await behindCaddy({ env: { FLOWS, VIDEO_HLS, VIDEO_WEBRTC } });
    await issued(proxy);
  });
  afterAll(async () => {
    await proxy?.end();
    await upstream?.end();
  });

  it('of an upstream that has a policy of its own keeps it, and lacks none of the others', async () => {
    const own = { 'content-security-policy': "default-src 'none'", 'referrer-policy': 'no-referrer' };
    for (const [name, value] of Object.entries(own)) {
      said = { [name]: value };
      const { headers } = await asked(NODERED, 'GET /');
      const policies = Object.keys(own).map((each) => [each, headers.get(each)]);
      expect(policies).toEqual([
        ['content-security-policy', said['content-security-policy'] ?? expect.stringContaining('frame-ancestors')],
        ['referrer-policy', said['referrer-policy'] ?? 'same-origin'],
      ]);
    }
  });
});

// What of an upstream's answer reaches a browser, and what a viewer may do at the video relay; the
// real Caddy before echoes.

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type EchoServer, startEcho } from '../../support/echo-server.ts';
import { ADDRESS, behindCaddy, type BehindCaddy, GOOD, issued, proxyMissing } from './behind-caddy.ts';
import type { RawAnswer } from './raw-request.ts';

const NODERED = `nodered.${ADDRESS}`;
const STREAM = `stream.${ADDRESS}`;
/**
 * What a page of the flow engine may not say: it counts for a whole origin, in direct mode for the
 * portal too.
 */
const FOR_THE_ORIGIN = {
  'x-holdfast-flows': 'what-only-the-flow-engine-knows',
  'set-cookie': '__Host-holdfast=mine; Path=/; Secure',
  'clear-site-data': '"*"',
  'service-worker-allowed': '/',
  'alt-svc': 'h2="evil.test:443"',
  nel: '{"report_to":"evil","max_age":99999999}',
};

let proxy: BehindCaddy;
let upstream: EchoServer;
let reported: Record<string, string>;

const request = (name: string, line: string): Promise<RawAnswer> =>
  proxy.ask({ name, line, headers: [`Authorization: ${GOOD}`] });

describe.skipIf(proxyMissing !== undefined)(proxyMissing ?? 'an answer through the proxy', () => {
  beforeAll(async () => {
    upstream = await startEcho(undefined, () => ({ status: 200, headers: reported }));
    const [FLOWS, VIDEO_HLS] = [upstream.place, upstream.place];
    proxy = await behindCaddy({ env: { FLOWS, VIDEO_HLS } });
    await issued(proxy);
  });
  afterAll(async () => {
    await proxy?.end();
    await upstream?.end();
  });

  it('of an upstream that has a policy of its own keeps it, and lacks none of the others', async () => {
    const own = { 'content-security-policy': "default-src 'none'", 'referrer-policy': 'no-referrer' };
    for (const [name, value] of Object.entries(own)) {
      reported = { [name]: value };
      const { headers } = await request(NODERED, 'GET /');
      const policies = Object.keys(own).map((each) => [each, headers.get(each)]);
      expect(policies).toEqual([
        ['content-security-policy', reported['content-security-policy'] ?? expect.stringContaining('frame-ancestors')],
        ['referrer-policy', reported['referrer-policy'] ?? 'same-origin'],
      ]);
    }
  });

  it('of the flow engine or the video relay says nothing that counts for more than itself', async () => {
    reported = { ...FOR_THE_ORIGIN, 'strict-transport-security': 'max-age=0', 'x-own': 'kept' };
    for (const name of [NODERED, STREAM]) {
      const { headers } = await request(name, 'GET /x');
      expect(Object.keys(FOR_THE_ORIGIN).filter((each) => headers.has(each))).toEqual([]);
      expect([headers.get('strict-transport-security'), headers.get('x-own')]).toEqual(['max-age=31536000', 'kept']);
    }
  });

  it('comes to whoever watches, and nobody publishes at the stream host', async () => {
    reported = {};
    for (const [line, status] of [
      ['GET /live/index.m3u8', 200],
      ['HEAD /live/', 200],
      ['POST /live/whip', 405],
      ['POST /live/whep', 405],
      ['PATCH /live/%77hip', 405],
      ['DELETE /live', 405],
      ['POST /live', 405],
      ['PUT /live', 405],
    ] as const) {
      const before = upstream.arrived.length;
      const answer = await request(STREAM, line);
      expect([line, answer.status, upstream.arrived.length - before]).toEqual([line, status, status === 200 ? 1 : 0]);
    }
  });
});

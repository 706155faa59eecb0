// Public certificates, against Pebble: given for every host, refused without harm, renewed without
// hanging up on anybody.

import { X509Certificate } from 'node:crypto';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import {
  ADDRESS,
  behindCaddy,
  type BehindCaddy,
  type BehindOrder,
  GOOD,
  HOSTS,
  issued,
  issuedFor,
  proxyMissing,
} from './behind-caddy.ts';
import { eventually } from './embedded.ts';
import { answerOf, askPlain, openTls, textOf } from './raw-request.ts';

const WEBSOCKET = [
  'Connection: Upgrade',
  'Upgrade: websocket',
  'Sec-WebSocket-Version: 13',
  'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
];

let proxy: BehindCaddy | undefined;

async function begin(order: BehindOrder): Promise<BehindCaddy> {
  proxy = await behindCaddy(order);
  return proxy;
}

/** What is served for a name, whoever has signed it; undefined when there is nothing to serve. */
async function served(
  { caddy }: BehindCaddy,
  name: string,
  port = caddy.ports.https,
): Promise<X509Certificate | undefined> {
  const socket = await openTls({ port, name }).catch(() => undefined);
  const certificate = socket?.getPeerX509Certificate();
  socket?.destroy();
  return certificate;
}

/** In one line of the log, as an error. */
async function complaint({ caddy }: BehindCaddy, name: string, why: string): Promise<void> {
  const says = (line: string): boolean =>
    ['"level":"error"', `"identifier":"${name}"`, why].every((word) => line.includes(word));
  await eventually(`${why} of ${name} in the log`, () => caddy.log().split('\n').some(says), 30_000);
}

async function redirects({ caddy }: BehindCaddy): Promise<boolean> {
  return (await askPlain({ port: caddy.ports.http, name: ADDRESS })).status === 308;
}

describe.skipIf(proxyMissing !== undefined)(proxyMissing ?? 'certificates of the proxy', () => {
  afterEach(async () => {
    await proxy?.end();
    proxy = undefined;
  });

  it('are issued for every host, each for its own name, by HTTP alone', async () => {
    const begun = await begin({});
    await issued(begun);
    for (const name of HOSTS) {
      const certificate = await served(begun, name);
      expect(certificate?.subjectAltName).toBe(`DNS:${name}`);
    }
    const at8446 = await served(begun, ADDRESS, begun.caddy.ports.enrollment);
    expect(at8446?.serialNumber).toBe((await served(begun, ADDRESS))?.serialNumber);
    expect(begun.pebble.log()).toMatch(/validate w\/ HTTP: http/);
    expect(begun.pebble.log()).not.toMatch(/validate w\/ (?!HTTP: http)/);
    expect(begun.caddy.log()).not.toMatch(/"challenge_type":"(?!http-01)/);
  });

  it('are asked for by one account with a contact, which no host takes for another while it is being made', async () => {
    const begun = await begin({});
    await issued(begun);
    const { caddy } = begun;
    const authorities = join(caddy.directory, 'data/caddy/acme');
    const accounts = readdirSync(authorities).flatMap((each) => readdirSync(join(authorities, each, 'users')));
    expect(accounts).toEqual([`hostmaster@${ADDRESS}`]);
    expect(caddy.log()).not.toContain('invalidContact');
  });

  it('are issued by an authority that refuses half of all nonces', async () => {
    await issued(await begin({ pebble: { env: { PEBBLE_WFE_NONCEREJECT: '50' } } }));
  });

  it('are none when every order is refused: the log says why, port 80 answers, nothing false is shown', async () => {
    const begun = await begin({ pebble: { refused: HOSTS } });
    await complaint(begun, ADDRESS, 'rejectedIdentifier');
    expect(await redirects(begun)).toBe(true);
    for (const name of [...HOSTS, '']) expect(await served(begun, name)).toBeUndefined();
  });

  it('are missing for the one host whose name leads elsewhere; the others have theirs', async () => {
    const monitor = `monitor.${ADDRESS}`;
    const begun = await begin({ meanwhile: (pebble) => pebble.pointNameTo(monitor, '240.0.0.1') });
    for (const name of HOSTS.filter((each) => each !== monitor)) await issuedFor(begun, name);
    await complaint(begun, monitor, 'urn:ietf:params:acme:error');
    // The name has no certificate, so the one of SERVER_ADDRESS is shown, which no client takes for
    // it.
    await expect(begun.ask({ name: monitor })).rejects.toThrow(/does not match certificate's altnames/);
    expect(await redirects(begun)).toBe(true);
  });

  it('are none while the names lead nowhere, and a new start mends that', async () => {
    const begun = await begin({ meanwhile: (pebble) => pebble.pointNamesTo('') });
    await complaint(begun, ADDRESS, 'urn:ietf:params:acme:error');
    expect(await redirects(begun)).toBe(true);
    for (const name of [...HOSTS, '']) expect(await served(begun, name)).toBeUndefined();
    await begun.pebble.pointNamesTo('127.0.0.1');
    await begun.caddy.stop();
    await begun.caddy.start();
    await begun.caddy.healthy();
    await issued(begun);
  });

  it('are renewed before their end, under open connections, without a handshake that fails', async () => {
    const begun = await begin({
      pebble: { certificateSeconds: 30 },
      local: { 'soon.caddy': 'renew_interval 1s\nrenewal_window_ratio 0.8\n' },
    });
    await issued(begun);
    const name = `nodered.${ADDRESS}`;
    const port = begun.caddy.ports.https;
    const request = { port, ca: begun.ca, name, host: `${name}:${port}` };
    const first = await served(begun, name);

    const socket = await openTls(request);
    let heard = '';
    socket.on('data', (chunk: Buffer) => (heard += chunk.toString('latin1')));
    socket.write(textOf({ ...request, headers: [`Authorization: ${GOOD}`, ...WEBSOCKET] }));
    await expect.poll(() => heard).toContain('101 Switching Protocols');
    const slow = await openTls(request);
    const whole = textOf({
      ...request,
      line: 'POST /flows',
      headers: [`Authorization: ${GOOD}`],
      body: 'first, second',
    });
    slow.write(whole.slice(0, -6));

    await eventually(
      'another certificate',
      async () => {
        expect((await begun.ask({ name, headers: [`Authorization: ${GOOD}`] })).status).toBe(200);
        return (await served(begun, name))?.serialNumber !== first?.serialNumber;
      },
      40_000,
    );
    const renewedBy = Date.now();
    expect(renewedBy).toBeLessThan(first?.validToDate.getTime() ?? 0);
    slow.write(whole.slice(-6));
    expect((await answerOf(slow)).status).toBe(200);
    socket.write('still here');
    await expect.poll(() => heard).toMatch(/still here$/);
    socket.destroy();
  });
});

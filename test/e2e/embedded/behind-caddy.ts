// Caddy in subdomain mode with certificates of Pebble, in front of whatever a test names; what it
// does not name is an echo.

import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { testPki } from '../../core/fake-test-pki.ts';
import { type Arrived, type EchoAnswer, type EchoServer, startEcho } from '../../support/echo-server.ts';
import { type Caddy, caddyMissing, newCaddy } from './caddy.ts';
import { eventually } from './embedded.ts';
import { newPebble, type Pebble, pebbleMissing, type PebbleOrder } from './pebble.ts';
import { ask, type RawAnswer, type RawRequest } from './raw-request.ts';

/** Why these tests cannot run here. */
export const proxyMissing = caddyMissing ?? pebbleMissing;

export const ADDRESS = 'tak.test';
export const HOSTS = [ADDRESS, `monitor.${ADDRESS}`, `nodered.${ADDRESS}`, `takserver.${ADDRESS}`, `stream.${ADDRESS}`];

/** The only credentials that the echo of management knows; they make an administrator. */
export const GOOD = `Basic ${Buffer.from('ada:right').toString('base64')}`;
export const BAD = `Basic ${Buffer.from('ada:wrong').toString('base64')}`;

/** What Caddy alone adds: with everything in it that a Caddyfile could take for its own. */
export const FLOWS_TOKEN = 'of-the-flows"{$HOME}`{env.HOME}\\#;and-32-or-more';
export const VIDEO_READ_PASSWORD = 'of-the.video_reader';

export interface BehindCaddy {
  caddy: Caddy;
  pebble: Pebble;
  /** PEM of the public CA. */
  ca: string;
  management: EchoServer;
  portal: EchoServer;
  core: EchoServer;
  flows: EchoServer;
  video: EchoServer;
  /** To a host of the stack, or to 8446 when `enrollment` says so; trusts the public CA alone. */
  ask(request: Partial<RawRequest> & { enrollment?: boolean }): Promise<RawAnswer>;
  end(): Promise<void>;
}

export interface BehindOrder {
  /** Settings of Caddy that put real upstreams in place of echoes. */
  env?: Record<string, string>;
  pebble?: Omit<PebbleOrder, 'httpPort'>;
  /** Before Caddy starts. */
  meanwhile?: (pebble: Pebble) => Promise<void>;
  local?: Record<string, string>;
  certificateDirectory?: string;
}

/** Started, and every host has its certificate. */
export async function behindCaddy(order: BehindOrder = {}): Promise<BehindCaddy> {
  const pki = await testPki();
  const [management, portal, core, flows, video] = await Promise.all([
    startEcho(undefined, asManagement),
    startEcho(undefined, asManagement),
    startEcho(await pki.server('core', ['core'])),
    startEcho(),
    startEcho(),
  ]);
  let httpPort = 0;
  const pebble = await newPebble({ ...order.pebble, httpPort: () => httpPort });
  const caddy = await newCaddy({
    mode: 'subdomain',
    serverAddress: ADDRESS,
    stream: true,
    local: { 'pebble.caddy': pebble.options(), ...order.local },
    ...(order.certificateDirectory === undefined ? {} : { certificateDirectory: order.certificateDirectory }),
    env: {
      MANAGEMENT: management.place,
      PORTAL: portal.place,
      CORE: core.place,
      FLOWS: flows.place,
      VIDEO_HLS: video.place,
      FLOWS_TOKEN,
      VIDEO_READ_PASSWORD,
      ...order.env,
    },
  });
  if (order.certificateDirectory === undefined) {
    writeFileSync(join(caddy.certificates, 'ca.pem'), pki.ca.certificate);
    writeFileSync(join(caddy.certificates, 'tls.caddy'), 'tls /certificate/server-1.pem /certificate/server-1.key\n');
  }
  httpPort = caddy.ports.http;
  const end = async (): Promise<void> => {
    await caddy.end();
    await pebble.end();
    await Promise.all([management, portal, core, flows, video].map((each) => each.end()));
    rmSync(pki.directory, { recursive: true, force: true });
  };
  try {
    await pebble.start();
    await order.meanwhile?.(pebble);
    await caddy.start();
    await caddy.healthy();
  } catch (error) {
    await end();
    throw error;
  }
  const ca = await pebble.root();

  const query: BehindCaddy['ask'] = async ({ enrollment = false, ...request }) => {
    const port = enrollment ? caddy.ports.enrollment : caddy.ports.https;
    const name = request.name ?? ADDRESS;
    return ask({ port, ca, name, host: `${name === '' ? ADDRESS : name}:${port}`, ...request });
  };

  return {
    caddy,
    pebble,
    ca,
    management,
    portal,
    core,
    flows,
    video,
    ask: query,
    end,
  };
}

/** Until every host answers with a certificate of the public CA. */
export async function issued(proxy: Pick<BehindCaddy, 'ask'>): Promise<void> {
  for (const name of HOSTS) await issuedFor(proxy, name);
}

export async function issuedFor({ ask: request }: Pick<BehindCaddy, 'ask'>, name: string): Promise<void> {
  const answers = (): Promise<boolean> =>
    request({ name }).then(
      () => true,
      () => false,
    );
  await eventually(`a certificate for ${name}`, answers, 90_000);
}

export function asManagement({ url, headers }: Arrived): EchoAnswer {
  if (!url.startsWith('/auth/verify')) return { status: 200 };
  const given = headers.filter(([name]) => name === 'authorization').map(([, value]) => value);
  if (url === '/auth/verify?base=core' && given[0]?.startsWith('Bearer ') === true)
    return { status: 200, headers: { 'remote-user': '', 'remote-groups': '' } };
  if (given.length !== 1 || given[0] !== GOOD)
    return { status: 401, headers: { 'www-authenticate': 'Basic realm="Holdfast"' } };
  const [user, groups] = url.includes('base=core') ? ['', ''] : ['ada', 'stack_admin,core_Blue'];
  return { status: 200, headers: { 'remote-user': user, 'remote-groups': groups } };
}

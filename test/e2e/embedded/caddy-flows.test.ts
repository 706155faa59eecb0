// The real flow engine behind the real Caddy, as in containers: whoever Holdfast lets in works in
// the editor, deploys, and hears what happens; nobody else gets an answer of it.

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { Agent, WebSocket } from 'undici';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { freePort } from '../../support/free-port.ts';
import {
  ADDRESS,
  BAD,
  behindCaddy,
  type BehindCaddy,
  FLOWS_TOKEN,
  GOOD,
  issued,
  proxyMissing,
} from './behind-caddy.ts';
import { eventually, home } from './embedded.ts';
import { type FlowNode, flowsMissing, NODE_RED, withTelling } from './flow-engine.ts';

const NAME = `nodered.${ADDRESS}`;
const SIGNED = [`Authorization: ${GOOD}`];
const missing = proxyMissing ?? flowsMissing;

let proxy: BehindCaddy;
let engine: ChildProcess;
let port: number;
let directory: string;
/** What the starting flow streams to; nothing listens for it here. */
let nowhere: Server;

const own = (): string => `https://${NAME}:${proxy.caddy.ports.https}`;

async function deploy(flows: FlowNode[], headers: string[]): Promise<number> {
  const line = 'POST /flows';
  const body = JSON.stringify(flows);
  const same = [`Origin: ${own()}`, 'Sec-Fetch-Site: same-origin', 'Content-Type: application/json'];
  return (await proxy.ask({ name: NAME, line, headers: [...headers, ...same], body })).status;
}

/**
 * The channel of the editor: its first words, once it has asked for what nodes say of themselves.
 */
async function channel(headers: Record<string, string>): Promise<string> {
  const { https } = proxy.caddy.ports;
  const dispatcher = new Agent({
    connect: { ca: proxy.ca, lookup: (_name, _options, found) => found(null, [{ address: '127.0.0.1', family: 4 }]) },
  });
  const socket = new WebSocket(`wss://${NAME}:${https}/comms`, { headers: { ...headers, Origin: own() }, dispatcher });
  try {
    return await new Promise((resolve) => {
      socket.addEventListener('open', () => socket.send(JSON.stringify({ subscribe: 'status/#' })));
      socket.addEventListener('message', ({ data }) => resolve(String(data)));
      socket.addEventListener('error', () => resolve('refused'));
    });
  } finally {
    socket.close();
    await dispatcher.destroy();
  }
}

describe.skipIf(missing !== undefined)(missing ?? 'the flow engine behind Caddy', () => {
  beforeAll(async () => {
    directory = mkdtempSync(join(tmpdir(), 'holdfast-flows-'));
    port = await freePort();
    nowhere = createServer((socket) => socket.destroy()).listen(0, '127.0.0.1');
    await once(nowhere, 'listening');
    engine = spawn('/bin/sh', [join(home, 'compose/flows/start.sh')], {
      stdio: 'ignore',
      env: {
        PATH: `${dirname(process.execPath)}:/usr/bin:/bin`,
        NODE_RED_HOME: NODE_RED,
        FLOWS_TOKEN,
        FLOWS_CREDENTIAL_KEY: 'of-credentials-only',
        FLOWS_PASSWORD: '',
        FLOWS_DIR: directory,
        FLOWS_ADDRESS: '127.0.0.1',
        FLOWS_PORT: String(port),
        COT_HOST: '127.0.0.1',
        COT_PORT: String((nowhere.address() as { port: number }).port),
        COT_SERVER_NAME: 'takserver',
        COT_CERTIFICATE: join(directory, 'none.pem'),
        COT_CA: join(directory, 'none-ca.pem'),
      },
    });
    proxy = await behindCaddy({ env: { FLOWS: `127.0.0.1:${port}` } });
    await issued(proxy);
    await eventually(
      'the engine answers',
      async () => (await fetch(`http://127.0.0.1:${port}/`).catch(() => undefined))?.status === 401,
      60_000,
    );
  });
  afterAll(async () => {
    await proxy?.end();
    engine?.kill('SIGKILL');
    nowhere?.close();
    if (directory !== undefined) rmSync(directory, { recursive: true, force: true });
  });

  it('shows the editor and its settings to an administrator, without a second sign-in', async () => {
    const page = await proxy.ask({ name: NAME, headers: SIGNED });
    expect([page.status, page.body.includes('<title>Node-RED')]).toEqual([200, true]);
    const settings = await proxy.ask({ name: NAME, line: 'GET /settings', headers: SIGNED });
    expect(JSON.parse(settings.body)).toMatchObject({ user: { username: 'holdfast', permissions: '*' } });
    expect(settings.body + page.body).not.toContain(FLOWS_TOKEN);
  });

  it('answers nobody else, whatever he shows of the header', async () => {
    const headers = [`X-Holdfast-Flows: ${FLOWS_TOKEN}`, `x_holdfast_flows: ${FLOWS_TOKEN}`];
    for (const line of ['GET /', 'GET /flows', 'GET /settings', 'POST /flows', 'GET /told']) {
      expect((await proxy.ask({ name: NAME, line, headers })).status).toBe(401);
      expect((await proxy.ask({ name: NAME, line, headers: [`Authorization: ${BAD}`, ...headers] })).status).toBe(401);
    }
    expect(await channel({ 'X-Holdfast-Flows': FLOWS_TOKEN })).toBe('refused');
  });

  it('deploys, opens what flows offer, and hides from them by what they were asked', async () => {
    const flows = JSON.parse((await proxy.ask({ name: NAME, line: 'GET /flows', headers: SIGNED })).body) as FlowNode[];
    expect(await deploy(withTelling(flows), [])).toBe(401);
    expect(await deploy(withTelling(flows), SIGNED)).toBe(204);
    const ask = () => proxy.ask({ name: NAME, line: 'GET /told', headers: SIGNED });
    await eventually('the flows have started', async () => (await ask()).status === 200, 30_000);
    const reported = await ask();
    expect(JSON.parse(reported.body)).toHaveProperty('events');
    expect(reported.body).not.toContain('of-the-flows');
    expect(reported.body).not.toContain('of-credentials-only');
  });

  it('keeps the channel of the editor open to who is signed in', async () => {
    expect(await channel({ Authorization: GOOD })).toContain('status/holdfast-in');
  });
});

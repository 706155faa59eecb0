// Guesses passwords from a thousand addresses, run by guesses.ts: half of them at 8446, half at the
// API. Arguments: the port of the enrollment, the port of the API, and `here`, or `sink` for a
// server of its own that refuses everything at once.

import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer, Agent as HttpAgent, request as httpRequest } from 'node:http';
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https';
import type { AddressInfo } from 'node:net';

const [, , enrollment = '', api = '', target = 'sink'] = process.argv;
const ADDRESSES = 1_000;
const CONCURRENCY = 64;
const NAMES = ['akadmin', 'guessed1', 'guessed2', 'guessed3'];
const done: Record<string, number> = {};
const agents = new Map<string, HttpAgent>();
let sinkPort = 0;

if (target === 'sink') {
  const sink = createServer((_, response) => response.writeHead(401).end()).listen(0, '127.0.0.1');
  await once(sink, 'listening');
  sinkPort = (sink.address() as AddressInfo).port;
}

/** The connection of an address is kept, as a browser or a script keeps it. */
function agentOf(address: string, isTls: boolean): HttpAgent {
  const key = `${address} ${isTls}`;
  const agent = agents.get(key) ?? new (isTls ? HttpsAgent : HttpAgent)({ keepAlive: true, maxSockets: 1 });
  agents.set(key, agent);
  return agent;
}

async function guess(number: number): Promise<void> {
  const index = number % ADDRESSES;
  const localAddress = `127.1.${index >> 8}.${index & 255 || 1}`;
  const isEnrollment = index % 2 === 0;
  const isTls = isEnrollment && target !== 'sink';
  // Half of the names do not exist.
  const name = number % 4 < 2 ? randomBytes(4).toString('hex') : (NAMES[number % NAMES.length] ?? '');
  const authorization = `Basic ${Buffer.from(`${name}:${randomBytes(8).toString('hex')}`).toString('base64')}`;
  const port = target === 'sink' ? sinkPort : Number(isEnrollment ? enrollment : api);
  const path = isEnrollment ? '/Marti/api/tls/config' : '/api/health';
  const options = {
    host: '127.0.0.1',
    port,
    path,
    localAddress,
    headers: { authorization },
    rejectUnauthorized: false,
  };
  const sent = (isTls ? httpsRequest : httpRequest)({ ...options, agent: agentOf(localAddress, isTls) });
  sent.end();
  const [response] = (await once(sent, 'response')) as [{ statusCode: number; resume(): void }];
  response.resume();
  done[response.statusCode] = (done[response.statusCode] ?? 0) + 1;
}

let next = 0;
async function goOn(): Promise<never> {
  for (;;) await guess(next++).catch(() => void (done['failed'] = (done['failed'] ?? 0) + 1));
}
for (let number = 0; number < CONCURRENCY; number++) void goOn();
process.once('SIGTERM', () => {
  const text = Object.entries(done).map(([what, times]) => `${times} times ${what}`);
  process.stdout.write(`${text.join(', ')}\n`, () => process.exit(0));
});
process.stdout.write('ready\n');

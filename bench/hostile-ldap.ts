// A hostile LDAP client, run by ldap.ts: floods of wrong passwords, garbage, half messages, slow
// senders, connections that come and go. Arguments: `directory` or `sink`, the port of the
// directory, the name of an account.

import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { type AddressInfo, connect, createServer } from 'node:net';
import { Client } from 'ldapts';

const [, , target = 'sink', directoryPort = '', dn = ''] = process.argv;
const done: Record<string, number> = {};
let port = Number(directoryPort);

const count = (what: string): void => void (done[what] = (done[what] ?? 0) + 1);
const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** Answers every bind with 49 at once, whatever is in it, and swallows the rest. */
async function openSink(): Promise<void> {
  const server = createServer((socket) => {
    socket.on('error', () => socket.destroy());
    socket.on('data', (chunk) => {
      if (chunk[0] !== 0x30) socket.destroy();
      else if (chunk[2] === 2) socket.write(refusalOf(chunk));
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  ({ port } = server.address() as AddressInfo);
}

function refusalOf(request: Buffer): Buffer {
  const id = request.subarray(2, 4 + (request[3] ?? 0));
  const body = Buffer.from([0x61, 0x07, 0x0a, 0x01, 49, 0x04, 0x00, 0x04, 0x00]);
  return Buffer.concat([Buffer.from([0x30, id.length + body.length]), id, body]);
}

/** Wrong passwords for an account that exists, and for names that do not. */
async function guess(): Promise<never> {
  for (;;) {
    const client = new Client({ url: `ldap://127.0.0.1:${port}`, timeout: 5000 });
    try {
      for (let time = 0; time < 50; time++) {
        const name = time % 2 === 0 ? dn : dn.replace(/^cn=[^,]*/, `cn=${randomBytes(6).toString('hex')}`);
        await client.bind(name, randomBytes(8).toString('hex')).then(
          () => count('accepted'),
          () => count('refused'),
        );
      }
    } finally {
      await client.unbind().catch(() => undefined);
    }
  }
}

async function throwGarbage(): Promise<never> {
  const kinds = [
    () => randomBytes(200),
    () => Buffer.from([0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3]),
    () => Buffer.from('GET / HTTP/1.1\r\nHost: x\r\n\r\n'),
    () => Buffer.from([0x30, 0x84, 0x7f, 0xff, 0xff, 0xff, 2, 1, 1]),
    () => Buffer.concat([Buffer.from([0x30, 0x82, 0x10, 0, 2, 1, 1, 0x63]), Buffer.alloc(2000, 0xa0)]),
  ];
  for (let time = 0; ; time++) {
    const socket = connect(port, '127.0.0.1').on('error', () => undefined);
    socket.write(kinds[time % kinds.length]?.() ?? '');
    await pause(5);
    socket.destroy();
    count('garbage');
  }
}

/** A message that comes one byte at a time and never ends. */
async function sendSlowly(): Promise<never> {
  for (;;) {
    const socket = connect(port, '127.0.0.1').on('error', () => undefined);
    socket.write(Buffer.from([0x30, 0x82, 0x20, 0]));
    count('slow senders');
    for (let sent = 0; sent < 2000 && !socket.destroyed; sent++) {
      socket.write(Buffer.from([0x04]));
      await pause(10);
    }
    socket.destroy();
  }
}

if (target === 'sink') await openSink();
for (let number = 0; number < 48; number++) void guess();
for (let number = 0; number < 8; number++) void throwGarbage();
for (let number = 0; number < 64; number++) void sendSlowly();
process.once('SIGTERM', () => {
  process.stdout.write(
    `${Object.entries(done)
      .map(([what, times]) => `${times} ${what}`)
      .join(', ')}\n`,
    () => process.exit(0),
  );
});
process.stdout.write('ready\n');

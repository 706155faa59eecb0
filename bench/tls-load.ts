// Handshakes from a process of its own: full ones or resumed ones, on several connections at once,
// for a while. Prints how many were finished on both sides. TLS 1.3 is through on the client's side
// before the server has looked at its certificate, so the client says its goodbye at once, and what
// counts is that the server has answered it: after a full handshake with a ticket, which nobody
// gets whose certificate does not count. A resumed one brings no new ticket.

import { readFileSync } from 'node:fs';
import { connect, createSecureContext } from 'node:tls';

export interface TlsLoadOrder {
  port: number;
  ca: string;
  /** PEM files of the client. */
  certificate: string;
  key: string;
  resumed: boolean;
  connections: number;
  forMs: number;
}

const order = JSON.parse(process.argv[2] ?? '{}') as TlsLoadOrder;
const secureContext = createSecureContext({
  ca: readFileSync(order.ca),
  cert: readFileSync(order.certificate),
  key: readFileSync(order.key),
  // As phones ask for it. What Node.js itself asks for, with ML-KEM, costs a third more in a
  // resumed handshake.
  ecdhCurve: 'X25519',
});

const REQUEST = 'GET /Marti/api/version HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n';

interface Finished {
  ticket: Buffer | undefined;
  /** What the server said. */
  answer: string;
}

/** Rejects when it was not finished, or not resumed with the ticket that was given. */
function handshake(session?: Buffer, say = ''): Promise<Finished> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host: '127.0.0.1', port: order.port, secureContext, ...(session && { session }) });
    let ticket: Buffer | undefined;
    let answer = '';
    socket.setTimeout(5_000, () => socket.destroy(new Error('no answer within 5 s')));
    socket.on('session', (given: Buffer) => (ticket = given));
    socket.once('secureConnect', () => (say === '' ? socket.end() : socket.write(say)));
    socket.on('data', (chunk: Buffer) => (answer += chunk.toString()));
    socket.once('end', () => {
      if (session === undefined ? ticket !== undefined : socket.isSessionReused()) resolve({ ticket, answer });
    });
    socket.once('error', reject);
    socket.once('close', () => reject(new Error('the connection was closed without a ticket, or not resumed')));
  });
}

/** The server lets this certificate in; resolves with a ticket of it. */
async function served(session?: Buffer): Promise<Buffer | undefined> {
  const { ticket, answer } = await handshake(session, REQUEST);
  if (!answer.startsWith('HTTP/1.1 200 ')) throw new Error(`not let in: ${answer.slice(0, 100)}`);
  return ticket;
}

const given = await served();
const session = order.resumed ? given : undefined;
await served(session);
const begun = performance.now();
let done = 0;
await Promise.all(
  Array.from({ length: order.connections }, async () => {
    while (performance.now() - begun < order.forMs) {
      await handshake(session);
      done++;
    }
  }),
);
await served(session);
process.stdout.write(String(done));

// A TLS broadcaster to measure against: the same certificates, TLS 1.3, TCP_NODELAY; copies every
// chunk that it reads to every other connection and looks at nothing. A sender rests while a
// receiver has more than MOST_WAITING. Run as a process of its own: node bench/cot-bare.ts JSON,
// where the JSON is a CotFiles of the server; prints its port.

import { readFileSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { createServer, type TLSSocket } from 'node:tls';
import type { CotFiles } from './cot-order.ts';

const MAX_WAITING = 4 * 1024 * 1024;
const files = JSON.parse(process.argv[2] ?? '{}') as CotFiles;
const open = new Set<TLSSocket>();

const server = createServer(
  {
    ca: readFileSync(files.ca),
    cert: readFileSync(files.certificate),
    key: readFileSync(files.key),
    requestCert: true,
    rejectUnauthorized: true,
    minVersion: 'TLSv1.3',
    noDelay: true,
  },
  (socket) => {
    open.add(socket);
    socket.on('error', () => socket.destroy());
    socket.once('close', () => open.delete(socket));
    socket.on('data', (chunk: Buffer) => {
      for (const other of open) {
        if (other === socket) continue;
        other.write(chunk);
        if (other.writableLength > MAX_WAITING) restUntilRead(socket, other);
      }
    });
  },
);
process.once('disconnect', () => process.exit(0));
server.listen(0, '127.0.0.1', () => process.stdout.write(`${(server.address() as AddressInfo).port}\n`));

function restUntilRead(sender: TLSSocket, receiver: TLSSocket): void {
  sender.pause();
  receiver.once('drain', () => sender.resume());
  receiver.once('close', () => sender.resume());
}

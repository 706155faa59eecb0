// The way of an image's build to npm's registry, and to nothing else: the engine's network has no
// other way out.

import { once } from 'node:events';
import { createServer } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';

const ALLOWED = 'registry.npmjs.org:443';

export interface PackageRelay extends AsyncDisposable {
  /** The value of HTTPS_PROXY. */
  url: string;
  refused: string[];
}

export async function startPackageRelay(address: string): Promise<PackageRelay> {
  const sockets = new Set<Socket>();
  const refused: string[] = [];
  const server = createServer((_request, response) => response.writeHead(405).end());
  server.on('connection', (socket) => sockets.add(socket.once('close', () => sockets.delete(socket))));
  server.on('connect', ({ url = '' }, socket: Socket) => {
    socket.on('error', () => socket.destroy());
    if (url !== ALLOWED) {
      refused.push(url);
      socket.end('HTTP/1.1 403 Forbidden\r\n\r\n');
      return;
    }
    const [host = '', port = ''] = url.split(':');
    const onward = connect(Number(port), host, () => {
      socket.write('HTTP/1.1 200 Connection Established\r\n\r\n');
      socket.pipe(onward).pipe(socket);
    });
    sockets.add(onward.once('close', () => sockets.delete(onward)));
    onward.on('error', () => socket.destroy());
    socket.once('close', () => onward.destroy());
  });
  server.listen(0, address);
  await once(server, 'listening');
  return {
    url: `http://${address}:${String((server.address() as AddressInfo).port)}`,
    refused,
    async [Symbol.asyncDispose]() {
      const over = once(server, 'close');
      server.close();
      for (const socket of sockets) socket.destroy();
      await over;
    },
  };
}

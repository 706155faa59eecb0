// An upstream that tells what has reached it, and speaks as much WebSocket as shows that bytes go both ways.

import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';

const WEBSOCKET = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11';

export interface Arrived {
  method: string;
  url: string;
  /** Lower case names, in their order, each time one was sent. */
  headers: [string, string][];
  body: string;
}

export interface EchoServer {
  /** host:port */
  place: string;
  arrived: Arrived[];
  end(): Promise<void>;
}

export interface EchoAnswer {
  status: number;
  headers?: Record<string, string>;
}

/** With a certificate it speaks TLS. `answer` says more than 200 and the echo as JSON. Port 0: a free one. */
export async function startEcho(
  tls?: { certificate: string; key: string },
  answer: (arrived: Arrived) => EchoAnswer | 'hang up' = () => ({ status: 200 }),
  port = 0,
): Promise<EchoServer> {
  const arrived: Arrived[] = [];
  const server: Server = tls === undefined ? createServer() : createTlsServer({ cert: tls.certificate, key: tls.key });
  server.on('request', (request, response) => {
    let body = '';
    request.on('data', (chunk: Buffer) => (body += chunk.toString()));
    request.on('end', () => {
      const each = { ...headOf(request), body };
      arrived.push(each);
      const wanted = answer(each);
      if (wanted === 'hang up') return request.socket.destroy();
      return response
        .writeHead(wanted.status, { 'content-type': 'application/json', ...wanted.headers })
        .end(JSON.stringify(each));
    });
  });
  server.on('upgrade', (request, socket) => {
    arrived.push({ ...headOf(request), body: '' });
    const key = `${request.headers['sec-websocket-key']}${WEBSOCKET}`;
    const accept = createHash('sha1').update(key).digest('base64');
    const head = ['HTTP/1.1 101 Switching Protocols', 'Upgrade: websocket', 'Connection: Upgrade'];
    socket.write(`${[...head, `Sec-WebSocket-Accept: ${accept}`].join('\r\n')}\r\n\r\n`);
    socket.on('error', () => undefined);
    socket.pipe(socket);
  });
  server.listen(port, '127.0.0.1');
  await once(server, 'listening');
  return {
    place: `127.0.0.1:${(server.address() as AddressInfo).port}`,
    arrived,
    async end() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

function headOf({ method = '', url = '', rawHeaders }: IncomingMessage): Omit<Arrived, 'body'> {
  const headers: [string, string][] = [];
  for (let at = 0; at < rawHeaders.length; at += 2)
    headers.push([(rawHeaders[at] ?? '').toLowerCase(), rawHeaders[at + 1] ?? '']);
  return { method, url, headers };
}

// A socket of a connection to PostgreSQL that does not keep this process from ending.

import { once } from 'node:events';
import { createConnection, type Socket } from 'node:net';
import type { ConnectTo } from './postgres.ts';

// A socket of a connection to PostgreSQL that does not keep this process from ending.

/** To the first of the hosts that answers. */
export async function unattendedSocket({ host, port, path }: ConnectTo): Promise<Socket> {
  if (path !== false) return connected(createConnection({ path }));
  for (const [place, name] of host.entries()) {
    const socket = createConnection({ host: name, port: port[place] ?? 5432 });
    try {
      // The client asks for the host when it checks a certificate.
      return Object.assign(await connected(socket), { host: name });
    } catch (error) {
      if (place === host.length - 1) throw error;
    }
  }
  throw new Error('no host');
}

export async function connected(socket: Socket): Promise<Socket> {
  socket.unref();
  await once(socket, 'connect');
  return socket;
}

// Serves an app on Node: plain HTTP on one address, and over TLS on another where that is asked for.

import { readFileSync } from 'node:fs';
import type { Server } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { TLSSocket } from 'node:tls';
import { createAdaptorServer, type HttpBindings } from '@hono/node-server';
import type { HostFetch } from '../http/request-log.ts';

export interface Listener {
  address: string;
  port: number;
  /** PEM files; without them the listener speaks plain HTTP. */
  tls?: { certificateFile: string; keyFile: string };
}

export interface RunningServer {
  /** Stops accepting, lets running requests end for at most `graceMs`, then closes every connection. */
  close(graceMs: number): Promise<void>;
}

/** Listens on every address, or on none: a failure closes those that were open. */
export async function serveApp(fetch: HostFetch, listeners: readonly Listener[]): Promise<RunningServer> {
  const servers: Server[] = [];
  const close = async (graceMs: number): Promise<void> => {
    await Promise.all(servers.map((server) => closeServer(server, graceMs)));
  };
  try {
    for (const listener of listeners) servers.push(await openServer(fetch, listener));
  } catch (error) {
    await close(0);
    throw error;
  }
  return { close };
}

async function openServer(fetch: HostFetch, listener: Listener): Promise<Server> {
  const server = createAdaptorServer({
    fetch: (request: Request, env: unknown) => fetch(request, connectionOf(env as HttpBindings)),
    ...(listener.tls === undefined ? {} : { createServer: createTlsServer, serverOptions: tlsOptions(listener.tls) }),
  }) as Server;
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(listener.port, listener.address, () => {
      server.off('error', reject);
      resolve();
    });
  });
  return server;
}

function connectionOf({ incoming }: HttpBindings): { clientAddress: string; secure: boolean } {
  const address = incoming.socket.remoteAddress ?? '';
  return { clientAddress: address.replace(/^::ffff:/, ''), secure: incoming.socket instanceof TLSSocket };
}

function tlsOptions(files: { certificateFile: string; keyFile: string }) {
  return {
    cert: readFileSync(files.certificateFile),
    key: readFileSync(files.keyFile),
    minVersion: 'TLSv1.2' as const,
  };
}

async function closeServer(server: Server, graceMs: number): Promise<void> {
  const closed = new Promise<void>((resolve) => server.close(() => resolve()));
  server.closeIdleConnections();
  const timer = setTimeout(() => server.closeAllConnections(), graceMs);
  await closed;
  clearTimeout(timer);
}

// Serves an app on Node: plain HTTP on one address, and over TLS on another where that is asked for.

import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { createServer as createTlsServer, Server as TlsServer } from 'node:https';
import { TLSSocket } from 'node:tls';
import { getRequestListener, type HttpBindings } from '@hono/node-server';
import { AppError } from '../domain/app-error.ts';
import type { Face } from '../http/env.ts';
import { problemResponse } from '../http/problem.ts';
import type { Connection, HostFetch } from '../http/request-log.ts';
import type { Log } from '../ports/log.ts';
import { messageOf } from '../domain/thrown.ts';
import { type CertificateFiles, takeRenewed, tlsOptions } from './renewed-certificate.ts';

export interface Listener {
  address: string;
  port: number;
  /** What it shows; without it what the app shows by itself. */
  face?: Face;
  /** Without them the listener speaks plain HTTP. */
  tls?: CertificateFiles;
}

export interface RunningServer {
  /** Stops accepting, lets running requests end for at most `graceMs`, then closes every connection. */
  close(graceMs: number): Promise<void>;
}

const LOOK_EVERY_MS = 60_000;
const IDLE_LOOKED_FOR_EVERY_MS = 25;

/**
 * Listens on every address, or on none: a failure closes those that were open. A certificate that was renewed is taken
 * within `lookEveryMs`; default one minute.
 */
export async function serveApp(
  fetch: HostFetch,
  listeners: readonly Listener[],
  log: Log,
  { lookEveryMs = LOOK_EVERY_MS }: { lookEveryMs?: number } = {},
): Promise<RunningServer> {
  const servers: Server[] = [];
  const close = async (graceMs: number): Promise<void> => {
    await Promise.all(servers.map((server) => closeServer(server, graceMs)));
  };
  try {
    for (const listener of listeners) servers.push(await openServer(fetch, listener, log, lookEveryMs));
  } catch (error) {
    await close(0);
    throw error;
  }
  return { close };
}

async function openServer(fetch: HostFetch, listener: Listener, log: Log, lookEveryMs: number): Promise<Server> {
  const answer = getRequestListener(
    (request, env) => fetch(request, connectionOf(env as HttpBindings, listener.face)),
    {
      errorHandler: (error) => refuseUnreadable(error, log),
    },
  );
  const handle = (incoming: IncomingMessage, outgoing: ServerResponse): void => void answer(incoming, outgoing);
  const secured = listener.tls && tlsOptions(listener.tls);
  const server = secured === undefined ? createServer(handle) : createTlsServer(secured, handle);
  server.listen(listener.port, listener.address);
  await once(server, 'listening');
  if (listener.tls !== undefined && secured !== undefined && server instanceof TlsServer)
    server.once('close', takeRenewed(server, listener.tls, secured, lookEveryMs, log));
  return server;
}

/** A request line or a Host header that no URL can be made of never reaches the app. */
function refuseUnreadable(error: unknown, log: Log): Response {
  const requestId = crypto.randomUUID();
  const cause = messageOf(error);
  log.warn('http.unreadable', { request_id: requestId, status: 400, error: cause });
  return problemResponse(new AppError('malformed', 'The address or the Host header cannot be read.'), requestId);
}

const IPV4_AS_IPV6 = '::ffff:';

function connectionOf({ incoming }: HttpBindings, face: Face | undefined): Connection {
  const address = incoming.socket.remoteAddress ?? '';
  const clientAddress = address.startsWith(IPV4_AS_IPV6) ? address.slice(IPV4_AS_IPV6.length) : address;
  const connection = { clientAddress, secure: incoming.socket instanceof TLSSocket };
  return face === undefined ? connection : { ...connection, face };
}

/** A connection that is kept open ends with the request that runs on it, not with its time limit. */
async function closeServer(server: Server, graceMs: number): Promise<void> {
  const closed = new Promise<void>((resolve) => server.close(() => resolve()));
  server.closeIdleConnections();
  const idle = setInterval(() => server.closeIdleConnections(), IDLE_LOOKED_FOR_EVERY_MS);
  const timer = setTimeout(() => server.closeAllConnections(), graceMs);
  await closed;
  clearInterval(idle);
  clearTimeout(timer);
}

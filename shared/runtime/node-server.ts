// Serves an app on Node: plain HTTP on one address, and over TLS on another where that is asked
// for.

import { X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { readFile, stat } from 'node:fs/promises';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { createServer as createTlsServer, Server as TlsServer } from 'node:https';
import { createSecureContext, type Server as TlsListener, TLSSocket } from 'node:tls';
import { getRequestListener, type HttpBindings } from '@hono/node-server';
import { AppError, messageOf } from '@holdfast/kit/app-error';
import type { Log } from '@holdfast/kit/log';
import { HOUR_MS, MINUTE_MS } from '@holdfast/kit/time';
import type { Face } from '../http/context.ts';
import { problemResponse } from '../http/problem.ts';
import type { Connection, HostFetch } from '../http/request-log.ts';

/**
 * A TLS server takes a renewed certificate while it runs: the files are looked at from time to
 * time, and connections that are open go on with the certificate that they have. PEM files: the
 * certificate with what stands above it, and its private key.
 */
export interface CertificateFiles {
  certificateFile: string;
  keyFile: string;
}

interface Pair {
  cert: Buffer;
  key: Buffer;
}

/**
 * What a TLS server of ours is made with, read from the files now; throws when one cannot be read.
 */
export function tlsOptions({ certificateFile, keyFile }: CertificateFiles): Pair & { minVersion: 'TLSv1.2' } {
  return withOptions({ cert: readFileSync(certificateFile), key: readFileSync(keyFile) });
}

function withOptions(pair: Pair): Pair & { minVersion: 'TLSv1.2' } {
  return { ...pair, minVersion: 'TLSv1.2' };
}

/**
 * Looks at the files every `everyMs` and gives the server what has changed; `inUse` is what it has
 * now. Files that are missing, cut off or do not fit together are left alone until they do: the one
 * who renews them writes two files. Returns what ends the looking.
 */
export function takeRenewed(
  server: Pick<TlsListener, 'setSecureContext'>,
  files: CertificateFiles,
  inUse: Pair,
  everyMs: number,
  log: Log,
): () => void {
  let current = inUse;
  let seen: string | undefined;
  let refused: string | undefined;
  let looking = false;

  async function look(): Promise<void> {
    const state = await stateOf(files);
    if (state === seen) return;
    const pair = { cert: await readFile(files.certificateFile), key: await readFile(files.keyFile) };
    if (!pair.cert.equals(current.cert) || !pair.key.equals(current.key)) take(pair);
    seen = state;
    refused = undefined;
  }

  function take(pair: Pair): void {
    // Throws when the key is not that of the certificate; the server would take them all the same.
    createSecureContext(withOptions(pair));
    server.setSecureContext(withOptions(pair));
    current = pair;
    const expiresAt = new X509Certificate(pair.cert).validToDate.toISOString();
    log.info('tls.renewed', { file: files.certificateFile, expires_at: expiresAt });
  }

  /** Said once for each reason. */
  function leaveAlone(error: unknown): void {
    const reason = messageOf(error);
    if (reason !== refused) log.warn('tls.not_renewed', { file: files.certificateFile, error: reason });
    refused = reason;
  }

  const timer = setInterval(() => {
    if (looking) return;
    looking = true;
    void look()
      .catch(leaveAlone)
      .finally(() => (looking = false));
  }, everyMs);
  timer.unref();
  return () => clearInterval(timer);
}

/**
 * Another one after every write, also after one that renames a new file into the place of the old
 * one.
 */
async function stateOf({ certificateFile, keyFile }: CertificateFiles): Promise<string> {
  const states = await Promise.all([certificateFile, keyFile].map((file) => stat(file, { bigint: true })));
  return states.map(({ ino, size, mtimeNs }) => `${ino} ${size} ${mtimeNs}`).join(', ');
}

export interface Listener {
  address: string;
  port: number;
  /** What it shows; without it what the app shows by itself. */
  face?: Face;
  /** Without them the listener speaks plain HTTP. */
  tls?: CertificateFiles;
}

export interface RunningServer {
  /**
   * Stops accepting, lets running requests end for at most `graceMs`, then closes every connection.
   */
  close(graceMs: number): Promise<void>;
}

const LOOK_EVERY_MS = 60_000;
const KEEP_ALIVE_MS = 5_000;
const IDLE_LOOKED_FOR_EVERY_MS = 25;
/** A large file over a slow link takes as long as it takes; one that stands still does not. */
const REQUEST_WITHIN_MS = HOUR_MS;
const STALLED_MS = 2 * MINUTE_MS;

interface ServeOptions {
  lookEveryMs?: number;
  /** How long a connection is kept that has nothing to say. */
  keepAliveMs?: number;
  /** How long a request may stop in the middle of its body. */
  stalledMs?: number;
}

/**
 * Listens on every address, or on none: a failure closes those that were open. A certificate that
 * was renewed is taken within `lookEveryMs`; default one minute. A request may last an hour, and
 * stop for `stalledMs`; default two minutes.
 */
export async function serveApp(
  fetch: HostFetch,
  listeners: readonly Listener[],
  log: Log,
  { lookEveryMs = LOOK_EVERY_MS, keepAliveMs = KEEP_ALIVE_MS, stalledMs = STALLED_MS }: ServeOptions = {},
): Promise<RunningServer> {
  const servers: Server[] = [];
  const close = async (graceMs: number): Promise<void> => {
    await Promise.all(servers.map((server) => closeServer(server, graceMs)));
  };
  try {
    for (const listener of listeners)
      servers.push(await openServer(fetch, listener, log, { lookEveryMs, keepAliveMs, stalledMs }));
  } catch (error) {
    await close(0);
    throw error;
  }
  return { close };
}

async function openServer(
  fetch: HostFetch,
  listener: Listener,
  log: Log,
  { lookEveryMs, keepAliveMs, stalledMs }: Required<ServeOptions>,
): Promise<Server> {
  const answer = getRequestListener(
    (request, env) => fetch(request, connectionOf(env as HttpBindings, listener.face)),
    {
      errorHandler: (error) => refuseUnreadable(error, log),
    },
  );
  const handle = (incoming: IncomingMessage, outgoing: ServerResponse): void => {
    // Only while the body has not come whole.
    incoming.once('timeout', () => incoming.destroy());
    // Whoever has sent all waits for us.
    outgoing.on('timeout', () => undefined);
    void answer(incoming, outgoing);
  };
  const secured = listener.tls && tlsOptions(listener.tls);
  const limits = { keepAliveTimeout: keepAliveMs, requestTimeout: REQUEST_WITHIN_MS };
  const server =
    secured === undefined ? createServer(limits, handle) : createTlsServer({ ...limits, ...secured }, handle);
  server.setTimeout(stalledMs);
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
  return problemResponse(new AppError('malformed', 'The address or the Host header is invalid.'), requestId);
}

const IPV4_AS_IPV6 = '::ffff:';

function connectionOf({ incoming }: HttpBindings, face: Face | undefined): Connection {
  const address = incoming.socket.remoteAddress ?? '';
  const clientAddress = address.startsWith(IPV4_AS_IPV6) ? address.slice(IPV4_AS_IPV6.length) : address;
  const connection = { clientAddress, secure: incoming.socket instanceof TLSSocket };
  return face === undefined ? connection : { ...connection, face };
}

/**
 * A connection that is kept open ends with the request that runs on it, not with its time limit.
 */
async function closeServer(server: Server, graceMs: number): Promise<void> {
  const closed = new Promise<void>((resolve) => server.close(() => resolve()));
  server.closeIdleConnections();
  const idle = setInterval(() => server.closeIdleConnections(), IDLE_LOOKED_FOR_EVERY_MS);
  const timer = setTimeout(() => server.closeAllConnections(), graceMs);
  await closed;
  clearInterval(idle);
  clearTimeout(timer);
}

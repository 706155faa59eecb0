// A TLS port of the core, TLS 1.2 and 1.3: handshake, admission by certificate where one is asked for, a bounded number of
// connections. Who is let in is handed on as a socket; what is spoken on it is another file's matter.

import { once } from 'node:events';
import { createServer as createRawServer, type Server as RawServer, type Socket } from 'node:net';
import { createServer as createTlsServer, type TlsOptions, type TLSSocket } from 'node:tls';
import { urlHost } from '@holdfast/kit/addresses';
import { codeOf, messageOf, StackError } from '@holdfast/kit/app-error';
import { lockoutAddress } from '@holdfast/kit/lockout';
import type { Log } from '@holdfast/kit/log';
import { oneLine, shortened } from '@holdfast/kit/text';
import { MINUTE_MS } from '@holdfast/kit/time';
import type { Arrival, KnownCertificate, LiveConnections } from '../model/parts.ts';
import type { Admission } from './admission.ts';
import type { ServerIdentity } from './server-identity.ts';
import { openConnections } from './connections.ts';

// What a port reports of clients that it does not serve: the first of a minute one by one, then counts once a minute.
// Nobody can fill the log.

export type PortTrouble =
  | 'handshake failed'
  | 'certificate refused'
  | 'gave way'
  | 'turned away'
  | 'unreadable request'
  | 'failed';

export interface PortEvents {
  happened(trouble: PortTrouble, fields: { address: string; reason?: string }): void;
  /** Called often; writes the counts when a minute is over. */
  tick(): void;
}

const LINES_PER_MINUTE = 20;
const SHOWN_CHARACTERS = 200;

/** `name` is the port's, in every line; `now` counts milliseconds. */
export function createPortEvents(log: Log, name: string, now: () => number): PortEvents {
  let counts: Partial<Record<PortTrouble, number>> = {};
  let lines = 0;
  let since = now();

  return {
    happened(trouble, { address, reason }) {
      counts[trouble] = (counts[trouble] ?? 0) + 1;
      if (lines >= LINES_PER_MINUTE) return;
      lines++;
      const why = reason === undefined ? {} : { reason: shortened(oneLine(reason), SHOWN_CHARACTERS) };
      log[trouble === 'failed' ? 'error' : 'info'](`core.${trouble.replaceAll(' ', '_')}`, {
        port: name,
        address,
        ...why,
      });
    },
    tick() {
      if (now() - since < MINUTE_MS) return;
      since = now();
      lines = 0;
      if (Object.keys(counts).length > 0) log.info('core.minute', { port: name, ...counts });
      counts = {};
    },
  };
}

export interface CoreListenerOptions {
  /** In the log; and it keeps the sessions of a port apart from those of others. */
  name: string;
  port: number;
  addresses: readonly string[];
  identity: ServerIdentity;
  /** With it a certificate of our CA is demanded; without it nobody is asked for one. */
  admission?: Admission;
  live: LiveConnections;
  accepted: (arrival: Arrival) => void;
  log: Log;
  mostConnections?: number;
  handshakeWithinMs?: number;
}

export interface CoreListener {
  events: PortEvents;
  /** On every address, or on none: rejects with a StackError that names the one that cannot be had. */
  listen(): Promise<void>;
  /** New secrets: no ticket that was given out before is taken any more. Open connections go on. */
  renew(identity: ServerIdentity): void;
  /** Stops accepting, lets those at work end for at most `graceMs`, then closes every connection. */
  close(graceMs: number): Promise<void>;
}

const MOST_CONNECTIONS = 2048;
const HANDSHAKE_WITHIN_MS = 10_000;
const LOOK_EVERY_MS = 10_000;
/** Of silence: a device that is gone without a word shows some ten minutes later, as long as the system asks. */
const PROBED_AFTER_MS = 60_000;
const IPV4_AS_IPV6 = '::ffff:';

export function createCoreListener(options: CoreListenerOptions): CoreListener {
  const { name, port, addresses, admission, live, accepted, log } = options;
  const events = createPortEvents(log, name, () => performance.now());
  const open = openConnections(options.mostConnections ?? MOST_CONNECTIONS);
  /** The handshake is told by another object than the connection; both know their ends. */
  const arriving = new Map<string, Socket>();
  const admitted = new Map<TLSSocket, KnownCertificate>();
  const entrances: RawServer[] = [];
  const server = createTlsServer({
    ...contextOptions(options.identity),
    requestCert: admission !== undefined,
    rejectUnauthorized: admission !== undefined,
    handshakeTimeout: options.handshakeWithinMs ?? HANDSHAKE_WITHIN_MS,
  });
  server.on('secureConnection', welcome);
  server.on('tlsClientError', (error, socket) => {
    if (leftWithoutWord(error, socket)) return;
    events.happened('handshake failed', { address: addressOf(socket), reason: codeOf(error) ?? messageOf(error) });
    socket.destroy();
  });
  const looking = setInterval(look, LOOK_EVERY_MS).unref();

  function contextOptions({ certificate, key, ca }: ServerIdentity): TlsOptions {
    return {
      cert: certificate,
      key,
      minVersion: 'TLSv1.2',
      sessionIdContext: `holdfast ${name}`,
      ...(admission === undefined ? {} : { ca }),
    };
  }

  function arrive(raw: Socket): void {
    const address = addressOf(raw);
    const { taken, gaveWay } = open.take(raw, lockoutAddress(address));
    if (gaveWay !== undefined) events.happened('gave way', { address });
    if (!taken) {
      events.happened('turned away', { address });
      raw.destroy();
      return;
    }
    const ends = endsOf(raw);
    arriving.set(ends, raw);
    raw.once('close', () => {
      if (arriving.get(ends) === raw) arriving.delete(ends);
    });
    raw.on('error', () => raw.destroy());
    server.emit('connection', raw);
  }

  function welcome(socket: TLSSocket): void {
    socket.on('error', () => socket.destroy());
    const ends = endsOf(socket);
    const raw = arriving.get(ends);
    arriving.delete(ends);
    if (raw === undefined) {
      socket.destroy();
      return;
    }
    socket.disableRenegotiation();
    const clientAddress = addressOf(socket);
    const known = admission?.check(socket);
    if (typeof known === 'string') {
      events.happened('certificate refused', { address: clientAddress, reason: known });
      socket.destroy();
      return;
    }
    if (known !== undefined) {
      admitted.set(socket, known);
      socket.once('close', () => admitted.delete(socket));
      live.add(socket, known.certificate);
    }
    open.busy(raw);
    accepted({ socket, clientAddress, known, busy: () => open.busy(raw), idle: () => open.idle(raw) });
  }

  /** A certificate may end while its connection is open. */
  function look(): void {
    events.tick();
    for (const [socket, known] of admitted) if (admission?.refusal(known) !== undefined) socket.destroy();
  }

  async function listenOn(address: string): Promise<void> {
    const entrance = createRawServer(
      { noDelay: true, keepAlive: true, keepAliveInitialDelay: PROBED_AFTER_MS },
      arrive,
    );
    try {
      await once(entrance.listen({ host: address, port, exclusive: true }), 'listening');
    } catch (error) {
      throw new StackError(
        `${urlHost(address)}:${port} (${name}) cannot be listened on: ${codeOf(error) ?? messageOf(error)}.`,
        'stop what holds it, or shift every port with --offset 1000',
        error,
      );
    }
    entrance.on('error', (error) => log.error('core.accept_failed', { port: name, error: messageOf(error) }));
    entrances.push(entrance);
  }

  async function close(graceMs: number): Promise<void> {
    clearInterval(looking);
    for (const entrance of entrances) entrance.close();
    open.endIdle();
    const timer = setTimeout(() => open.endAll(), graceMs);
    await open.none();
    clearTimeout(timer);
  }

  return {
    events,
    async listen() {
      try {
        for (const address of addresses) await listenOn(address);
      } catch (error) {
        await close(0);
        throw error;
      }
    },
    renew: (identity) => server.setSecureContext(contextOptions(identity)),
    close,
  };
}

function endsOf({ remoteAddress, remotePort, localAddress, localPort }: Socket): string {
  return `${remoteAddress} ${remotePort} ${localAddress} ${localPort}`;
}

/** Somebody who only looks whether the port is open, as health checks do: no handshake was begun. */
function leftWithoutWord(error: Error, { _parent: raw }: TLSSocket & { _parent?: Socket }): boolean {
  return codeOf(error) === 'ECONNRESET' && raw?.bytesRead === 0;
}

function addressOf({ remoteAddress = '' }: Socket): string {
  return remoteAddress.startsWith(IPV4_AS_IPV6) ? remoteAddress.slice(IPV4_AS_IPV6.length) : remoteAddress;
}

// Listens on a TLS port of the core (TLS 1.2 and 1.3): handshake, admission by certificate,
// connection limit. Hands admitted sockets on, independent of their protocol.

import { once } from 'node:events';
import { createServer as createRawServer, type Server as RawServer, type Socket } from 'node:net';
import { createServer as createTlsServer, type TlsOptions, type TLSSocket } from 'node:tls';
import { urlHost } from '@holdfast/kit/addresses';
import { codeOf, messageOf, StackError } from '@holdfast/kit/app-error';
import { lockoutAddress } from '@holdfast/kit/lockout';
import { type Log, MinuteLimit } from '@holdfast/kit/log';
import { oneLine, shortened } from '@holdfast/kit/text';
import type { Arrival, KnownCertificate, LiveConnections, RefusedConnection } from '../model/parts.ts';
import type { Admission } from './admission.ts';
import type { ServerIdentity } from './server-identity.ts';
import { OpenConnections } from './connections.ts';
import { type Endpoint, NOTHING_SENT, type ProxyHeader, takeProxyHeader } from './proxy-header.ts';

export type PortTrouble =
  | 'proxy header refused'
  | 'handshake failed'
  | 'certificate refused'
  | 'gave way'
  | 'turned away'
  | 'unreadable request'
  | 'failed';

const SHOWN_CHARACTERS = 200;

/**
 * What a port reports of clients that it does not serve: the first of a minute one by one, then
 * counts once a minute. Nobody can fill the log. `name` is the port's, in every line; `now` counts
 * milliseconds.
 */
export class PortEvents {
  readonly #log: Log;
  readonly #name: string;
  readonly #minute: MinuteLimit<PortTrouble>;

  constructor(log: Log, name: string, now: () => number) {
    this.#log = log;
    this.#name = name;
    this.#minute = new MinuteLimit(now);
  }

  happened(trouble: PortTrouble, { address, reason }: { address: string; reason?: string }): void {
    this.#minute.count(trouble);
    if (!this.#minute.takeLine()) return;
    const why = reason === undefined ? {} : { reason: shortened(oneLine(reason), SHOWN_CHARACTERS) };
    this.#log[trouble === 'failed' ? 'error' : 'info'](`core.${trouble.replaceAll(' ', '_')}`, {
      port: this.#name,
      address,
      ...why,
    });
  }

  /** Called often; writes the counts when a minute is over. */
  tick(): void {
    const counts = this.#minute.nextMinute() ?? {};
    if (Object.keys(counts).length > 0) this.#log.info('core.minute', { port: this.#name, ...counts });
  }
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
  /** Hears of certificates that are revoked or not valid now; default: only the log does. */
  refused?: ((who: RefusedConnection) => void) | undefined;
  log: Log;
  /** Who may report another client in a PROXY header; undefined: there is none. */
  isTrustedProxy?: ((address: string) => boolean) | undefined;
  maxConnections: number;
  /** What `maxConnections` follows from. */
  limitedBy?: string;
  handshakeWithinMs?: number;
}

const HANDSHAKE_WITHIN_MS = 10_000;
const LOOK_EVERY_MS = 10_000;
/**
 * Of silence: a device that is gone without a word shows some ten minutes later, as long as the
 * system asks.
 */
const PROBED_AFTER_MS = 60_000;
const IPV4_AS_IPV6 = '::ffff:';

/** Of Node.js, but in no type: the connection below TLS. */
type WithParent = TLSSocket & { _parent?: Socket };

export class CoreListener {
  readonly #options: CoreListenerOptions;
  readonly events;
  readonly #open;
  /** The handshake is told by another object than the connection; both know their ends. */
  readonly #arriving = new Map<string, Socket>();
  /** Of trusted proxies that have not yet said for whom. */
  readonly #unannounced = new Set<Socket>();
  readonly #headers = new WeakMap<Socket, ProxyHeader>();
  readonly #admitted = new Map<TLSSocket, KnownCertificate>();
  readonly #entrances: RawServer[] = [];
  readonly #server;
  readonly #looking;

  constructor(options: CoreListenerOptions) {
    this.#options = options;
    this.events = new PortEvents(options.log, options.name, () => performance.now());
    this.#open = new OpenConnections(options.maxConnections, options.limitedBy);
    this.#server = createTlsServer({
      ...this.#contextOptions(options.identity),
      requestCert: options.admission !== undefined,
      rejectUnauthorized: options.admission !== undefined,
      handshakeTimeout: options.handshakeWithinMs ?? HANDSHAKE_WITHIN_MS,
    });
    this.#server.on('secureConnection', (socket) => this.#welcome(socket));
    this.#server.on('tlsClientError', (error, socket) => this.#fail(error, socket));
    this.#looking = setInterval(() => this.#look(), LOOK_EVERY_MS).unref();
  }

  /**
   * On every address, or on none: rejects with a StackError that names the one that cannot be had.
   */
  async listen(): Promise<void> {
    try {
      for (const address of this.#options.addresses) await this.#listenOn(address);
    } catch (error) {
      await this.close(0);
      throw error;
    }
  }

  /** New secrets: no ticket that was given out before is taken any more. Open connections go on. */
  renew(identity: ServerIdentity): void {
    return this.#server.setSecureContext(this.#contextOptions(identity));
  }

  /**
   * Stops accepting, lets those at work end for at most `graceMs`, then closes every connection.
   */
  async close(graceMs: number): Promise<void> {
    clearInterval(this.#looking);
    for (const entrance of this.#entrances) entrance.close();
    for (const raw of this.#unannounced) raw.destroy();
    this.#open.endIdle();
    const timer = setTimeout(() => this.#open.endAll(), graceMs);
    await this.#open.none();
    clearTimeout(timer);
  }

  #contextOptions({ certificate, key, ca }: ServerIdentity): TlsOptions {
    return {
      cert: certificate,
      key,
      minVersion: 'TLSv1.2',
      sessionIdContext: `holdfast ${this.#options.name}`,
      ...(this.#options.admission === undefined ? {} : { ca }),
    };
  }

  #arrive(raw: Socket): void {
    raw.on('error', () => raw.destroy());
    const address = addressOf(raw);
    // Already gone, as a health check may be: nobody knows any more who it was.
    if (address === '') raw.destroy();
    else if (this.#options.isTrustedProxy?.(address) === true) void this.#awaitHeader(raw);
    else this.#take(raw);
  }

  /** A trusted proxy may also speak for itself, without a header. */
  async #awaitHeader(raw: Socket): Promise<void> {
    const { maxConnections, handshakeWithinMs = HANDSHAKE_WITHIN_MS } = this.#options;
    const address = addressOf(raw);
    if (this.#unannounced.size >= maxConnections) {
      this.events.happened('turned away', { address, reason: `${maxConnections} connections without a PROXY header` });
      raw.destroy();
      return;
    }
    this.#unannounced.add(raw);
    try {
      const header = await takeProxyHeader(raw, handshakeWithinMs);
      if (header !== undefined) this.#headers.set(raw, header);
      if (!raw.destroyed) this.#take(raw);
    } catch (error) {
      const reason = messageOf(error);
      if (reason !== NOTHING_SENT) this.events.happened('proxy header refused', { address, reason });
      raw.destroy();
    } finally {
      this.#unannounced.delete(raw);
    }
  }

  #take(raw: Socket): void {
    const { address } = this.#clientOf(raw);
    const { taken, gaveWay, full = '' } = this.#open.take(raw, lockoutAddress(address));
    if (gaveWay !== undefined) this.events.happened('gave way', { address });
    if (!taken) {
      this.events.happened('turned away', { address, reason: full });
      raw.destroy();
      return;
    }
    const ends = endsOf(raw);
    this.#arriving.set(ends, raw);
    raw.once('close', () => {
      if (this.#arriving.get(ends) === raw) this.#arriving.delete(ends);
    });
    this.#server.emit('connection', raw);
  }

  #welcome(socket: TLSSocket): void {
    socket.on('error', () => socket.destroy());
    const ends = endsOf(socket);
    const raw = this.#arriving.get(ends);
    this.#arriving.delete(ends);
    if (raw === undefined) {
      socket.destroy();
      return;
    }
    socket.disableRenegotiation();
    const { address: clientAddress, port: clientPort } = this.#clientOf(raw);
    const known = this.#options.admission?.check(socket);
    if (known !== undefined && 'refusal' in known) {
      const { refusal: reason, username } = known;
      this.events.happened('certificate refused', { address: clientAddress, reason });
      if (username !== undefined)
        this.#options.refused?.({ username, address: clientAddress, reason: `its certificate is ${reason}` });
      socket.destroy();
      return;
    }
    if (known !== undefined) {
      this.#admitted.set(socket, known);
      socket.once('close', () => this.#admitted.delete(socket));
      this.#options.live.add(socket, known.certificate);
    }
    this.#open.busy(raw);
    this.#options.accepted({
      socket,
      clientAddress,
      clientPort,
      known,
      busy: () => this.#open.busy(raw),
      idle: () => this.#open.idle(raw),
    });
  }

  /** Nothing is reported of health checks, which only look whether the port is open. */
  #fail(error: Error, socket: WithParent): void {
    const raw = socket._parent;
    const headerBytes = raw === undefined ? 0 : (this.#headers.get(raw)?.bytes ?? 0);
    if (codeOf(error) === 'ECONNRESET' && raw?.bytesRead === headerBytes) return;
    const { address } = this.#clientOf(raw ?? socket);
    this.events.happened('handshake failed', { address, reason: codeOf(error) ?? messageOf(error) });
    socket.destroy();
  }

  #clientOf(raw: Socket): Endpoint {
    const { address, port } = this.#headers.get(raw)?.client ?? {
      address: raw.remoteAddress ?? '',
      port: raw.remotePort ?? 0,
    };
    return { address: plainAddress(address), port };
  }

  /** A certificate may end while its connection is open. */
  #look(): void {
    this.events.tick();
    for (const [socket, known] of this.#admitted)
      if (this.#options.admission?.refusal(known) !== undefined) socket.destroy();
  }

  async #listenOn(address: string): Promise<void> {
    const entrance = createRawServer(
      { noDelay: true, keepAlive: true, keepAliveInitialDelay: PROBED_AFTER_MS },
      (raw) => this.#arrive(raw),
    );
    try {
      await once(entrance.listen({ host: address, port: this.#options.port, exclusive: true }), 'listening');
    } catch (error) {
      throw new StackError(
        `${urlHost(address)}:${this.#options.port} (${this.#options.name}) cannot be listened on: ${codeOf(error) ?? messageOf(error)}.`,
        'stop what holds it, or shift every port with --offset 1000',
        error,
      );
    }
    entrance.on('error', (error) =>
      this.#options.log.error('core.accept_failed', { port: this.#options.name, error: messageOf(error) }),
    );
    this.#entrances.push(entrance);
  }
}

function endsOf({ remoteAddress, remotePort, localAddress, localPort }: Socket): string {
  return `${remoteAddress} ${remotePort} ${localAddress} ${localPort}`;
}

function addressOf({ remoteAddress = '' }: Socket): string {
  return plainAddress(remoteAddress);
}

function plainAddress(address: string): string {
  return address.startsWith(IPV4_AS_IPV6) ? address.slice(IPV4_AS_IPV6.length) : address;
}

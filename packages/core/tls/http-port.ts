// Serves HTTP on a TLS port of the core. On a port with client certificates, checks the certificate
// at every request.

import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { TLSSocket } from 'node:tls';
import { getRequestListener, type HttpBindings, RequestError } from '@hono/node-server';
import { messageOf } from '@holdfast/kit/app-error';
import { htmlPage } from '../http/answers.ts';
import type { Arrival, CoreConnection, CoreFetch } from '../model/parts.ts';
import type { Admission } from './admission.ts';
import { CoreListener, type CoreListenerOptions } from './core-listener.ts';

export interface HttpPortOptions extends Omit<CoreListenerOptions, 'accepted'> {
  fetch: CoreFetch;
  /** Takes over a connection that asks for a WebSocket; `head` has come behind its request. */
  upgrade?: (incoming: IncomingMessage, head: Buffer, arrival: Arrival) => void;
  limits?: Partial<HttpLimits>;
}

export interface HttpLimits {
  /** From the first byte of a request, or from the connection, to the end of its head. */
  headWithinMs: number;
  /** To the end of its body. */
  requestWithinMs: number;
  /** How long a connection is kept that has nothing to say. */
  keepAliveMs: number;
  /** How long one may hang in the middle of a request or of an answer. */
  silentMs: number;
}

const LIMITS: HttpLimits = { headWithinMs: 10_000, requestWithinMs: 60_000, keepAliveMs: 65_000, silentMs: 120_000 };
const CHECK_EVERY_MS = 2_000;
/** An answer that its reader leaves lying may hold up its own end for this long. */
const LAST_ANSWER_WITHIN_MS = 2_000;

/** What is known of a connection while it is open. */
interface Line {
  arrival: Arrival;
  connection: CoreConnection;
  requests: number;
  /** The newest request, and its answer. */
  newest?: { incoming: IncomingMessage; outgoing: ServerResponse };
}

/** A CoreListener that answers HTTP/1.1. Not listening yet. */
export class HttpPort extends CoreListener {
  readonly #fetch: CoreFetch;
  readonly #admission: Admission | undefined;
  readonly #limits: HttpLimits;
  readonly #lines = new WeakMap<object, Line>();
  readonly #answer: ReturnType<typeof getRequestListener>;
  readonly #http: Server;

  constructor(options: HttpPortOptions) {
    super({ ...options, accepted: (arrival) => this.#accepted(arrival) });
    this.#fetch = options.fetch;
    this.#admission = options.admission;
    this.#limits = { ...LIMITS, ...options.limits };
    const { headWithinMs, requestWithinMs, keepAliveMs, silentMs } = this.#limits;
    this.#answer = getRequestListener((request, env) => this.#serve(request, env), {
      errorHandler: (error) => this.#refuse(error),
    });
    this.#http = createServer(
      {
        headersTimeout: headWithinMs,
        requestTimeout: requestWithinMs,
        keepAliveTimeout: keepAliveMs,
        connectionsCheckingInterval: Math.min(CHECK_EVERY_MS, headWithinMs / 2),
        shouldUpgradeCallback: ({ headers }) => options.upgrade !== undefined && headers.upgrade === 'websocket',
      },
      (incoming, outgoing) => this.#receive(incoming, outgoing),
    );
    this.#http.on('upgrade', (incoming, socket, head) => {
      const line = this.#lines.get(socket);
      if (line === undefined || this.#isRefused(line)) socket.destroy();
      else options.upgrade?.(incoming, head, line.arrival);
    });
    this.#http.setTimeout(silentMs, (socket: object) => this.#silent(socket));
    // It never listens by itself; with this event it begins to keep its time limits.
    this.#http.emit('listening');
  }

  override async close(graceMs: number): Promise<void> {
    await super.close(graceMs);
    this.#http.close();
  }

  #accepted(arrival: Arrival): void {
    const { socket, clientAddress, known } = arrival;
    const connection: CoreConnection = {
      clientAddress,
      secure: true,
      socket,
      abort: () => socket.destroy(),
      ...(known === undefined ? {} : { certificate: known.certificate }),
    };
    this.#lines.set(socket, { arrival, connection, requests: 0 });
    arrival.idle();
    this.#http.emit('connection', socket);
  }

  /** Whoever has sent a whole request waits for us: a file waits for its turn to be stored. */
  #silent(socket: object): void {
    const newest = this.#lines.get(socket)?.newest;
    const waits = newest?.incoming.complete === true && !newest.outgoing.headersSent;
    // The clock of a socket that stays silent runs only once.
    if (waits) (socket as TLSSocket).setTimeout(this.#limits.silentMs);
    else (socket as TLSSocket).destroy();
  }

  #isRefused({ arrival: { known } }: Line): boolean {
    return known !== undefined && this.#admission?.refusal(known) !== undefined;
  }

  #receive(incoming: IncomingMessage, outgoing: ServerResponse): void {
    const { socket } = incoming;
    const line = this.#lines.get(socket);
    if (line === undefined || this.#isRefused(line)) {
      socket.destroy();
      return;
    }
    line.requests++;
    line.newest = { incoming, outgoing };
    line.arrival.busy();
    outgoing.once('close', () => {
      if (--line.requests === 0) line.arrival.idle();
    });
    void this.#answer(incoming, outgoing);
  }

  async #serve(request: Request, env: unknown): Promise<Response> {
    const { incoming, outgoing } = env as HttpBindings;
    const line = this.#lines.get(incoming.socket);
    if (line === undefined) return htmlPage(400, 'Bad Request', 'The connection has ended.');
    const response = await this.#fetch(request, line.connection);
    if (this.#isRefused(line)) this.#endAfter(outgoing, line.arrival.socket);
    return response;
  }

  /** The request has ended its own right: it gets its answer, and nothing comes after it. */
  #endAfter(outgoing: ServerResponse, socket: TLSSocket): void {
    outgoing.shouldKeepAlive = false;
    const end = setTimeout(() => socket.destroy(), LAST_ANSWER_WITHIN_MS);
    socket.once('close', () => clearTimeout(end));
    outgoing.once('finish', () => socket.end(() => socket.destroy()));
  }

  /**
   * An address or a Host header that no URL can be made of, or a failure that the app did not
   * answer.
   */
  #refuse(error: unknown): Response {
    if (error instanceof RequestError) {
      this.events.happened('unreadable request', { address: '', reason: messageOf(error) });
      return htmlPage(400, 'Bad Request', 'The address or the Host header cannot be read.');
    }
    this.events.happened('failed', { address: '', reason: messageOf(error) });
    return htmlPage(500, 'Internal Server Error', 'The request failed. The server log has the reason.');
  }
}

// The clients of an exercise: they connect one after the other, move, chat and mark, and count what
// they receive of each other.

import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { connect, createSecureContext, type SecureContext, type TLSSocket } from 'node:tls';
import { codeOf, messageOf, StackError } from '@holdfast/kit/app-error';
import { type Center, eventOf, eventReader, type Kind, removalOf } from './events.ts';

export interface CrowdOptions {
  /** Of 8089; clients go round them. */
  places: readonly { host: string; port: number }[];
  /** PEM with key, certificate and CA. */
  pem: string;
  clients: number;
  rampMs: number;
  /** Each client sends its position so often. */
  everyMs: number;
  center: Center;
}

export interface CrowdCounts {
  sent: number;
  /** Deliveries that there should be, and that there were. */
  expected: number;
  delivered: number;
  /** Of chat and marks, which are never thinned. */
  expectedUrgent: number;
  deliveredUrgent: number;
  /** Connections that ended. */
  ended: number;
  /** Of each delivery that was sampled, ascending, milliseconds. */
  latencies: readonly number[];
}

const CHAT_EVERY = 12;
const MARK_EVERY = 20;
const TICK_MS = 20;
const CONNECT_WITHIN_MS = 15_000;
const MAX_LATENCIES = 200_000;
const CALM_MS = 250;
const SETTLED_WITHIN_MS = 5_000;
const SETTLE_STEP_MS = 200;

export class Crowd {
  readonly #options: CrowdOptions;
  readonly #context: SecureContext;
  readonly #sockets: TLSSocket[] = [];
  readonly #urgent = new Set<number>();
  readonly #latencies: number[] = [];
  readonly #counts = { sent: 0, expected: 0, delivered: 0, expectedUrgent: 0, deliveredUrgent: 0, ended: 0 };
  #seen = 0;
  #ending = false;

  constructor(options: CrowdOptions) {
    this.#options = options;
    const [, ...authorities] = options.pem.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? [];
    this.#context = createSecureContext({ key: options.pem, cert: options.pem, ca: authorities });
  }

  get connected(): number {
    return this.#sockets.length - this.#counts.ended;
  }

  counts(): CrowdCounts {
    return { ...this.#counts, latencies: this.#latencies.toSorted((a, b) => a - b) };
  }

  /** Connects everyone, spread over the ramp; `signal` ends it early. */
  async arrive(signal: AbortSignal): Promise<void> {
    const { clients, rampMs } = this.#options;
    const begun = performance.now();
    while (this.#sockets.length < clients && !signal.aborted) {
      const dueMs = (this.#sockets.length / clients) * rampMs - (performance.now() - begun);
      if (dueMs > 0) await delay(dueMs, undefined, { signal }).catch(() => undefined);
      if (!signal.aborted) await this.#connectOne();
    }
    await delay(CALM_MS);
  }

  /** Sends for so long; `signal` ends it early. */
  async work(forMs: number, signal: AbortSignal): Promise<void> {
    const { clients, everyMs } = this.#options;
    const begun = performance.now();
    for (let turn = 0; performance.now() - begun < forMs && !signal.aborted; await delay(TICK_MS)) {
      const due = ((performance.now() - begun) / everyMs) * clients;
      for (; turn < due; turn++) this.#sendTurn(turn % clients, Math.floor(turn / clients));
    }
  }

  /** Waits for deliveries on their way, for a while. */
  async settle(): Promise<void> {
    for (let waited = 0; waited < SETTLED_WITHIN_MS; waited += SETTLE_STEP_MS) {
      if (this.#counts.delivered >= this.#counts.expected) return;
      await delay(SETTLE_STEP_MS);
    }
  }

  /** Takes every mark off the maps, then disconnects. */
  async leave(): Promise<void> {
    this.#sockets.forEach((socket, client) => socket.writable && socket.write(removalOf(client, Date.now())));
    await delay(CALM_MS);
    this.#ending = true;
    for (const socket of this.#sockets) socket.destroy();
  }

  async #connectOne(): Promise<void> {
    const { places } = this.#options;
    const { host, port } = places[this.#sockets.length % places.length] ?? { host: '', port: 0 };
    // The CA is the stack's own, so any name in the server's certificate is right.
    const socket = connect({ host, port, secureContext: this.#context, checkServerIdentity: () => undefined });
    const timer = setTimeout(() => socket.destroy(new Error('no answer')), CONNECT_WITHIN_MS);
    try {
      await once(socket, 'secureConnect');
    } catch (error) {
      throw new StackError(
        `${host}:${port} did not take connection ${this.#sockets.length + 1}: ${codeOf(error) ?? messageOf(error)}.`,
        'core.log (core.turned_away, core.certificate_refused) has the reason. Behind NAT, give --stream HOST:PORT',
        error,
      );
    } finally {
      clearTimeout(timer);
    }
    socket.setNoDelay(true);
    socket.on('error', () => socket.destroy());
    socket.once('close', () => {
      if (!this.#ending) this.#counts.ended++;
    });
    socket.on(
      'data',
      eventReader((number, atMs) => this.#received(number, atMs)),
    );
    this.#sockets.push(socket);
  }

  /** Its position, and now and then a message or a mark. */
  #sendTurn(client: number, round: number): void {
    this.#send('position', client);
    if ((round + client) % CHAT_EVERY === 1) this.#send('chat', client);
    if ((round + client) % MARK_EVERY === 2) this.#send('mark', client);
  }

  #send(kind: Kind, client: number): void {
    const socket = this.#sockets[client];
    if (socket === undefined || !socket.writable) return;
    const number = this.#counts.sent++;
    const others = this.connected - 1;
    this.#counts.expected += others;
    if (kind !== 'position') {
      this.#urgent.add(number);
      this.#counts.expectedUrgent += others;
    }
    socket.write(eventOf(kind, client, number, Date.now(), this.#options.center));
  }

  #received(number: number, atMs: number): void {
    this.#counts.delivered++;
    if (this.#urgent.has(number)) this.#counts.deliveredUrgent++;
    // A sample of all of them, without keeping them all.
    const latency = Date.now() - atMs;
    const at = this.#seen++;
    const place = at < MAX_LATENCIES ? at : Math.floor(Math.random() * at);
    if (place < MAX_LATENCIES) this.#latencies[place] = latency;
  }
}

// Connects a node with a NATS server, over TLS, until it is closed.

import { messageOf } from '@holdfast/kit/app-error';
import type { Log } from '@holdfast/kit/log';
import { connect, type NatsConnection, type Subscription } from '@nats-io/transport-node';
import type { Bus } from './bus.ts';

export interface NatsOptions {
  /** `tls://127.0.0.1:4223` */
  url: string;
  username: string;
  password: string;
  /** PEM of the CA that has issued the server's certificate. */
  ca: string;
  /** As the server shows it. */
  node: string;
  log: Log;
}

interface Kept {
  subject: string;
  take: (payload: Buffer) => void;
  subscription: Subscription | undefined;
}

const RETRY_MS = 250;
/** A server that hangs keeps no node from stopping. */
const FLUSH_WITHIN_MS = 1_000;
const PING_EVERY_MS = 5_000;

export class NatsBus implements Bus {
  readonly #options: NatsOptions;
  readonly #kept = new Set<Kept>();
  readonly #listeners: ((isUp: boolean) => void)[] = [];
  #connection: NatsConnection | undefined;
  #isUp = false;
  #isClosed = false;
  /** That it is unreachable; until it is up again. */
  #wasReported = false;

  /** Returns at once, and connects as soon as the server answers. */
  constructor(options: NatsOptions) {
    this.#options = options;
    void this.#run();
  }

  get isUp(): boolean {
    return this.#isUp;
  }

  publish(subject: string, payload: Uint8Array): void {
    if (!this.#isUp) return;
    try {
      this.#connection?.publish(subject, payload);
    } catch (error) {
      // Rule `busNeverThrows`: whoever misses it asks anew, or is told with the next change.
      this.#options.log.error('mesh.not_published', { subject, bytes: payload.length, error: messageOf(error) });
    }
  }

  subscribe(subject: string, take: (payload: Buffer) => void): () => void {
    const kept: Kept = { subject, take, subscription: undefined };
    this.#kept.add(kept);
    this.#subscribe(kept);
    return () => {
      this.#kept.delete(kept);
      kept.subscription?.unsubscribe();
    };
  }

  async fence(): Promise<void> {
    if (!this.#isUp || this.#connection === undefined) throw new Error('NATS is unreachable');
    await this.#connection.flush();
  }

  onChange(then: (isUp: boolean) => void): void {
    this.#listeners.push(then);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    const flushed = this.#connection?.flush().catch(() => undefined);
    const late = new Promise((resolve) => setTimeout(resolve, FLUSH_WITHIN_MS).unref());
    await Promise.race([flushed, late]);
    await this.#connection?.close();
  }

  #subscribe(kept: Kept): void {
    kept.subscription = this.#connection?.subscribe(kept.subject, {
      callback: (error, { data }) => {
        if (error === null) kept.take(Buffer.from(data.buffer, data.byteOffset, data.byteLength));
      },
    });
  }

  /** A connection that has ended for good is replaced by another one. */
  async #run(): Promise<void> {
    while (!this.#isClosed) {
      try {
        await this.#connect();
      } catch (error) {
        if (!this.#wasReported) this.#options.log.warn('mesh.unreachable', { error: messageOf(error) });
        this.#wasReported = true;
      }
      this.#turn(false);
      if (!this.#isClosed) await new Promise((resolve) => setTimeout(resolve, RETRY_MS).unref());
    }
  }

  async #connect(): Promise<void> {
    const { url, username: user, password: pass, ca, node: name } = this.#options;
    const connection = await connect({
      servers: url,
      name,
      user,
      pass,
      tls: { ca },
      noEcho: true,
      waitOnFirstConnect: true,
      maxReconnectAttempts: -1,
      reconnectTimeWait: RETRY_MS,
      ignoreAuthErrorAbort: true,
      pingInterval: PING_EVERY_MS,
      maxPingOut: 2,
    });
    this.#connection = connection;
    try {
      for (const kept of this.#kept) this.#subscribe(kept);
      this.#turn(true);
      for await (const { type } of connection.status()) {
        if (type === 'disconnect') this.#turn(false);
        if (type === 'reconnect') this.#turn(true);
      }
    } finally {
      await connection.close();
    }
  }

  #turn(isUp: boolean): void {
    if (this.#isUp === isUp) return;
    this.#isUp = isUp;
    this.#wasReported &&= !isUp;
    this.#options.log[isUp ? 'info' : 'warn'](isUp ? 'mesh.connected' : 'mesh.disconnected', {
      url: this.#options.url,
    });
    for (const then of this.#listeners) then(isUp);
  }
}

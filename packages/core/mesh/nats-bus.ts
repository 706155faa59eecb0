// Connects a node with a NATS server, over TLS, until it is closed.

import { readFileSync } from 'node:fs';
import { messageOf } from '@holdfast/kit/app-error';
import type { Log } from '@holdfast/kit/log';
import { connect, type NatsConnection, type Subscription } from '@nats-io/transport-node';
import type { Bus } from './bus.ts';

export interface NatsOptions {
  /** `tls://127.0.0.1:4223` */
  url: string;
  username: string;
  password: string;
  /** PEM of the CA that has issued the server's certificate; read for each connection. */
  caFile: string;
  /** As the server shows it. */
  node: string;
  log: Log;
  pingEveryMs?: number;
  maxUnconfirmedBytes?: number;
}

interface Kept {
  subject: string;
  take: (payload: Buffer) => void;
  subscription: Subscription | undefined;
}

const BRACKETS = /^\[|\]$/g;
const RETRY_MS = 250;
/** A server that hangs keeps no node from stopping. */
const FLUSH_WITHIN_MS = 1_000;
const CONNECT_WITHIN_MS = 5_000;
const PING_EVERY_MS = 5_000;
const CONFIRM_EVERY_BYTES = 1024 * 1024;
/** More than eight other nodes ask for at once when NATS is back. */
const MAX_UNCONFIRMED_BYTES = 256 * 1024 * 1024;

/** A connection, and how much of what was published on it NATS has taken in. */
class Link {
  readonly connection: NatsConnection;
  #bytes = 0;
  #flushed = 0;
  #confirmed = 0;

  constructor(connection: NatsConnection) {
    this.connection = connection;
  }

  get unconfirmedBytes(): number {
    return this.#bytes - this.#confirmed;
  }

  publish(subject: string, payload: Uint8Array): void {
    this.connection.publish(subject, payload);
    this.#bytes += payload.length;
    // It ends with the connection, whose end says the rest.
    if (this.#bytes - this.#flushed >= CONFIRM_EVERY_BYTES) this.flush().catch(() => undefined);
  }

  async flush(): Promise<void> {
    const bytes = (this.#flushed = this.#bytes);
    await this.connection.flush();
    this.#confirmed = Math.max(this.#confirmed, bytes);
  }
}

export class NatsBus implements Bus {
  readonly #options: NatsOptions;
  readonly #kept = new Set<Kept>();
  readonly #listeners: ((isUp: boolean) => void)[] = [];
  #link: Link | undefined;
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
    if (!this.#isUp || this.#link === undefined) return;
    const { maxUnconfirmedBytes = MAX_UNCONFIRMED_BYTES } = this.#options;
    if (this.#link.unconfirmedBytes + payload.length > maxUnconfirmedBytes) return this.#abandon(this.#link);
    try {
      this.#link.publish(subject, payload);
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
    if (!this.#isUp || this.#link === undefined) throw new Error('NATS is unreachable');
    await this.#link.flush();
  }

  onChange(then: (isUp: boolean) => void): void {
    this.#listeners.push(then);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    const flushed = this.#link?.flush().catch(() => undefined);
    const late = new Promise((resolve) => setTimeout(resolve, FLUSH_WITHIN_MS).unref());
    await Promise.race([flushed, late]);
    await this.#link?.connection.close();
  }

  /** What waits for a server that takes nothing in would fill the memory. */
  #abandon({ connection, unconfirmedBytes }: Link): void {
    this.#options.log.error('mesh.overloaded', { url: this.#options.url, unconfirmed_bytes: unconfirmedBytes });
    this.#turn(false);
    void connection.close();
  }

  #subscribe(kept: Kept): void {
    kept.subscription = this.#link?.connection.subscribe(kept.subject, {
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
    const { url, username: user, password: pass, caFile, node: name, pingEveryMs = PING_EVERY_MS } = this.#options;
    const connection = await connect({
      servers: url,
      name,
      user,
      pass,
      // Of a server given by its address the client itself does not check the address.
      tls: Object.assign({ ca: readFileSync(caFile, 'utf8') }, { host: new URL(url).hostname.replace(BRACKETS, '') }),
      noEcho: true,
      // By itself it waits until a server that hangs has taken in what was published, and says
      // nothing of why it does not get in.
      reconnect: false,
      timeout: CONNECT_WITHIN_MS,
      pingInterval: pingEveryMs,
      maxPingOut: 2,
    });
    try {
      if (this.#isClosed) return;
      this.#link = new Link(connection);
      for (const kept of this.#kept) this.#subscribe(kept);
      this.#turn(true);
      for await (const { type } of connection.status()) if (type === 'disconnect' || type === 'staleConnection') break;
    } finally {
      this.#turn(false);
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

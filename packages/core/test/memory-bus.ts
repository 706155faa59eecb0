// A bus in memory for several nodes: delivers in order, one turn later, and can be cut. With what a
// node says of itself on it.

import type { Bus } from '../mesh/bus.ts';
import { subjects } from '../mesh/subjects.ts';

interface Subscription {
  subject: string;
  take: (payload: Buffer) => void;
}

/** As much as NATS takes. */
const MAX_BYTES = 1024 * 1024;

export class MemoryHub {
  readonly members = new Set<MemoryBus>();
  published = 0;

  bus(): MemoryBus {
    const bus = new MemoryBus(this);
    this.members.add(bus);
    return bus;
  }
}

export class MemoryBus implements Bus {
  readonly #hub: MemoryHub;
  readonly #subscriptions = new Set<Subscription>();
  readonly #listeners: ((isUp: boolean) => void)[] = [];
  readonly #inbox: (() => void)[] = [];
  isUp = true;
  /** Messages that its node took in, but for the list of clients and its beats. */
  taken = 0;

  constructor(hub: MemoryHub) {
    this.#hub = hub;
  }

  publish(subject: string, payload: Uint8Array): void {
    if (!this.isUp) return;
    if (payload.length > MAX_BYTES) throw new Error(`a message of ${payload.length} bytes is too large`);
    this.#hub.published++;
    const copy = Buffer.from(payload);
    for (const other of this.#hub.members) if (other !== this && other.isUp) other.#arrive(subject, copy);
  }

  subscribe(subject: string, take: (payload: Buffer) => void): () => void {
    const subscription = { subject, take };
    this.#subscriptions.add(subscription);
    return () => void this.#subscriptions.delete(subscription);
  }

  async fence(): Promise<void> {
    if (!this.isUp) throw new Error('the bus is down');
    await new Promise((resolve) => setImmediate(resolve));
  }

  onChange(then: (isUp: boolean) => void): void {
    this.#listeners.push(then);
  }

  /** Cuts the node off, or lets it in again. */
  turn(isUp: boolean): void {
    this.isUp = isUp;
    for (const then of this.#listeners) then(isUp);
  }

  async close(): Promise<void> {
    this.isUp = false;
    this.#hub.members.delete(this);
  }

  #arrive(subject: string, payload: Buffer): void {
    this.#inbox.push(() => {
      for (const each of this.#subscriptions)
        if (each.subject === subject) {
          if (subject !== subjects.clients) this.taken++;
          each.take(Buffer.from(payload));
        }
    });
    if (this.#inbox.length > 1) return;
    setImmediate(() => {
      for (const work of this.#inbox.splice(0)) if (this.isUp) work();
    });
  }
}

export const announcementOf = (node: string) => ({
  version: '5.7',
  startedAt: '2026-11-22T05:00:00.000Z',
  api: `https://${node}:8443`,
  enrollment: `https://${node}:8446`,
  streaming: `tls://${node}:8089`,
  maxClients: 1000,
  memoryCapBytes: 8192,
  memoryBytes: 4096,
});

// Tracks open connections by certificate serial number, so that a revocation can end them.

import type { Socket } from 'node:net';
import type { LiveConnections } from '../model/parts.ts';

type Connection = Parameters<LiveConnections['add']>[0];

export function createLiveConnections(): LiveConnections {
  const bySerial = new Map<string, Set<Connection>>();

  return {
    add(socket, { serial }) {
      const connections = bySerial.get(serial) ?? new Set();
      bySerial.set(serial, connections.add(socket));
      socket.once('close', () => {
        connections.delete(socket);
        if (connections.size === 0 && bySerial.get(serial) === connections) bySerial.delete(serial);
      });
    },
    end(serial, except) {
      const ended = [...(bySerial.get(serial) ?? [])].filter((socket) => socket !== except);
      for (const socket of ended) socket.destroy();
      return ended.length;
    },
  };
}

/** Whole sites come from one address, and everybody does behind a proxy. */
const SHARE_OF_ONE_ADDRESS = 0.75;

/**
 * The connections of one port, counted: when it is full, the oldest that does nothing gives way to
 * the next one. No address can fill it alone, however busy it keeps its connections. Raw sockets,
 * from their connect to their close.
 */
export class OpenConnections {
  readonly #most: number;
  readonly #limitedBy: string;
  readonly #maxPerOne;
  /** With where they come from. */
  readonly #all = new Map<Socket, string>();
  readonly #counts = new Map<string, number>();
  readonly #inHandshake = new Set<Socket>();
  readonly #atRest = new Set<Socket>();
  #waiting: (() => void)[] = [];

  /** `limitedBy` is for whoever reads why one was refused. */
  constructor(most: number, limitedBy = 'its settings') {
    this.#most = most;
    this.#limitedBy = limitedBy;
    this.#maxPerOne = Math.ceil(most * SHARE_OF_ONE_ADDRESS);
  }

  /**
   * False when it is full and everybody is at work, or all that the address `from` may have; then
   * it was not taken in, and `full` says so in a sentence. `gaveWay` is whoever had to go.
   */
  take(socket: Socket, from: string): { taken: boolean; gaveWay?: Socket; full?: string } {
    const hasItsShare = (this.#counts.get(from) ?? 0) >= this.#maxPerOne;
    const isFull = hasItsShare || this.#all.size >= this.#most;
    const gaveWay = isFull ? this.#oldest(hasItsShare ? from : undefined) : undefined;
    if (gaveWay !== undefined) this.#end(gaveWay);
    else if (isFull) return { taken: false, full: hasItsShare ? this.#fullOfOne() : this.#full() };
    this.#all.set(socket, from);
    this.#count(from, 1);
    this.#inHandshake.add(socket);
    socket.once('close', () => this.#forget(socket));
    return gaveWay === undefined ? { taken: true } : { taken: true, gaveWay };
  }

  /** The handshake is over: it has work to do until `idle` says otherwise. */
  busy(socket: Socket): void {
    this.#inHandshake.delete(socket);
    this.#atRest.delete(socket);
  }

  idle(socket: Socket): void {
    if (!this.#all.has(socket)) return;
    this.#inHandshake.delete(socket);
    this.#atRest.add(socket);
  }

  endIdle(): void {
    return this.#endEach([...this.#inHandshake, ...this.#atRest]);
  }

  endAll(): void {
    return this.#endEach(this.#all.keys());
  }

  /** Resolves when nothing is open any more. */
  async none(): Promise<void> {
    if (this.#all.size > 0) await new Promise<void>((resolve) => this.#waiting.push(resolve));
  }

  #fullOfOne(): string {
    return `one address may have at most ${this.#maxPerOne} of the ${this.#most} connections of this port`;
  }

  #full(): string {
    return `all ${this.#most} connections of this port are in use, the limit by ${this.#limitedBy}`;
  }

  #count(from: string, change: 1 | -1): void {
    const left = (this.#counts.get(from) ?? 0) + change;
    if (left === 0) this.#counts.delete(from);
    else this.#counts.set(from, left);
  }

  #forget(socket: Socket): void {
    const from = this.#all.get(socket);
    if (from === undefined) return;
    this.#count(from, -1);
    this.#all.delete(socket);
    this.#inHandshake.delete(socket);
    this.#atRest.delete(socket);
    if (this.#all.size > 0) return;
    for (const resolve of this.#waiting) resolve();
    this.#waiting = [];
  }

  #end(socket: Socket): void {
    this.#forget(socket);
    socket.destroy();
  }

  #endEach(sockets: Iterable<Socket>): void {
    for (const socket of sockets) this.#end(socket);
  }

  /** The oldest that does nothing, of anybody or of one address. */
  #oldest(from?: string): Socket | undefined {
    for (const sockets of [this.#inHandshake, this.#atRest])
      for (const socket of sockets) if (from === undefined || this.#all.get(socket) === from) return socket;
    return undefined;
  }
}

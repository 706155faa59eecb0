// Every open connection that a client certificate has opened, by its serial number, so that a revocation can end them.

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

// The connections of one port, counted: when it is full, the oldest that does nothing gives way to the next one. No address
// can fill it alone, however busy it keeps its connections.

export interface OpenConnections {
  /**
   * False when it is full and everybody is at work, or all that the address `from` may have; then it was not taken in.
   * `gaveWay` is whoever had to go.
   */
  take(socket: Socket, from: string): { taken: boolean; gaveWay?: Socket };
  /** The handshake is over: it has work to do until `idle` says otherwise. */
  busy(socket: Socket): void;
  idle(socket: Socket): void;
  endIdle(): void;
  endAll(): void;
  /** Resolves when nothing is open any more. */
  none(): Promise<void>;
}

/** Whole sites come from one address, and everybody does behind a proxy. */
const SHARE_OF_ONE_ADDRESS = 0.75;

/** Raw sockets, from their connect to their close. */
export function openConnections(most: number): OpenConnections {
  const mostOfOne = Math.ceil(most * SHARE_OF_ONE_ADDRESS);
  /** With where they come from. */
  const all = new Map<Socket, string>();
  const counts = new Map<string, number>();
  const inHandshake = new Set<Socket>();
  const atRest = new Set<Socket>();
  let waiting: (() => void)[] = [];

  function count(from: string, change: 1 | -1): void {
    const left = (counts.get(from) ?? 0) + change;
    if (left === 0) counts.delete(from);
    else counts.set(from, left);
  }

  function forget(socket: Socket): void {
    const from = all.get(socket);
    if (from === undefined) return;
    count(from, -1);
    all.delete(socket);
    inHandshake.delete(socket);
    atRest.delete(socket);
    if (all.size > 0) return;
    for (const resolve of waiting) resolve();
    waiting = [];
  }

  function end(socket: Socket): void {
    forget(socket);
    socket.destroy();
  }

  function endEach(sockets: Iterable<Socket>): void {
    for (const socket of sockets) end(socket);
  }

  /** The oldest that does nothing, of anybody or of one address. */
  function oldest(from?: string): Socket | undefined {
    for (const sockets of [inHandshake, atRest])
      for (const socket of sockets) if (from === undefined || all.get(socket) === from) return socket;
    return undefined;
  }

  return {
    take(socket, from) {
      const hasItsShare = (counts.get(from) ?? 0) >= mostOfOne;
      const isFull = hasItsShare || all.size >= most;
      const gaveWay = isFull ? oldest(hasItsShare ? from : undefined) : undefined;
      if (gaveWay !== undefined) end(gaveWay);
      else if (isFull) return { taken: false };
      all.set(socket, from);
      count(from, 1);
      inHandshake.add(socket);
      socket.once('close', () => forget(socket));
      return gaveWay === undefined ? { taken: true } : { taken: true, gaveWay };
    },
    busy(socket) {
      inHandshake.delete(socket);
      atRest.delete(socket);
    },
    idle(socket) {
      if (!all.has(socket)) return;
      inHandshake.delete(socket);
      atRest.add(socket);
    },
    endIdle: () => endEach([...inHandshake, ...atRest]),
    endAll: () => endEach(all.keys()),
    none: async () => {
      if (all.size > 0) await new Promise<void>((resolve) => waiting.push(resolve));
    },
  };
}

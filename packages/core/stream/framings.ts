// Puts the two framings of the stream together, bounds what they hold of incomplete events, and
// makes the stamp over events.

import { SECOND_MS } from '@holdfast/kit/time';
import { type CotEvent, type Delivery, type FrameReader, type Stamp, StreamFault } from '../model/stream.ts';
import type { Redeliver } from './client.ts';
import { ProtobufFrames, XmlFrames } from './wire/frames.ts';
import { decodeEvent } from './wire/protobuf-decode.ts';
import { readEvent } from './wire/xml-event.ts';
import { deliveryOf } from './wire/xml-write-event.ts';

export interface Framing {
  reader: FrameReader;
  /** Undefined for what is no event. */
  read: (frame: Buffer) => CotEvent | undefined;
}

/**
 * The two framings as the stream uses them, and events that are read again to be written in the
 * other form.
 */
export interface Framings {
  xml: () => Framing;
  protobuf: () => Framing;
  deliveryOf: (event: CotEvent, stamp: Stamp) => Delivery;
  redeliver: Redeliver;
}

const EVENT_START = '<event';

export function framings(maxEventBytes: number): Framings {
  return {
    xml: () => ({ reader: new XmlFrames(maxEventBytes), read: readEvent }),
    protobuf: () => ({ reader: new ProtobufFrames(maxEventBytes), read: decodeEvent }),
    deliveryOf,

    /**
     * Rule `limitsCountForWhatComes`: what the server has added may bring an event beyond them;
     * then it stays XML.
     */
    redeliver(xml, stamp) {
      try {
        const event = readEvent(xml.subarray(xml.indexOf(EVENT_START)));
        return event && deliveryOf(event, stamp);
      } catch (error) {
        if (error instanceof StreamFault) return undefined;
        throw error;
      }
    },
  };
}

/**
 * The time and the flow tag that the server writes over events: one object for a whole second.
 * `atMs` since 1970.
 */
export function stamps(nodeId: string): (atMs: number) => Stamp {
  const tag = `TAK-Server-${nodeId}`;
  let second = Number.NaN;
  let stamp: Stamp = { time: '', tag };
  return (atMs) => {
    const at = Math.floor(atMs / SECOND_MS);
    if (at !== second) {
      second = at;
      stamp = { time: new Date(at * SECOND_MS).toISOString().replace('.000Z', 'Z'), tag };
    }
    return stamp;
  };
}

export interface Holder {
  /** It gives back what it holds. */
  end(reason: string): void;
}

/**
 * Bounds the bytes of incomplete events of all connections. Ends the connection that holds most
 * when exceeded.
 */
export class HalfEvents<T extends Holder> {
  readonly #maxBytes: number;
  readonly #held = new Map<T, number>();
  #total = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** What that connection holds now. */
  holds(connection: T, bytes: number): void {
    const before = this.#held.get(connection) ?? 0;
    if (bytes === before) return;
    this.#total += bytes - before;
    if (bytes === 0) this.#held.delete(connection);
    else this.#held.set(connection, bytes);
    while (this.#total > this.#maxBytes) this.#endLargest();
  }

  get bytes(): number {
    return this.#total;
  }

  #endLargest(): void {
    let largest: { connection: T; bytes: number } | undefined;
    for (const [connection, bytes] of this.#held) if (bytes > (largest?.bytes ?? 0)) largest = { connection, bytes };
    if (largest === undefined) return;
    this.holds(largest.connection, 0);
    largest.connection.end(
      `the events that are under way take more than ${this.#maxBytes} bytes together, and this one is the largest`,
    );
  }
}

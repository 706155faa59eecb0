// Wraps an event that came from another node, so that the stream can send it.

import type { StoredEvent } from '../model/stored-event.ts';
import { type CotEvent, type Delivery, type Stamp, StreamFault } from '../model/stream.ts';
import type { Redeliver } from '../stream/client.ts';
import type { RelayedEvent } from '../stream/other-nodes.ts';
import { readEvent } from '../stream/wire/xml-event.ts';

const NOTHING: Buffer = Buffer.alloc(0);

export class Relayed implements RelayedEvent {
  readonly maxXmlBytes: number;
  readonly #xml: Buffer;
  readonly #stamp: Stamp;
  readonly #redeliver: Redeliver;
  #delivery: Delivery | undefined;
  #frame: Buffer | undefined;
  #event: { read: CotEvent | undefined } | undefined;

  /** Lies in `xml`, which is as its receivers get it. */
  constructor(xml: Buffer, stamp: Stamp, redeliver: Redeliver) {
    this.maxXmlBytes = xml.length;
    this.#xml = xml;
    this.#stamp = stamp;
    this.#redeliver = redeliver;
  }

  writeXml(target: Buffer, at: number): number {
    return at + this.#xml.copy(target, at);
  }

  /** Empty when it cannot be written so. */
  protobuf(): Buffer {
    return (this.#frame ??= this.#read()?.protobuf() ?? NOTHING);
  }

  stored(): StoredEvent | undefined {
    return this.#read()?.stored();
  }

  /** Undefined also for what is beyond the limits of an event. */
  event(): CotEvent | undefined {
    return (this.#event ??= { read: this.#readEvent() }).read;
  }

  /** A copy that outlives the message. */
  kept(): RelayedEvent {
    return new Relayed(Buffer.from(this.#xml), this.#stamp, this.#redeliver);
  }

  #readEvent(): CotEvent | undefined {
    try {
      return readEvent(this.#xml.subarray(Math.max(0, this.#xml.indexOf('<event'))));
    } catch (error) {
      if (error instanceof StreamFault) return undefined;
      throw error;
    }
  }

  #read(): Delivery | undefined {
    return (this.#delivery ??= this.#redeliver(this.#xml, this.#stamp));
  }
}

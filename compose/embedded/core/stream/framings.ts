// The two framings as the stream uses them, and events that are read again to be written in the other form.

import type { Framing } from './connection.ts';
import { StreamFault } from './fault.ts';
import type { Redeliver } from './kept-event.ts';
import type { CotEvent, Delivery, Stamp } from './parts.ts';
import { decodeEvent } from './protobuf/decode.ts';
import { protobufFrames } from './protobuf/frames.ts';
import { xmlFrames } from './xml/frames.ts';
import { readEvent } from './xml/read-event.ts';
import { deliveryOf } from './xml/write-event.ts';

export interface Framings {
  xml: () => Framing;
  protobuf: () => Framing;
  deliveryOf: (event: CotEvent, stamp: Stamp) => Delivery;
  redeliver: Redeliver;
}

const EVENT_START = '<event';

export function framings(mostEventBytes: number): Framings {
  return {
    xml: () => ({ reader: xmlFrames(mostEventBytes), read: readEvent }),
    protobuf: () => ({ reader: protobufFrames(mostEventBytes), read: decodeEvent }),
    deliveryOf,

    /** Rule `limitsCountForWhatComes`: what the server has added may bring an event beyond them; then it stays XML. */
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

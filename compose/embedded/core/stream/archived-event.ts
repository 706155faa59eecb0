// What the archive gets of an event: its texts, as it was delivered.

import type { ArchivedEvent, ChatFields, CotEvent, Delivery, Stamp } from './parts.ts';

/** `places` ascending; `chat` only of chat. */
export function archivedEvent(
  event: CotEvent,
  delivery: Delivery,
  stamp: Stamp,
  received: { sender: string; atMs: number; places: readonly number[]; chat: ChatFields | undefined },
): ArchivedEvent {
  const { uid, type, how, access, qos, opex, caveat, releaseableTo, start, stale, point } = event;
  const { sender, atMs, places, chat } = received;
  return {
    sender,
    uid,
    type,
    how,
    access,
    qos,
    opex,
    caveat,
    releaseableTo,
    time: stamp.time,
    start,
    stale,
    point,
    detail: delivery.detail(),
    receivedAtMs: atMs,
    places,
    ...(chat === undefined ? {} : { chat }),
  };
}

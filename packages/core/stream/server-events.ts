// What the server itself says on the stream, in both forms. What is the same for everybody is made once in a second.

import { SECOND_MS } from '@holdfast/kit/time';
import type { ServerEvent } from '../model/stream.ts';
import { pong, protocolResponse, protocolSupport } from './control-events.ts';
import type { Outgoing } from './outboxes.ts';
import { serverEventProtobuf, serverEventXml } from './wire/xml-write-event.ts';

export interface ServerEvents {
  /** As of now. */
  of(event: ServerEvent): Outgoing;
  /** The answer to a ping. */
  pong(): Outgoing;
  /** Which protocol and which release the server speaks. */
  offer(): Outgoing;
  /** To a client that has asked for the protocol, under the uid that it has asked with. */
  answer(uid: string, agreed: boolean): Outgoing;
}

export function createServerEvents(serverVersion: string, now: () => Date): ServerEvents {
  let pongSecond = Number.NaN;
  let kept: Outgoing | undefined;

  function of(event: ServerEvent): Outgoing {
    return outgoing(event, now());
  }

  function pongNow(): Outgoing {
    const at = now();
    const second = Math.floor(at.getTime() / SECOND_MS);
    if (kept === undefined || second !== pongSecond) kept = outgoing(pong(), at);
    pongSecond = second;
    return kept;
  }

  return {
    of,
    pong: pongNow,
    offer: () => of(protocolSupport(serverVersion)),
    answer: (uid, agreed) => of(protocolResponse(uid, agreed)),
  };
}

/** Each form is made when somebody needs it. */
function outgoing(event: ServerEvent, at: Date): Outgoing {
  let xml: Buffer | undefined;
  let protobuf: Buffer | undefined;
  const inXml = (): Buffer => (xml ??= serverEventXml(event, at));
  return {
    get mostXmlBytes() {
      return inXml().length;
    },
    writeXml: (target, place) => place + inXml().copy(target, place),
    protobuf: () => (protobuf ??= serverEventProtobuf(event, at)),
  };
}

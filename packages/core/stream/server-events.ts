// What the server itself says on the stream, in both forms. What is the same for everybody is made once in a second.

import { SECOND_MS } from '@holdfast/kit/time';
import type { ServerEvent } from '../model/stream.ts';
import { pong, protocolResponse, protocolSupport } from './control-events.ts';
import type { Outgoing } from './outboxes.ts';
import { serverEventProtobuf, serverEventXml } from './wire/xml-write-event.ts';

export class ServerEvents {
  readonly #serverVersion: string;
  readonly #now: () => Date;
  #pongSecond = Number.NaN;
  #kept: Outgoing | undefined;

  constructor(serverVersion: string, now: () => Date) {
    this.#serverVersion = serverVersion;
    this.#now = now;
  }

  /** As of now. */
  of(event: ServerEvent): Outgoing {
    return outgoing(event, this.#now());
  }

  /** The answer to a ping. */
  pong(): Outgoing {
    const at = this.#now();
    const second = Math.floor(at.getTime() / SECOND_MS);
    if (this.#kept === undefined || second !== this.#pongSecond) this.#kept = outgoing(pong(), at);
    this.#pongSecond = second;
    return this.#kept;
  }

  /** Which protocol and which release the server speaks. */
  offer(): Outgoing {
    return this.of(protocolSupport(this.#serverVersion));
  }

  /** To a client that has asked for the protocol, under the uid that it has asked with. */
  answer(uid: string, agreed: boolean): Outgoing {
    return this.of(protocolResponse(uid, agreed));
  }
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

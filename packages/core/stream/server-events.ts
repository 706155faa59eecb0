// Builds the server's own events in both forms. Common ones are built once per second.

import { randomUUID } from 'node:crypto';
import { DAY_MS, SECOND_MS } from '@holdfast/kit/time';
import type { ServerEvent } from '../model/stream.ts';
import { escapeXml } from '../model/wire-text.ts';
import type { Outgoing } from './outboxes.ts';
import { serverEventProtobuf, serverEventXml } from './wire/xml-write-event.ts';

/** After connect: the server speaks protobuf too. */
export function protocolSupport(serverVersion: string): ServerEvent {
  return {
    uid: randomUUID(),
    type: 't-x-takp-v',
    how: 'm-g',
    staleMs: 60_000,
    detail:
      '<TakControl><TakProtocolSupport version="1"/>' +
      `<TakServerVersionInfo serverVersion="${escapeXml(serverVersion)}" apiVersion="3"/></TakControl>`,
  };
}

/** To a request of that uid; after `true` both directions are protobuf. */
export function protocolResponse(uid: string, isAgreed: boolean): ServerEvent {
  return {
    uid,
    type: 't-x-takp-r',
    how: 'm-g',
    staleMs: 60_000,
    detail: `<TakControl><TakResponse status="${isAgreed}"/></TakControl>`,
  };
}

/** The answer to a ping. */
export function pong(): ServerEvent {
  return { uid: 'takPong', type: 't-x-c-t-r', how: 'h-g-i-g-o', staleMs: 20_000, detail: '' };
}

/** A client has left, whose last SA was of that type. */
export function disconnected(clientUid: string, type: string): ServerEvent {
  return {
    uid: randomUUID(),
    type: 't-x-d-d',
    how: 'h-g-i-g-o',
    staleMs: 60_000,
    detail: `<link relation="p-p" uid="${escapeXml(clientUid)}" type="${escapeXml(type)}"/>`,
  };
}

/** The groups of whoever gets it have changed: clients ask for them again. */
export function groupsChanged(): ServerEvent {
  return { uid: randomUUID(), type: 't-x-g-c', how: 'h-g-i-g-o', staleMs: 60_000, detail: '' };
}

export interface FileShare {
  /** SHA-256, lower-case hex. */
  hash: string;
  name: string;
  filename: string;
  url: string;
  bytes: number;
  senderUid: string;
  /** As devices show them. */
  sender: string;
}

const SHARE_STALE_MS = 600_000;

/** A file that the device is to fetch. */
export function fileShared({ hash, name, filename, url, bytes, senderUid, sender }: FileShare): ServerEvent {
  const share = {
    sha256: hash,
    senderUid,
    name,
    filename,
    senderUrl: url,
    sizeInBytes: String(bytes),
    senderCallsign: sender,
  };
  const attributes = Object.entries(share).map(([key, value]) => ` ${key}="${escapeXml(value)}"`);
  const detail = `<fileshare${attributes.join('')}/>`;
  return { uid: hash, type: 'b-f-t-r', how: 'h-e', staleMs: SHARE_STALE_MS, detail };
}

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
    get maxXmlBytes() {
      return inXml().length;
    },
    writeXml: (target, place) => place + inXml().copy(target, place),
    protobuf: () => (protobuf ??= serverEventProtobuf(event, at)),
  };
}

const ROOM = 'All Chat Rooms';
const SENDER = 'Holdfast';
/** As long as clients keep chat in sight. */
const STALE_MS = DAY_MS;

/**
 * What the operators say to everybody, as the chat of "All Chat Rooms" that ATAK, WinTAK and iTAK
 * show. Each is a message of its own: clients pass over one whose id they have seen. `text` is one
 * that `isNoticeText` takes. Clients read the sender and the id out of the uid too: neither has a
 * dot.
 */
export function notice(text: string, now: Date): ServerEvent {
  const id = randomUUID();
  return {
    uid: `GeoChat.${SENDER}.${ROOM}.${id}`,
    type: 'b-t-f',
    how: 'h-g-i-g-o',
    staleMs: STALE_MS,
    detail:
      `<__chat parent="RootContactGroup" groupOwner="false" messageId="${id}" chatroom="${ROOM}" id="${ROOM}" ` +
      `senderCallsign="${SENDER}"><chatgrp uid0="${SENDER}" uid1="${ROOM}" id="${ROOM}"/></__chat>` +
      `<link uid="${SENDER}" type="a-f-G-U-C" relation="p-p"/>` +
      `<remarks source="BAO.F.ATAK.${SENDER}" to="${ROOM}" time="${now.toISOString()}">${escapeXml(text)}</remarks>`,
  };
}

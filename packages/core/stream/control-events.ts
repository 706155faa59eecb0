// Events that the server says of itself: negotiation, pong, a peer that has left, groups that have changed.

import { randomUUID } from 'node:crypto';
import { escapeXml } from '../http/escape.ts';
import type { ServerEvent } from '../model/stream.ts';

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

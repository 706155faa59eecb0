// Reads from an event what its archive row, its chat rows and its mission need, and does so for
// events that came by the API.

import type {
  ArchivedEvent,
  ChatFields,
  CotElement,
  CotEvent,
  Delivery,
  MissionPost,
  ServerEvent,
  Stamp,
} from '../model/stream.ts';
import { insideOf, readCotTime } from '../model/wire-text.ts';
import { type Archivable, archivable } from '../archive/archivable.ts';
import type { Destinations } from './destinations.ts';
import { readEvent } from './wire/xml-event.ts';
import { deliveryOf } from './wire/xml-write-event.ts';

/** Types that begin so are chat. */
const CHAT = 'b-t-f';
const UNDELIVERED = 'b-t-f-s';
/** Rows that one message may make. */
const MAX_RECIPIENTS = 256;
const STALE_MS = 60_000;
const UID_ATTRIBUTE = /^uid[1-9]\d{0,3}$/;

export function isChat(type: string): boolean {
  return type.startsWith(CHAT);
}

/** Somebody wrote it; the others say that it was delivered or read. */
export function isMessage(type: string): boolean {
  return type === CHAT;
}

/**
 * Undefined when it is not to be stored: it has no destination, neither in `<marti>` nor in its
 * `chatgrp`, or missions only. "All Chat Rooms" is a destination in `chatgrp`.
 */
export function chatFieldsOf(event: CotEvent, destinations: Destinations): ChatFields | undefined {
  const chat = event.detail('__chat');
  const uids = recipients(chat?.child('chatgrp') ?? event.detail('chatgrp'));
  const { broadcast, explicit, devices, groups } = destinations;
  if (explicit ? !broadcast && devices.length + groups.length === 0 : uids.length === 0) return undefined;
  const named = devices.flatMap(({ uid }) => uid ?? []).slice(0, MAX_RECIPIENTS);
  const destUids = uids.length > 0 ? uids : named;
  return {
    senderCallsign: chat?.attribute('senderCallsign') ?? null,
    destCallsign: devices.find(({ callsign }) => callsign !== undefined)?.callsign ?? null,
    destUids: destUids.length > 0 ? destUids : [null],
    content: event.detail('remarks')?.text() ?? null,
    room: chat?.attribute('chatroom') ?? chat?.attribute('id') ?? null,
  };
}

/** `uid0` is the sender. */
function recipients(group: CotElement | undefined): string[] {
  const uids = (group?.attributes() ?? []).filter(([name, value]) => UID_ATTRIBUTE.test(name) && value !== '');
  return [...new Set(uids.map(([, value]) => value))].slice(0, MAX_RECIPIENTS);
}

/** The message as its sender gets it back. `detail` is the whole element. */
export function undelivered(event: CotEvent, detail: string): ServerEvent {
  const { uid, how, point } = event;
  return { uid, type: UNDELIVERED, how, staleMs: STALE_MS, detail: insideOf(detail), point };
}

/** What a mission shows of an event. */
export function missionPost(event: CotEvent): MissionPost {
  const { uid, type, point } = event;
  return {
    uid,
    type,
    callsign: event.detail('contact')?.attribute('callsign'),
    iconsetPath: event.detail('usericon')?.attribute('iconsetpath'),
    color: event.detail('color')?.attribute('argb'),
    point,
  };
}

/**
 * What the archive gets of an event: its texts, as it was delivered. `places` ascending; `chat`
 * only of chat.
 */
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

export interface Submitted {
  row: Archivable;
  post: MissionPost;
  sent: ServerEvent;
}

export interface Submission {
  sender: string;
  /** Of the groups that will see it, ascending. */
  places: readonly number[];
  stamp: Stamp;
  atMs: number;
}

const MIN_STALE_MS = 1_000;

/**
 * Undefined for what is no event, or none that can be stored. Throws a StreamFault for what is not
 * well-formed.
 */
export function submittedEvent(xml: Buffer, { sender, places, stamp, atMs }: Submission): Submitted | undefined {
  const start = xml.indexOf('<event');
  if (start < 0) return undefined;
  const end = xml.lastIndexOf('>') + 1;
  const event = readEvent(xml.subarray(start, end));
  if (event === undefined) return undefined;
  const archived: ArchivedEvent = archivedEvent(event, deliveryOf(event, stamp), stamp, {
    sender,
    atMs,
    places,
    chat: undefined,
  });
  const row = archivable(archived);
  if (row === undefined) return undefined;
  const { uid, type, how, point } = event;
  const staleMs = Math.max(MIN_STALE_MS, (readCotTime(event.stale) ?? 0) - atMs);
  return { row, post: missionPost(event), sent: { uid, type, how, staleMs, detail: insideOf(archived.detail), point } };
}

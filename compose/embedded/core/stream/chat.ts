// Chat: what its table keeps of an event, and what comes back to a sender whose recipient is gone.

import type { Destinations } from './destinations.ts';
import type { ChatFields, CotElement, CotEvent, ServerEvent } from './parts.ts';

/** Types that begin so are chat. */
const CHAT = 'b-t-f';
const UNDELIVERED = 'b-t-f-s';
/** Rows that one message may make. */
const MOST_RECIPIENTS = 256;
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
 * Undefined when it is not to be stored: it has no destination, neither in `<marti>` nor in its `chatgrp`, or missions only.
 * "All Chat Rooms" is a destination in `chatgrp`.
 */
export function chatFieldsOf(event: CotEvent, destinations: Destinations): ChatFields | undefined {
  const chat = event.detail('__chat');
  const uids = recipients(chat?.child('chatgrp') ?? event.detail('chatgrp'));
  const { broadcast, explicit, devices, groups } = destinations;
  if (explicit ? !broadcast && devices.length + groups.length === 0 : uids.length === 0) return undefined;
  const named = devices.flatMap(({ uid }) => uid ?? []).slice(0, MOST_RECIPIENTS);
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
  return [...new Set(uids.map(([, value]) => value))].slice(0, MOST_RECIPIENTS);
}

/** The message as its sender gets it back. `detail` is the whole element. */
export function undelivered(event: CotEvent, detail: string): ServerEvent {
  const { uid, how, point } = event;
  return { uid, type: UNDELIVERED, how, staleMs: STALE_MS, detail: insideOf(detail), point };
}

/** What stands between the start and the end tag of the element; a `>` may stand in its attributes. */
function insideOf(element: string): string {
  const quoted = /^<[^"'>]*(?:(?:"[^"]*"|'[^']*')[^"'>]*)*>/.exec(element)?.[0] ?? element;
  return quoted.endsWith('/>') ? '' : element.slice(quoted.length, element.lastIndexOf('</'));
}

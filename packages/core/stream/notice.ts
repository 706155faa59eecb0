// What the operators say to everybody, as the chat of "All Chat Rooms" that ATAK, WinTAK and iTAK show. Each is a message of its own:
// clients pass over one whose id they have seen.

import { randomUUID } from 'node:crypto';
import { DAY_MS } from '@holdfast/kit/time';
import { escapeXml } from '../http/escape.ts';
import type { ServerEvent } from '../model/stream.ts';

const ROOM = 'All Chat Rooms';
const SENDER = 'Holdfast';
/** As long as clients keep chat in sight. */
const STALE_MS = DAY_MS;

/** `text` is one that `isNoticeText` takes. Clients read the sender and the id out of the uid too: neither has a dot. */
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

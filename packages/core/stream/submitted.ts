// Reads an event that came by the API instead of a connection: what is stored of it and what is
// sent on.

import type { ArchivedEvent, MissionPost, ServerEvent, Stamp } from '../model/stream.ts';
import { insideOf, readCotTime } from '../model/wire-text.ts';
import { type Archivable, archivable } from './archivable.ts';
import { archivedEvent, missionPost } from './router.ts';
import { readEvent } from './wire/xml-event.ts';
import { deliveryOf } from './wire/xml-write-event.ts';

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

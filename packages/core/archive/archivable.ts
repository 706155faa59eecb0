// Checks that an event can be stored, so that an invalid value never fails a batch.

import type { ArchivedEvent } from '../model/stream.ts';
import { readCotTime } from '../model/wire-text.ts';

/** An event that waits for its ids. */
export interface Archivable {
  event: ArchivedEvent;
  timeMs: number;
  startMs: number;
  staleMs: number;
  /** Rows that it becomes. */
  rows: number;
  /** Characters of its texts, of each row: at most two bytes of memory each. */
  characters: number;
}

/** An index takes no text of more than 2,704 bytes; a character has up to three. */
const MAX_INDEXED_LENGTH = 512;
const MAX_TEXT_LENGTH = 64 * 1024 ** 2;
/** What `numeric` would keep as hundreds of digits is no height. */
const LARGEST_NUMBER = 1e15;
/**
 * Degrees; the index over points multiplies differences, which must not overflow, nor become too
 * small (`SMALLEST`).
 */
const LARGEST_DEGREES = 1e6;
const SMALLEST = 1e-9;
const MAX_RECIPIENTS = 1_000;
/** Of a chat: each recipient has a row with all of its text. */
const MAX_COPIED = 1024 ** 2;
/** About what the other members take in memory. */
const FIXED_CHARACTERS = 200;

/**
 * Undefined when time, start or stale is no date, a number is beyond all measure, or uid or type
 * are too long for an index.
 */
export function archivable(event: ArchivedEvent): Archivable | undefined {
  const { uid, type, point, detail, receivedAtMs } = event;
  const timeMs = instantOf(event.time);
  const startMs = instantOf(event.start);
  const staleMs = instantOf(event.stale);
  if (timeMs === undefined || startMs === undefined || staleMs === undefined) return undefined;
  if (uid === '' || uid.length > MAX_INDEXED_LENGTH || type.length > MAX_INDEXED_LENGTH) return undefined;
  if (detail.length > MAX_TEXT_LENGTH || !(Math.abs(receivedAtMs) < 8e15)) return undefined;
  if (![point.hae, point.ce, point.le].every((value) => Math.abs(value) <= LARGEST_NUMBER)) return undefined;
  if (![point.lat, point.lon].every((value) => Math.abs(value) <= LARGEST_DEGREES)) return undefined;
  const text = charactersOf(event);
  const whole = isPlain(event) ? event : plain(event, Math.max(1, Math.min(MAX_RECIPIENTS, MAX_COPIED / text)));
  const recipients = whole.chat?.destUids;
  const uids = recipients?.reduce((sum, each) => sum + (each?.length ?? 0), 0) ?? 0;
  const rows = recipients?.length ?? 1;
  return { event: whole, timeMs, startMs, staleMs, rows, characters: uids + rows * (text + FIXED_CHARACTERS) };
}

/** Of every text that a client chooses, but the recipients. */
function charactersOf({
  uid,
  type,
  how,
  detail,
  access,
  qos,
  opex,
  caveat,
  releaseableTo,
  chat,
}: ArchivedEvent): number {
  const sure = uid.length + type.length + how.length + detail.length;
  const optional =
    (access?.length ?? 0) +
    (qos?.length ?? 0) +
    (opex?.length ?? 0) +
    (caveat?.length ?? 0) +
    (releaseableTo?.length ?? 0);
  if (chat === undefined) return sure + optional;
  const { senderCallsign, destCallsign, content, room } = chat;
  return [senderCallsign, destCallsign, content, room].reduce(
    (sum, each) => sum + (each?.length ?? 0),
    sure + optional,
  );
}

/** Milliseconds since 1970. A date without an offset is one of UTC; one without seconds is none. */
export function instantOf(text: string | undefined): number | undefined {
  return text?.[16] === ':' ? readCotTime(text) : undefined;
}

function isPlain({ point, chat }: ArchivedEvent): boolean {
  return chat === undefined && !isTiny(point.lat) && !isTiny(point.lon);
}

function isTiny(degrees: number): boolean {
  return degrees !== 0 && Math.abs(degrees) < SMALLEST;
}

/**
 * A hundredth of a hair's breadth from 0 is 0; recipients whose uid no device has are left out, as
 * are those beyond the limit.
 */
function plain(event: ArchivedEvent, maxRecipients: number): ArchivedEvent {
  const { lat, lon } = event.point;
  const point = { ...event.point, lat: isTiny(lat) ? 0 : lat, lon: isTiny(lon) ? 0 : lon };
  const { chat } = event;
  if (chat === undefined) return { ...event, point };
  const possible = chat.destUids.filter((uid) => (uid?.length ?? 0) <= MAX_INDEXED_LENGTH).slice(0, maxRecipients);
  return { ...event, point, chat: { ...chat, destUids: possible.length === 0 ? [null] : possible } };
}

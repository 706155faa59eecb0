// Writes events for receivers: the sender's bytes with the server's additions spliced in.

import { isAscii } from 'node:buffer';
import type { StoredEvent } from '../../model/stored-event.ts';
import type { CotEvent, CotPoint, Delivery, ServerEvent, Stamp } from '../../model/stream.ts';
import { escapeXml, readCotTime } from '../../model/wire-text.ts';
import { encodeEvent } from './protobuf-encode.ts';
import { BRACKET, GREATER } from './xml-bytes.ts';
import { readXmlEvent, UNKNOWN_ERROR, XmlEvent } from './xml-event.ts';
import { rawText } from './xml-text.ts';

const DECLARATION = Buffer.from('<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n');
const ROOT = '<event'.length;
const FLOW_TAGS = '_flow-tags_';
const DETAIL_OPEN = Buffer.from('<detail>');
const DETAIL_CLOSE = Buffer.from('</detail>');
const TAG_END = Buffer.from('>');
const NONE: readonly number[] = [];
/** Where texts are put together. */
const SCRATCH = Buffer.allocUnsafeSlow(16 * 1024);
/**
 * Keeps `]]` and `>` apart when what stood between them is taken out. It is shorter than any
 * `<marti/>`.
 */
const NOTHING = Buffer.from('<!---->');

/** The bytes of a stamp, made once for all events that carry it. */
interface StampBytes {
  time: Buffer;
  /** ` time="…"` */
  timeAttribute: Buffer;
  /** ` TAK-Server-…="…"` */
  tagAttribute: Buffer;
  /** `<_flow-tags_ TAK-Server-…="…"/>` */
  flowTags: Buffer;
  most: number;
  isAscii: boolean;
}

/** Of the stamp that was asked for last. */
let known: { stamp: Stamp; bytes: StampBytes } | undefined;

function bytesOf(stamp: Stamp): StampBytes {
  if (known?.stamp === stamp) return known.bytes;
  const time = Buffer.from(stamp.time);
  const timeAttribute = Buffer.from(` time="${stamp.time}"`);
  const tagAttribute = Buffer.from(` ${stamp.tag}="${stamp.time}"`);
  const flowTags = Buffer.from(`<${FLOW_TAGS} ${stamp.tag}="${stamp.time}"/>`);
  const most = DECLARATION.length + timeAttribute.length + flowTags.length + DETAIL_OPEN.length + DETAIL_CLOSE.length;
  const bytes = { time, timeAttribute, tagAttribute, flowTags, most, isAscii: isAscii(flowTags) };
  known = { stamp, bytes };
  return bytes;
}

/** `event` is one that `readEvent` or `decodeEvent` has returned. */
export function deliveryOf(event: CotEvent, stamp: Stamp): Delivery {
  if (!(event instanceof XmlEvent)) throw new TypeError('deliveryOf takes events of readEvent only');
  return new EventDelivery(event, stamp);
}

class EventDelivery implements Delivery {
  readonly maxXmlBytes: number;
  readonly #event: XmlEvent;
  readonly #stamp: Stamp;
  readonly #bytes: StampBytes;
  /** Which child of the detail is `_flow-tags_`; -1 for none. */
  readonly #tagged: number;
  readonly #hasMarti: boolean;
  #protobuf: Buffer | undefined;

  constructor(event: XmlEvent, stamp: Stamp) {
    this.#event = event;
    this.#stamp = stamp;
    this.#bytes = bytesOf(stamp);
    this.#tagged = event.childIndex(FLOW_TAGS, 0);
    this.#hasMarti = event.childIndex('marti', 0) >= 0;
    this.maxXmlBytes = event.frame.length + this.#bytes.most;
  }

  writeXml(target: Buffer, start: number): number {
    const event = this.#event;
    const { frame } = event;
    let at = start + DECLARATION.copy(target, start);
    const from = event.rootValueStart('time');
    const written = from < 0 ? this.#bytes.timeAttribute : this.#bytes.time;
    at += frame.copy(target, at, 0, from < 0 ? ROOT : from);
    at += written.copy(target, at);
    return this.#writeDetail(target, at, from < 0 ? ROOT : event.rootValueEnd('time'), frame.length);
  }

  protobuf(): Buffer {
    this.#protobuf ??= encodeEvent(this.#event, this.#stamp.time, (lifted) => this.#content(lifted));
    return this.#protobuf;
  }

  detail(): string {
    const event = this.#event;
    const bytes = this.maxXmlBytes <= SCRATCH.length ? SCRATCH : Buffer.allocUnsafe(this.maxXmlBytes);
    const hasDetail = event.detailStart >= 0;
    const end = hasDetail
      ? this.#writeDetail(bytes, 0, event.detailStart, event.detailEnd)
      : this.#writeDetail(bytes, 0, event.rootClose, event.rootClose);
    return rawText(bytes, 0, end, event.isAscii && this.#bytes.isAscii);
  }

  stored(): StoredEvent {
    const { uid, type, how, access, qos, opex, caveat, releaseableTo, start, stale, point } = this.#event;
    return {
      uid,
      type,
      how,
      access: access ?? null,
      qos: qos ?? null,
      opex: opex ?? null,
      caveat: caveat ?? null,
      releaseableTo: releaseableTo ?? null,
      time: dateOf(this.#stamp.time),
      start: dateOf(start),
      stale: dateOf(stale),
      ...point,
      detail: this.detail(),
    };
  }

  /** What stands in `<detail>`, without the children of those numbers. */
  #content(lifted: readonly number[]): Buffer {
    const event = this.#event;
    if (event.detailClose < 0) return this.#bytes.flowTags;
    const bytes = Buffer.allocUnsafe(this.maxXmlBytes);
    const end = this.#writeDetail(bytes, 0, event.detailContent, event.detailClose, lifted);
    return bytes.subarray(0, end);
  }

  /**
   * Writes the event from `from` to `until`, which lie on both sides of its detail or of what is in
   * it.
   */
  #writeDetail(target: Buffer, start: number, from: number, until: number, lifted = NONE): number {
    const event = this.#event;
    const { frame } = event;
    const { flowTags } = this.#bytes;
    let at = start;
    let pos = from;
    if (event.detailClose < 0) {
      // None, or an empty one: `/>` gives way to `>`.
      const isEmpty = event.detailStart >= 0;
      const place = isEmpty ? event.detailEnd - 2 : event.rootClose;
      at += frame.copy(target, at, pos, place);
      at += (isEmpty ? TAG_END : DETAIL_OPEN).copy(target, at);
      at += flowTags.copy(target, at);
      at += DETAIL_CLOSE.copy(target, at);
      return at + frame.copy(target, at, isEmpty ? event.detailEnd : place, until);
    }
    const tagged = this.#tagged;
    if (tagged >= 0 || this.#hasMarti || lifted.length > 0) {
      let next = 0;
      for (let k = 0; k < event.children; k++) {
        const isLifted = lifted[next] === k;
        if (isLifted) next++;
        if (k === tagged) {
          const cut = this.#tagSpan(k);
          at += frame.copy(target, at, pos, cut.from);
          at += cut.bytes.copy(target, at);
          pos = cut.to;
        } else if (isLifted || event.childIs(k, 'marti')) {
          at += frame.copy(target, at, pos, event.childStart(k));
          pos = event.childEnd(k);
          const follows = frame[pos];
          const isOpen = follows === BRACKET || follows === GREATER;
          if (isOpen && at > start && target[at - 1] === BRACKET) at += NOTHING.copy(target, at);
        }
      }
    }
    at += frame.copy(target, at, pos, event.detailClose);
    if (tagged < 0) at += flowTags.copy(target, at);
    return at + frame.copy(target, at, event.detailClose, until);
  }

  /** What has to give way in `_flow-tags_`, and to what. */
  #tagSpan(index: number): { from: number; to: number; bytes: Buffer } {
    const ours = this.#event.childAt(index).attributeSpan(this.#stamp.tag);
    if (ours !== undefined) return { from: ours.valueStart, to: ours.valueEnd, bytes: this.#bytes.time };
    const place = this.#event.childStart(index) + 1 + FLOW_TAGS.length;
    return { from: place, to: place, bytes: this.#bytes.tagAttribute };
  }
}

function dateOf(text: string | undefined): Date | null {
  const value = readCotTime(text);
  return value === undefined ? null : new Date(value);
}

const NOWHERE: CotPoint = { lat: 0, lon: 0, hae: 0, ce: UNKNOWN_ERROR, le: UNKNOWN_ERROR };

function xmlOf({ uid, type, how, staleMs, detail, point = NOWHERE }: ServerEvent, now: Date): string {
  const time = now.toISOString();
  const stale = new Date(now.getTime() + staleMs).toISOString();
  const { lat, lon, hae, ce, le } = point;
  return (
    `<event version="2.0" uid="${escapeXml(uid)}" type="${escapeXml(type)}" time="${time}" start="${time}" stale="${stale}" ` +
    `how="${escapeXml(how)}"><point lat="${decimal(lat)}" lon="${decimal(lon)}" hae="${decimal(hae)}" ` +
    `ce="${decimal(ce)}" le="${decimal(le)}"/><detail>${detail}</detail></event>`
  );
}

/** `0.0`, as a release writes it. */
function decimal(value: number): string {
  return Number.isInteger(value) ? value.toFixed(1) : String(value);
}

/** Declaration and event, with `now` as its time. */
export function serverEventXml(event: ServerEvent, now: Date): Buffer {
  return Buffer.concat([DECLARATION, Buffer.from(xmlOf(event, now))]);
}

/** Header and TakMessage of the same event. */
export function serverEventProtobuf(event: ServerEvent, now: Date): Buffer {
  const read = readXmlEvent(Buffer.from(xmlOf(event, now)));
  if (read === undefined) throw new TypeError(`an event of the server without uid, type or point: ${event.type}`);
  return encodeEvent(read, now.toISOString(), (lifted) => contentOf(read, lifted));
}

/** Of an event that is sent as it is. */
function contentOf(event: XmlEvent, lifted: readonly number[]): Buffer {
  const parts: Buffer[] = [];
  let pos = event.detailContent;
  for (const k of lifted) {
    parts.push(event.frame.subarray(pos, event.childStart(k)));
    pos = event.childEnd(k);
  }
  return Buffer.concat([...parts, event.frame.subarray(pos, event.detailClose)]);
}

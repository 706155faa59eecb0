// Represents an event by its original bytes and the positions of its parts.

import type { CotEvent, CotPoint } from '../../model/stream.ts';
import { byteName, startsWith } from './xml-bytes.ts';
import { isNamed, XmlElement } from './xml-element.ts';
import { type Outline, scan, takeNotes } from './xml-scan.ts';
import { valueText } from './xml-text.ts';

const PLUS = 0x2b;
const MINUS = 0x2d;
const DOT = 0x2e;
const DECIMAL = /^[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?$/;
/** Longer than any number that a double needs, and no work for whoever sends a million digits. */
const MAX_LENGTH = 400;

/** NaN for what is no finite decimal number. */
export function numberOf(text: string): number {
  const trimmed = text.length > MAX_LENGTH ? '' : text.trim();
  const value = DECIMAL.test(trimmed) ? Number(trimmed) : Number.NaN;
  return Number.isFinite(value) ? value : Number.NaN;
}

/**
 * Powers of ten that a double holds exactly: one division of exact numbers is rounded as `Number`
 * rounds.
 */
const POWERS = Array.from({ length: 16 }, (_, power) => 10 ** power);

/** The same from bytes, without a string in the usual case; undefined where it takes the string. */
export function plainNumber(frame: Buffer, from: number, to: number): number | undefined {
  let i = from;
  const isNegative = frame[i] === MINUS;
  if (isNegative || frame[i] === PLUS) i++;
  let digits = 0;
  let fraction = -1;
  let value = 0;
  if (to - i > 16) return undefined;
  for (; i < to; i++) {
    const byte = frame[i] as number;
    if (byte >= 0x30 && byte <= 0x39) {
      value = value * 10 + (byte - 0x30);
      digits++;
      if (fraction >= 0) fraction++;
    } else if (byte === DOT && fraction < 0) {
      fraction = 0;
    } else {
      return undefined;
    }
  }
  if (digits === 0 || digits > 15) return undefined;
  const size = fraction > 0 ? value / (POWERS[fraction] as number) : value;
  return isNegative ? -size : size;
}

/** Where an error of a coordinate is not given: unknown, as CoT writes it. */
export const UNKNOWN_ERROR = 9_999_999;

export class XmlEvent implements CotEvent {
  readonly frame: Buffer;
  readonly isAscii: boolean;
  readonly detailStart: number;
  readonly detailContent: number;
  /** -1 for `<detail/>`. */
  readonly detailClose: number;
  readonly detailEnd: number;
  readonly rootClose: number;
  readonly uid: string;
  readonly type: string;
  readonly point: CotPoint;
  readonly #notes: number[];
  readonly #rootTo: number;
  readonly #childrenFrom: number;
  readonly #childrenTo: number;

  /** `outline` is that of the last scan. */
  constructor(frame: Buffer, outline: Outline) {
    this.frame = frame;
    this.isAscii = outline.isAscii;
    this.detailStart = outline.detailStart;
    this.detailContent = outline.detailContent;
    this.detailClose = outline.detailClose;
    this.detailEnd = outline.detailEnd;
    this.rootClose = outline.rootClose;
    this.#rootTo = outline.rootTo;
    this.#childrenFrom = outline.childrenFrom;
    this.#childrenTo = outline.childrenTo;
    this.#notes = takeNotes();
    this.uid = this.#attribute('uid') ?? '';
    this.type = this.#attribute('type') ?? '';
    const { pointFrom, pointTo } = outline;
    this.point = {
      lat: this.#number('lat', pointFrom, pointTo, Number.NaN),
      lon: this.#number('lon', pointFrom, pointTo, Number.NaN),
      hae: this.#number('hae', pointFrom, pointTo, UNKNOWN_ERROR),
      ce: this.#number('ce', pointFrom, pointTo, UNKNOWN_ERROR),
      le: this.#number('le', pointFrom, pointTo, UNKNOWN_ERROR),
    };
  }

  get how(): string {
    return this.#attribute('how') ?? '';
  }
  get access(): string | undefined {
    return this.#attribute('access');
  }
  get qos(): string | undefined {
    return this.#attribute('qos');
  }
  get opex(): string | undefined {
    return this.#attribute('opex');
  }
  get caveat(): string | undefined {
    return this.#attribute('caveat');
  }
  get releaseableTo(): string | undefined {
    return this.#attribute('releaseableTo');
  }
  get time(): string | undefined {
    return this.#attribute('time');
  }
  get start(): string | undefined {
    return this.#attribute('start');
  }
  get stale(): string | undefined {
    return this.#attribute('stale');
  }

  detail(name: string): XmlElement | undefined {
    const index = this.childIndex(byteName(name), 0);
    return index < 0 ? undefined : this.childAt(index);
  }

  /** How many elements `<detail>` has. */
  get children(): number {
    return (this.#childrenTo - this.#childrenFrom) / 2;
  }

  /** The first of that name from there on; -1 when there is none. */
  childIndex(name: string, from: number): number {
    for (let k = from; k < this.children; k++) if (this.childIs(k, name)) return k;
    return -1;
  }

  childIs(index: number, name: string): boolean {
    return isNamed(this.frame, this.childStart(index) + 1, name);
  }

  childStart(index: number): number {
    return this.#notes[this.#childrenFrom + 2 * index] as number;
  }

  childEnd(index: number): number {
    return this.#notes[this.#childrenFrom + 2 * index + 1] as number;
  }

  childAt(index: number): XmlElement {
    return new XmlElement(this.frame, this.childStart(index), this.childEnd(index), this.isAscii);
  }

  /** Where the value of the root's attribute begins and ends; -1 where there is none. */
  rootValueStart(name: string): number {
    const at = this.#find(name, 0, this.#rootTo);
    return at < 0 ? -1 : (this.#notes[at + 2] as number);
  }

  rootValueEnd(name: string): number {
    const at = this.#find(name, 0, this.#rootTo);
    return at < 0 ? -1 : (this.#notes[at + 3] as number);
  }

  #attribute(name: string): string | undefined {
    const at = this.#find(name, 0, this.#rootTo);
    if (at < 0) return undefined;
    return valueText(this.frame, this.#notes[at + 2] as number, this.#notes[at + 3] as number, this.isAscii);
  }

  /** Where the notes of that attribute begin, or -1. */
  #find(name: string, from: number, to: number): number {
    const notes = this.#notes;
    for (let at = from; at < to; at += 4) {
      const start = notes[at] as number;
      if ((notes[at + 1] as number) - start === name.length && startsWith(this.frame, start, this.frame.length, name)) {
        return at;
      }
    }
    return -1;
  }

  #number(name: string, from: number, to: number, missing: number): number {
    const at = this.#find(name, from, to);
    if (at < 0) return missing;
    const start = this.#notes[at + 2] as number;
    const end = this.#notes[at + 3] as number;
    return plainNumber(this.frame, start, end) ?? numberOf(valueText(this.frame, start, end, this.isAscii));
  }
}

/** Of a uid and of a type, in characters. */
const MAX_NAME_LENGTH = 1024;

/**
 * Undefined for well-formed XML that is no CoT event: its root is not `event`, uid or type are
 * missing, empty or too long, there is no point, or its numbers are none or lie outside of the
 * world. Without `hae`, `ce` or `le` these are unknown (9999999). Throws a StreamFault for what is
 * not well-formed. The event lies in the bytes of the frame.
 */
export function readEvent(frame: Buffer): CotEvent | undefined {
  return readXmlEvent(frame);
}

export function readXmlEvent(frame: Buffer): XmlEvent | undefined {
  const outline = scan(frame);
  if (outline.pointFrom < 0 || !isNamed(frame, 1, 'event')) return undefined;
  const event = new XmlEvent(frame, outline);
  return isName(event.uid) && isName(event.type) && isPlace(event.point) ? event : undefined;
}

function isName(text: string): boolean {
  return text.length > 0 && text.length <= MAX_NAME_LENGTH;
}

/** False for NaN. */
function isPlace({ lat, lon, hae, ce, le }: CotEvent['point']): boolean {
  const isOnEarth = lat >= -90 && lat <= 90 && lon >= -180 && lon <= 180;
  return isOnEarth && Number.isFinite(hae) && Number.isFinite(ce) && Number.isFinite(le);
}

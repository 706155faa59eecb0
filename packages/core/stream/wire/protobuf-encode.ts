// Encodes an event as a TakMessage. A detail element becomes a message of its own only if it has
// exactly those attributes and its numbers survive unchanged. Otherwise it stays in xmlDetail.

import { BinaryWriter, WireType } from '@bufbuild/protobuf/wire';
import { readCotTime } from '../../model/wire-text.ts';
import { frameOf } from './frames.ts';
import type { XmlElement } from './xml-element.ts';
import { numberOf, type XmlEvent } from './xml-event.ts';

/**
 * TakMessage, version 1: numbers of its fields, and which elements of `<detail>` have a message of
 * their own.
 */
export const TAK_MESSAGE = { takControl: 1, cotEvent: 2 } as const;

export const COT_EVENT = {
  type: 1,
  access: 2,
  qos: 3,
  opex: 4,
  uid: 5,
  sendTime: 6,
  startTime: 7,
  staleTime: 8,
  how: 9,
  lat: 10,
  lon: 11,
  hae: 12,
  ce: 13,
  le: 14,
  detail: 15,
  caveat: 16,
  releaseableTo: 17,
} as const;

/** Field of a detail that holds XML. */
export const XML_DETAIL = 1;

export interface TypedElement {
  /** Its field in the detail. */
  field: number;
  element: string;
  /** Their fields are 1, 2, … */
  attributes: readonly string[];
  kind: 'string' | 'uint32' | 'double';
}

export const TYPED_ELEMENTS: readonly TypedElement[] = [
  { field: 2, element: 'contact', attributes: ['endpoint', 'callsign'], kind: 'string' },
  { field: 3, element: '__group', attributes: ['name', 'role'], kind: 'string' },
  { field: 4, element: 'precisionlocation', attributes: ['geopointsrc', 'altsrc'], kind: 'string' },
  { field: 5, element: 'status', attributes: ['battery'], kind: 'uint32' },
  { field: 6, element: 'takv', attributes: ['device', 'platform', 'os', 'version'], kind: 'string' },
  { field: 7, element: 'track', attributes: ['speed', 'course'], kind: 'double' },
];

interface Lifted {
  /** Which child of the detail. */
  index: number;
  typed: TypedElement;
  values: readonly string[];
}

/**
 * Header and TakMessage. `time` is written as its sendTime, milliseconds since 1970; times that are
 * none are left out. `content` gives what stands in the detail without the children of those
 * numbers, which ascend.
 */
export function encodeEvent(event: XmlEvent, time: string, content: (lifted: readonly number[]) => Buffer): Buffer {
  const lifted = TYPED_ELEMENTS.flatMap((typed) => lift(event, typed) ?? []);
  const writer = new BinaryWriter();
  writer.tag(TAK_MESSAGE.cotEvent, WireType.LengthDelimited).fork();
  writeString(writer, COT_EVENT.type, event.type);
  writeString(writer, COT_EVENT.access, event.access);
  writeString(writer, COT_EVENT.qos, event.qos);
  writeString(writer, COT_EVENT.opex, event.opex);
  writeString(writer, COT_EVENT.uid, event.uid);
  writeTime(writer, COT_EVENT.sendTime, time);
  writeTime(writer, COT_EVENT.startTime, event.start);
  writeTime(writer, COT_EVENT.staleTime, event.stale);
  writeString(writer, COT_EVENT.how, event.how);
  const { lat, lon, hae, ce, le } = event.point;
  writeDouble(writer, COT_EVENT.lat, lat);
  writeDouble(writer, COT_EVENT.lon, lon);
  writeDouble(writer, COT_EVENT.hae, hae);
  writeDouble(writer, COT_EVENT.ce, ce);
  writeDouble(writer, COT_EVENT.le, le);
  writer.tag(COT_EVENT.detail, WireType.LengthDelimited).fork();
  const xml = content(lifted.map(({ index }) => index).toSorted((one, other) => one - other));
  if (xml.length > 0) writer.tag(XML_DETAIL, WireType.LengthDelimited).bytes(xml);
  for (const each of lifted) writeTyped(writer, each);
  writer.join();
  writeString(writer, COT_EVENT.caveat, event.caveat);
  writeString(writer, COT_EVENT.releaseableTo, event.releaseableTo);
  writer.join();
  return frameOf(writer.finish());
}

/**
 * The only child of that name, if it may be lifted: of two, one in XML would win over the other.
 */
function lift(event: XmlEvent, typed: TypedElement): Lifted | undefined {
  const index = event.childIndex(typed.element, 0);
  if (index < 0 || event.childIndex(typed.element, index + 1) >= 0) return undefined;
  const element = event.childAt(index);
  const values = element.isEmpty() ? valuesOf(element, typed) : undefined;
  return values && { index, typed, values };
}

function valuesOf(element: XmlElement, { attributes, kind }: TypedElement): string[] | undefined {
  const given = element.attributes();
  if (given.length !== attributes.length) return undefined;
  const values = attributes.map((name) => given.find(([each]) => each === name)?.[1]);
  return values.every((value) => value !== undefined && KEEPS[kind](value)) ? (values as string[]) : undefined;
}

const SIGNIFICANT = /[1-9]\d*/;

/** Whether a text of that kind comes out of its message with the value that went in. */
const KEEPS: Record<TypedElement['kind'], (text: string) => boolean> = {
  // Absent and empty are the same on the wire.
  string: (text) => text !== '',
  uint32: (text) => /^(?:0|[1-9]\d{0,9})$/.test(text) && Number(text) <= 0xffff_ffff,
  // A double holds any 15 digits.
  double: (text) => {
    const value = numberOf(text);
    if (Number.isNaN(value)) return false;
    const digits = SIGNIFICANT.exec(text.replace('.', ''))?.[0] ?? '';
    return String(value) === text || (digits.length <= 15 && !/[eE]/.test(text) && text.trim() === text);
  },
};

function writeTyped(writer: BinaryWriter, { typed, values }: Lifted): void {
  writer.tag(typed.field, WireType.LengthDelimited).fork();
  values.forEach((value, k) => {
    if (typed.kind === 'string') writeString(writer, k + 1, value);
    else if (typed.kind === 'double') writeDouble(writer, k + 1, Number(value));
    else if (Number(value) !== 0) writer.tag(k + 1, WireType.Varint).uint32(Number(value));
  });
  writer.join();
}

function writeString(writer: BinaryWriter, field: number, text: string | undefined): void {
  if (text !== undefined && text !== '') writer.tag(field, WireType.LengthDelimited).string(text);
}

function writeDouble(writer: BinaryWriter, field: number, value: number): void {
  if (value !== 0) writer.tag(field, WireType.Bit64).double(value);
}

function writeTime(writer: BinaryWriter, field: number, text: string | undefined): void {
  const time = readCotTime(text);
  if (time !== undefined && time > 0) writer.tag(field, WireType.Varint).uint64(time);
}

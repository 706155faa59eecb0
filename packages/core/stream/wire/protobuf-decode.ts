// Decodes a TakMessage: writes it as XML and parses that, so that xmlDetail follows the same rules.

import { BinaryReader, WireType } from '@bufbuild/protobuf/wire';
import { type CotEvent, StreamFault } from '../../model/stream.ts';
import { escapeMarks } from '../../model/wire-text.ts';
import { COT_EVENT, TAK_MESSAGE, TYPED_ELEMENTS, type TypedElement, XML_DETAIL } from './protobuf-encode.ts';
import { readXmlEvent, type XmlEvent } from './xml-event.ts';

/** Attributes of the event that are strings, by their field. */
const TEXTS = new Map<number, string>(
  (['type', 'access', 'qos', 'opex', 'uid', 'how', 'caveat', 'releaseableTo'] as const).map((name) => [
    COT_EVENT[name],
    name,
  ]),
);
const TIMES = new Map<number, string>([
  [COT_EVENT.sendTime, 'time'],
  [COT_EVENT.startTime, 'start'],
  [COT_EVENT.staleTime, 'stale'],
]);
const COORDINATES = new Map<number, string>([
  [COT_EVENT.lat, 'lat'],
  [COT_EVENT.lon, 'lon'],
  [COT_EVENT.hae, 'hae'],
  [COT_EVENT.ce, 'ce'],
  [COT_EVENT.le, 'le'],
]);
const TYPED = new Map(TYPED_ELEMENTS.map((typed) => [typed.field, typed]));

/** Characters of a text of its own, not of xmlDetail: escaped it may grow six times. */
const MAX_TEXT_LENGTH = 65_536;

/** The last millisecond that a date can say. */
const LAST_TIME = 8.64e15;

/** What a message says; of a field that comes twice the last counts. */
interface Message {
  isEvent: boolean;
  texts: Map<string, string>;
  /** Milliseconds since 1970. */
  times: Map<string, number>;
  coordinates: Map<string, number>;
  xml: Uint8Array;
  typed: Map<TypedElement, Map<number, string | number>>;
}

/**
 * Undefined for a message without an event (a TakControl) and for one that `readEvent` would not
 * take either. Throws a StreamFault for bytes that are no TakMessage and for an xmlDetail that is
 * not well-formed. The event has its own bytes.
 */
export function decodeEvent(bytes: Buffer): CotEvent | undefined {
  const message = readMessage(bytes);
  return message.isEvent ? readWritten(message) : undefined;
}

function readMessage(bytes: Buffer): Message {
  const message: Message = {
    isEvent: false,
    texts: new Map(),
    times: new Map(),
    coordinates: new Map(),
    xml: new Uint8Array(),
    typed: new Map(),
  };
  // Whatever the reader throws at such bytes ends the connection, and nothing else.
  try {
    eachField(bytes, (reader, field, wire) => {
      if (field !== TAK_MESSAGE.cotEvent || wire !== WireType.LengthDelimited) return false;
      message.isEvent = true;
      readCotEvent(reader.bytes(), message);
      return true;
    });
  } catch {
    throw new StreamFault('a message that is no TakMessage');
  }
  return message;
}

/** `take` says whether it has read the field; others are skipped. */
function eachField(bytes: Uint8Array, take: (reader: BinaryReader, field: number, wire: WireType) => boolean): void {
  const reader = new BinaryReader(bytes);
  while (reader.pos < reader.len) {
    const [field, wire] = reader.tag();
    if (!take(reader, field, wire)) reader.skip(wire, field);
  }
}

function readCotEvent(bytes: Uint8Array, message: Message): void {
  eachField(bytes, (reader, field, wire) => {
    const text = TEXTS.get(field);
    const time = TIMES.get(field);
    const coordinate = COORDINATES.get(field);
    if (text !== undefined && wire === WireType.LengthDelimited) message.texts.set(text, reader.string(true));
    else if (time !== undefined && wire === WireType.Varint) message.times.set(time, Number(reader.uint64()));
    else if (coordinate !== undefined && wire === WireType.Bit64) message.coordinates.set(coordinate, reader.double());
    else if (field === COT_EVENT.detail && wire === WireType.LengthDelimited) readDetail(reader.bytes(), message);
    else return false;
    return true;
  });
}

function readDetail(bytes: Uint8Array, message: Message): void {
  eachField(bytes, (reader, field, wire) => {
    const typed = TYPED.get(field);
    if (wire !== WireType.LengthDelimited) return false;
    if (field === XML_DETAIL) message.xml = reader.bytes();
    else if (typed !== undefined) readTyped(reader.bytes(), typed, message);
    else return false;
    return true;
  });
}

function readTyped(bytes: Uint8Array, typed: TypedElement, message: Message): void {
  const values = message.typed.get(typed) ?? new Map<number, string | number>();
  message.typed.set(typed, values);
  eachField(bytes, (reader, field, wire) => {
    if (field > typed.attributes.length) return false;
    if (typed.kind === 'string' && wire === WireType.LengthDelimited) values.set(field, reader.string(true));
    else if (typed.kind === 'double' && wire === WireType.Bit64) values.set(field, reader.double());
    else if (typed.kind === 'uint32' && wire === WireType.Varint) values.set(field, reader.uint32());
    else return false;
    return true;
  });
}

function readWritten(message: Message): XmlEvent | undefined {
  const xml = Buffer.from(message.xml.buffer, message.xml.byteOffset, message.xml.byteLength);
  const typed = [...message.typed.keys()];
  const isNamedInside = typed.some(({ element }) => xml.includes(`<${element}`));
  if (!isNamedInside) return readWith(message, xml, typed);
  // What stands in xmlDetail wins; whether it stands there as a child of the detail, only its
  // outline tells.
  const plain = readWith(message, xml, []);
  const missing = typed.filter(({ element }) => plain?.detail(element) === undefined);
  return missing.length === 0 ? plain : readWith(message, xml, missing);
}

const CLOSE = Buffer.from('</detail></event>');

function readWith(message: Message, xml: Buffer, typed: readonly TypedElement[]): XmlEvent | undefined {
  let head = '<event version="2.0"';
  for (const [name, value] of message.texts) if (value !== '') head += attribute(name, value);
  for (const [name, ms] of message.times) {
    // 0 is what a message without the field says.
    if (ms > 0 && ms <= LAST_TIME) head += attribute(name, new Date(ms).toISOString());
  }
  head += '><point';
  for (const name of COORDINATES.values()) head += attribute(name, message.coordinates.get(name) ?? 0);
  head += '/><detail>';
  for (const each of typed) head += written(each, message.typed.get(each));
  const frame = Buffer.concat([Buffer.from(head), xml, CLOSE]);
  const event = readXmlEvent(frame);
  // An xmlDetail that ends the detail and begins another one is well-formed only as a whole.
  if (event !== undefined && event.detailClose !== frame.length - CLOSE.length) {
    throw new StreamFault('XML is not well-formed: xmlDetail ends its detail');
  }
  return event;
}

function written({ element, attributes, kind }: TypedElement, values?: ReadonlyMap<number, string | number>): string {
  let text = `<${element}`;
  attributes.forEach((name, k) => {
    const value = values?.get(k + 1) ?? (kind === 'string' ? '' : 0);
    // A contact has its endpoint or has none.
    if (name !== 'endpoint' || value !== '') text += attribute(name, value);
  });
  return `${text}/>`;
}

function attribute(name: string, value: string | number): string {
  if (typeof value === 'number') return ` ${name}="${value}"`;
  if (value.length > MAX_TEXT_LENGTH) {
    throw new StreamFault(`a text of more than ${MAX_TEXT_LENGTH} characters in a TakMessage`);
  }
  return ` ${name}="${escapeMarks(value)}"`;
}

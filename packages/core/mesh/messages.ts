// Encodes events for the other nodes: those of one turn for the same groups in one message, and a
// large event in parts.

/** Of a message in JSON; none of a batch or a part begins with it. */
export const JSON_START = 0x7b;

/** An event as its receivers get it, in XML. */
export interface MeshEvent {
  /** The client that it came from; 0 for the server. */
  sender: number;
  /** The newest report of its sender. */
  isReport: boolean;
  /** Of a device that doesn't get it. */
  except: string | undefined;
  xml: Buffer;
}

export interface Batch {
  node: string;
  /** Grows with each message of a node: a second copy of it is passed over. */
  sequence: number;
  /** Milliseconds since 1970: the time over the events. */
  atMs: number;
  /** Groups that it went to. For `clients` those that the sender may send into; undefined: any. */
  places: readonly number[] | undefined;
  /** Numbers of the only receivers; undefined: everybody. */
  clients: readonly number[] | undefined;
  /** The answer to a question for the newest reports. */
  isAnswer: boolean;
  events: readonly MeshEvent[];
}

export interface Part {
  node: string;
  sequence: number;
  index: number;
  parts: number;
  bytes: Buffer;
}

/** Of a message with several parts; above it an event goes in parts. */
export const MAX_MESSAGE_BYTES: number = 256 * 1024;
const BATCH = 1;
const PART = 2;
const ANSWER = 4;
const PLACES = 8;
const CLIENTS = 16;
const REPORT = 1;
const HEAD_BYTES = 32;
const EVENT_HEAD_BYTES = 15;

/** Throws a RangeError for a text longer than 64 kB. */
export function encodeBatch(batch: Batch): Buffer {
  const node = Buffer.from(batch.node);
  const places = batch.places ?? [];
  const clients = batch.clients ?? [];
  const excepted = batch.events.map(({ except }) => (except === undefined ? undefined : Buffer.from(except)));
  let bytes = HEAD_BYTES + node.length + 4 * places.length + 8 * clients.length;
  for (const { xml } of batch.events) bytes += EVENT_HEAD_BYTES + xml.length;
  for (const text of excepted) bytes += text?.length ?? 0;
  const target = Buffer.allocUnsafe(bytes);
  let at = writeHead(target, BATCH | flagsOf(batch), node, batch.sequence);
  at = target.writeDoubleLE(batch.atMs, at);
  at = target.writeUInt32LE(places.length, at);
  for (const place of places) at = target.writeUInt32LE(place, at);
  at = target.writeUInt32LE(clients.length, at);
  for (const client of clients) at = target.writeDoubleLE(client, at);
  at = target.writeUInt32LE(batch.events.length, at);
  for (const [index, { sender, isReport, xml }] of batch.events.entries()) {
    const except = excepted[index];
    at = target.writeDoubleLE(sender, at);
    at = target.writeUInt8(isReport ? REPORT : 0, at);
    at = target.writeUInt16LE(except === undefined ? 0 : except.length, at);
    at += except?.copy(target, at) ?? 0;
    at = target.writeUInt32LE(xml.length, at);
    at += xml.copy(target, at);
  }
  return target.subarray(0, at);
}

function flagsOf({ places, clients, isAnswer }: Batch): number {
  return (isAnswer ? ANSWER : 0) | (places === undefined ? 0 : PLACES) | (clients === undefined ? 0 : CLIENTS);
}

function writeHead(target: Buffer, kind: number, node: Buffer, sequence: number): number {
  let at = target.writeUInt8(kind, 0);
  at = target.writeUInt8(node.length, at);
  at += node.copy(target, at);
  return target.writeDoubleLE(sequence, at);
}

/** The message in parts of at most `MAX_MESSAGE_BYTES`, numbered from `sequence`. */
export function splitMessage(node: string, sequence: number, message: Buffer): Buffer[] {
  const parts = Math.ceil(message.length / MAX_MESSAGE_BYTES);
  const name = Buffer.from(node);
  return Array.from({ length: parts }, (_, index) => {
    const bytes = message.subarray(index * MAX_MESSAGE_BYTES, (index + 1) * MAX_MESSAGE_BYTES);
    const target = Buffer.allocUnsafe(HEAD_BYTES + name.length + bytes.length);
    let at = writeHead(target, PART, name, sequence + index);
    at = target.writeUInt32LE(index, at);
    at = target.writeUInt32LE(parts, at);
    at += bytes.copy(target, at);
    return target.subarray(0, at);
  });
}

/** The events lie in the message. Throws a RangeError for what is no message of ours. */
export function decodeMessage(message: Buffer): Batch | Part {
  const kind = message.readUInt8(0);
  const nameEnd = 2 + message.readUInt8(1);
  const node = message.toString('utf8', 2, nameEnd);
  const sequence = message.readDoubleLE(nameEnd);
  const at = nameEnd + 8;
  if ((kind & PART) !== 0)
    return {
      node,
      sequence,
      index: message.readUInt32LE(at),
      parts: message.readUInt32LE(at + 4),
      bytes: message.subarray(at + 8),
    };
  if ((kind & BATCH) === 0) throw new RangeError(`unknown kind of message: ${kind}`);
  return readBatch(message, at, { node, sequence, kind });
}

function readBatch(message: Buffer, start: number, head: { node: string; sequence: number; kind: number }): Batch {
  let at = start;
  const take = (bytes: number): number => (at += bytes) - bytes;
  const many = <T>(read: () => T): T[] => Array.from({ length: message.readUInt32LE(take(4)) }, read);
  const atMs = message.readDoubleLE(take(8));
  const places = many(() => message.readUInt32LE(take(4)));
  const clients = many(() => message.readDoubleLE(take(8)));
  const events = many((): MeshEvent => {
    const sender = message.readDoubleLE(take(8));
    const isReport = message.readUInt8(take(1)) === REPORT;
    const exceptBytes = message.readUInt16LE(take(2));
    const exceptAt = take(exceptBytes);
    const except = exceptBytes === 0 ? undefined : message.toString('utf8', exceptAt, at);
    const length = message.readUInt32LE(take(4));
    if (at + length > message.length) throw new RangeError('an event goes beyond its message');
    const xmlAt = take(length);
    return { sender, isReport, except, xml: message.subarray(xmlAt, xmlAt + length) };
  });
  const { node, sequence, kind } = head;
  return {
    node,
    sequence,
    atMs,
    places: (kind & PLACES) === 0 ? undefined : places,
    clients: (kind & CLIENTS) === 0 ? undefined : clients,
    isAnswer: (kind & ANSWER) !== 0,
    events,
  };
}

/** Puts parts together again. An event whose first part never came is dropped. */
export class Parts {
  #waiting: Buffer[] = [];

  /** The whole message with its last part. */
  take({ index, parts, bytes }: Part): Buffer | undefined {
    if (index === 0) this.#waiting = [];
    if (index !== this.#waiting.length) {
      this.#waiting = [];
      return undefined;
    }
    this.#waiting.push(Buffer.from(bytes));
    if (index + 1 < parts) return undefined;
    const whole = Buffer.concat(this.#waiting);
    this.#waiting = [];
    return whole;
  }
}

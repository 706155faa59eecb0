// Encodes and decodes BER elements as LDAP uses them (definite lengths, tags of one byte), and
// splits a connection's bytes into messages.

import { BerReader } from 'ldapts';

export class BerError extends Error {}

export interface Element {
  tag: number;
  content: Buffer;
}

export const INTEGER = 0x02;
const BOOLEAN = 0x01;
export const OCTETS = 0x04;
export const ENUMERATED = 0x0a;
export const SEQUENCE = 0x30;
export const SET = 0x31;

const HIGH_TAG = 0x1f;

/**
 * Where the content of the element that begins at `at` lies; undefined while its head is not
 * complete.
 */
export function elementHead(bytes: Buffer, at: number): { tag: number; start: number; length: number } | undefined {
  const tag = bytes[at];
  if (tag === undefined) return undefined;
  if ((tag & HIGH_TAG) === HIGH_TAG) throw new BerError('tag of several bytes');
  const reader = new BerReader(bytes);
  let start: number | null;
  try {
    start = reader.readLength(at + 1);
  } catch (error) {
    throw new BerError('length in a form that is not taken', { cause: error });
  }
  if (start === null) return undefined;
  if (reader.length < 0) throw new BerError('length out of range');
  return { tag, start, length: reader.length };
}

/** Reads the elements within one content, in order. */
export class Elements {
  readonly #bytes: Buffer;
  #at = 0;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  get done(): boolean {
    return this.#at >= this.#bytes.length;
  }

  /** Tag of the next element; undefined at the end. */
  get tag(): number | undefined {
    return this.#bytes[this.#at];
  }

  next(expected?: number): Element {
    const head = elementHead(this.#bytes, this.#at);
    if (head === undefined) throw new BerError('an element is missing or cut off');
    const end = head.start + head.length;
    if (end > this.#bytes.length) throw new BerError('an element is longer than what encloses it');
    if (expected !== undefined && head.tag !== expected) throw new BerError('an element of another kind was expected');
    this.#at = end;
    return { tag: head.tag, content: this.#bytes.subarray(head.start, end) };
  }

  integer(tag: number = INTEGER): number {
    const { content } = this.next(tag);
    if (content.length < 1 || content.length > 4) throw new BerError('integer out of range');
    return content.readIntBE(0, content.length);
  }

  boolean(tag: number = BOOLEAN): boolean {
    const { content } = this.next(tag);
    if (content.length !== 1) throw new BerError('boolean of more than one byte');
    return content[0] !== 0;
  }

  /** The text of the next element; undefined when it is not UTF-8. */
  text(tag: number = OCTETS): string | undefined {
    return textOf(this.next(tag).content);
  }

  /** The elements within the next one. */
  within(tag: number = SEQUENCE): Elements {
    return new Elements(this.next(tag).content);
  }
}

const UTF8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** The text of bytes; undefined when they are not UTF-8. */
export function textOf(bytes: Buffer): string | undefined {
  try {
    return UTF8.decode(bytes);
  } catch {
    return undefined;
  }
}

const KEPT_BYTES = 64 * 1024;

/**
 * Cuts the bytes of a connection into messages. What arrives byte by byte is copied a bounded
 * number of times, and memory is taken for what has arrived, not for what a message claims to be.
 */
export class Framing {
  #bytes = Buffer.alloc(0);
  #start = 0;
  #end = 0;

  /** Bytes that belong to no message that was handed out. */
  get pending(): number {
    return this.#end - this.#start;
  }

  push(chunk: Buffer): void {
    if (this.#bytes.length - this.#end < chunk.length) {
      const grown = Buffer.allocUnsafe(Math.max(1024, 2 * (this.pending + chunk.length)));
      this.#bytes.copy(grown, 0, this.#start, this.#end);
      this.#end = this.pending;
      this.#start = 0;
      this.#bytes = grown;
    }
    chunk.copy(this.#bytes, this.#end);
    this.#end += chunk.length;
  }

  /**
   * The next whole message, undefined while it is not complete. Throws for bytes that can be none,
   * or one above the limit.
   */
  next(maxBytes: number): Buffer | undefined {
    const live = this.#bytes.subarray(this.#start, this.#end);
    if (live.length > 0 && live[0] !== SEQUENCE) throw new BerError('no LDAP message');
    const head = elementHead(live, 0);
    if (head === undefined) return undefined;
    const length = head.start + head.length;
    if (length > maxBytes) throw new BerError('message too long');
    if (live.length < length) return undefined;
    const message = Buffer.from(live.subarray(0, length));
    this.#start += length;
    if (this.pending === 0) {
      this.#start = 0;
      this.#end = 0;
      if (this.#bytes.length > KEPT_BYTES) this.#bytes = Buffer.alloc(0);
    }
    return message;
  }
}

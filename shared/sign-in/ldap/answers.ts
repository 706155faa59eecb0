// Parses LDAP responses (RFC 4511), strictly. Not with ldapts: a set of values that is longer than
// its message sends its reader into an endless loop, many messages at once overflow its stack, and
// it buffers half a message without limit.

import { AppError } from '@holdfast/kit/app-error';

/** An entry. Attribute names are in lower case; values that aren't UTF-8 are dropped. */
export interface LdapEntry {
  dn: string;
  attributes: ReadonlyMap<string, readonly string[]>;
}

/**
 * `code` is the result code. The directory's diagnostic message is ignored: it may repeat what was
 * sent.
 */
export type LdapAnswer = { id: number } & (
  | { kind: 'bound' | 'searched' | 'extended'; code: number }
  | { kind: 'entry'; entry: LdapEntry }
  | { kind: 'reference' }
);

/** The received bytes are not an LDAP response. */
export class NoAnswer extends Error {}

const MAX_MESSAGE_BYTES = 8 * 1024 * 1024;
const MAX_HEADER_BYTES = 6;

const INTEGER = 0x02;
const OCTETS = 0x04;
const ENUMERATED = 0x0a;
const SEQUENCE = 0x30;
const SET = 0x31;
const BIND_RESPONSE = 0x61;
const SEARCH_ENTRY = 0x64;
const SEARCH_DONE = 0x65;
const SEARCH_REFERENCE = 0x73;
const EXTENDED_RESPONSE = 0x78;

/**
 * Splits the bytes of a connection into responses; throws NoAnswer as soon as they can't be one.
 */
export function answerReader(): (chunk: Buffer) => Generator<LdapAnswer> {
  let chunks: Buffer[] = [];
  let held = 0;
  let wanted = 2;

  return function* read(chunk) {
    chunks.push(chunk);
    held += chunk.length;
    while (held >= wanted) {
      const bytes = chunks.length === 1 ? (chunks[0] ?? chunk) : Buffer.concat(chunks, held);
      chunks = [bytes];
      const length = messageLength(bytes);
      wanted = length ?? Math.min(held + 1, MAX_HEADER_BYTES);
      if (length === undefined || held < length) continue;
      const rest = bytes.subarray(length);
      chunks = [rest];
      held = rest.length;
      wanted = 2;
      yield readAnswer(bytes.subarray(0, length));
    }
  };
}

/**
 * The bytes of the message that starts here, its header included; undefined when more bytes are
 * needed to know.
 */
function messageLength(bytes: Buffer): number | undefined {
  if (bytes[0] !== SEQUENCE) throw new NoAnswer('it sent data that is not LDAP');
  const header = readHeader(bytes, 0);
  if (header === undefined) return undefined;
  if (header.length > MAX_MESSAGE_BYTES) throw new NoAnswer(`it announced a message of ${header.length} bytes`);
  return header.start + header.length;
}

/** Where the content of a value starts and its length; undefined when the header is incomplete. */
function readHeader(bytes: Buffer, at: number): { start: number; length: number } | undefined {
  const first = bytes[at + 1];
  if (first === undefined) return undefined;
  if (first < 0x80) return { start: at + 2, length: first };
  const size = first & 0x7f;
  if (size === 0 || size > 4) throw new NoAnswer('it sent a length that LDAP does not allow');
  if (bytes.length < at + 2 + size) return undefined;
  return { start: at + 2 + size, length: bytes.readUIntBE(at + 2, size) };
}

/** Reads values one after the other, never past the end. */
class Values {
  readonly #bytes: Buffer;
  #at = 0;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  get more(): boolean {
    return this.#at < this.#bytes.length;
  }

  next(): { tag: number; content: Buffer } {
    const tag = this.#bytes[this.#at];
    const header = readHeader(this.#bytes, this.#at);
    if (tag === undefined || header === undefined || header.start + header.length > this.#bytes.length)
      throw new NoAnswer('it sent a message whose parts do not fit together');
    this.#at = header.start + header.length;
    return { tag, content: this.#bytes.subarray(header.start, this.#at) };
  }

  take(tag: number): Buffer {
    const value = this.next();
    if (value.tag !== tag) throw new NoAnswer('it sent a message of an unexpected shape');
    return value.content;
  }

  number(tag: number): number {
    const content = this.take(tag);
    if (content.length < 1 || content.length > 4) throw new NoAnswer('it sent a number that LDAP does not allow');
    return content.readIntBE(0, content.length);
  }

  text(): string {
    return this.take(OCTETS).toString('utf8');
  }
}

function readAnswer(bytes: Buffer): LdapAnswer {
  const message = new Values(new Values(bytes).take(SEQUENCE));
  const id = message.number(INTEGER);
  const { tag, content } = message.next();
  switch (tag) {
    case BIND_RESPONSE:
      return { id, kind: 'bound', code: readResult(content) };
    case SEARCH_DONE:
      return { id, kind: 'searched', code: readResult(content) };
    case EXTENDED_RESPONSE:
      return { id, kind: 'extended', code: readResult(content) };
    case SEARCH_ENTRY:
      return { id, kind: 'entry', entry: readEntry(content) };
    case SEARCH_REFERENCE:
      return { id, kind: 'reference' };
    default:
      throw new NoAnswer('it sent a message of an unexpected kind');
  }
}

function readResult(content: Buffer): number {
  const values = new Values(content);
  const code = values.number(ENUMERATED);
  values.take(OCTETS);
  values.take(OCTETS);
  return code;
}

function readEntry(content: Buffer): LdapEntry {
  const values = new Values(content);
  const dn = values.text();
  const attributes = new Map<string, string[]>();
  const list = new Values(values.take(SEQUENCE));
  while (list.more) {
    const attribute = new Values(list.take(SEQUENCE));
    const name = attribute.text().toLowerCase();
    const known = attributes.get(name) ?? [];
    attributes.set(name, known);
    const set = new Values(attribute.take(SET));
    while (set.more) {
      const text = utf8(set.take(OCTETS));
      if (text !== undefined) known.push(text);
    }
  }
  return { dn, attributes };
}

function utf8(bytes: Buffer): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return undefined;
  }
}

/** Result codes (RFC 4511, appendix A). */
export const NO_SUCH_OBJECT = 32;
export const INSUFFICIENT = 50;
export const UNWILLING = 53;

/**
 * noSuchObject, invalidDNSyntax, invalidCredentials, insufficientAccessRights, unwillingToPerform.
 */
const REFUSALS: ReadonlySet<number> = new Set([NO_SUCH_OBJECT, 34, 49, INSUFFICIENT, UNWILLING]);
const TEMPORARY: ReadonlyMap<number, string> = new Map([
  [1, 'operationsError'],
  [3, 'timeLimitExceeded'],
  [51, 'busy'],
  [52, 'unavailable'],
]);

/**
 * True when a bind that ended so was refused: by authentik with 49 or 50, by slapd with 53 for an
 * empty password.
 */
export function isRefusal(code: number): boolean {
  return REFUSALS.has(code);
}

/**
 * `unavailable` for a temporary failure, else `upstream`. `doing` is the operation that failed: `a
 * sign-in`.
 */
export function answerFailure(called: string, code: number, doing: string): AppError {
  const temporary = TEMPORARY.get(code);
  const text = `${called} answered ${doing} with the result ${code}${temporary === undefined ? '' : ` (${temporary})`}`;
  return new AppError(temporary === undefined ? 'upstream' : 'unavailable', text);
}

// A revocation list (RFC 5280, 5.1) taken apart. Whoever reads it brings the cryptography; numbers
// and entries are looked at only when they are asked for, so that the head of a list of a hundred
// thousand is read as fast as that of an empty one.

import {
  BIT_STRING,
  CONTEXT_0,
  type DerElement,
  derElements,
  DerError,
  identifier,
  INTEGER,
  onlyElement,
  SEQUENCE,
} from '@holdfast/kit/tlv';

export interface RevocationList {
  /** What the signature is made of, as it stands in the list. */
  signed: Uint8Array<ArrayBuffer>;
  signature: Uint8Array<ArrayBuffer>;
  /** Object identifier of the signature's algorithm. */
  algorithm: string;
  /** DER of the name. */
  issuer: Uint8Array<ArrayBuffer>;
  thisUpdate: Date;
  /** Undefined: the list does not say when the next one comes. */
  nextUpdate: Date | undefined;
  /** 0 when it has none. Throws DerError. */
  number(): bigint;
  /** Serial numbers in lower-case hex without leading zeros. Throws DerError. */
  revoked(): { serial: string; revokedAt: Date }[];
}

const UTC_TIME = 0x17;
const GENERALIZED_TIME = 0x18;
const OCTET_STRING = 0x04;
const MAX_TIME = '20261122023204Z'.length;
const CRL_NUMBER = '2.5.29.20';

/** Throws DerError when the bytes are not exactly one whole list. */
export function readRevocationList(der: Uint8Array<ArrayBuffer>): RevocationList {
  const parts = derElements(onlyElement(der, SEQUENCE).content);
  const signed = parts.next(SEQUENCE);
  const algorithm = parts.next(SEQUENCE);
  const signature = parts.next(BIT_STRING).content;
  parts.end();
  // The first byte counts the unused bits of the last one: a signature has none.
  if (signature[0] !== 0) throw new DerError('a signature that is no whole number of bytes');

  const fields = derElements(signed.content);
  const first = fields.next();
  const innerAlgorithm = first.tag === INTEGER ? fields.next(SEQUENCE) : first;
  if (!isSame(innerAlgorithm.whole, algorithm.whole)) throw new DerError('two signature algorithms');
  const issuer = fields.next(SEQUENCE);
  const thisUpdate = timeOf(fields.next());
  const others: DerElement[] = [];
  while (!fields.done) others.push(fields.next());
  const nextUpdate = others[0] !== undefined && isTime(others[0]) ? timeOf(others[0]) : undefined;

  return {
    signed: signed.whole,
    signature: signature.subarray(1),
    algorithm: identifier(derElements(algorithm.content).next()),
    issuer: issuer.whole,
    thisUpdate,
    nextUpdate,
    number: () => numberAmong(others.find(({ tag }) => tag === CONTEXT_0)),
    revoked: () => each(others.find(({ tag }) => tag === SEQUENCE)).map(entryOf),
  };
}

function entryOf({ content }: DerElement): { serial: string; revokedAt: Date } {
  const parts = derElements(content);
  const serial = hexOf(parts.next(INTEGER));
  return { serial: serial.replace(/^0+(?=.)/, ''), revokedAt: timeOf(parts.next()) };
}

function numberAmong(extensions: DerElement | undefined): bigint {
  if (extensions === undefined) return 0n;
  for (const extension of each(onlyElement(extensions.content, SEQUENCE))) {
    const [type, ...rest] = each(extension);
    const value = rest.at(-1);
    if (type === undefined || identifier(type) !== CRL_NUMBER || value?.tag !== OCTET_STRING) continue;
    return BigInt(`0x${hexOf(onlyElement(value.content, INTEGER))}`);
  }
  return 0n;
}

function each(element: DerElement | undefined): DerElement[] {
  const elements = derElements(element?.content ?? new Uint8Array());
  const found: DerElement[] = [];
  while (!elements.done) found.push(elements.next());
  return found;
}

function hexOf({ content }: DerElement): string {
  if (content.length === 0) throw new DerError('a number without digits');
  return Array.from(content, (byte) => byte.toString(16).padStart(2, '0')).join('');
}

function isTime({ tag }: DerElement): boolean {
  return tag === UTC_TIME || tag === GENERALIZED_TIME;
}

/** `YYMMDDhhmmssZ`, where 50 and later are of the last century, or `YYYYMMDDhhmmssZ`. */
function timeOf(element: DerElement): Date {
  const digits = String.fromCharCode(...element.content.subarray(0, MAX_TIME + 1));
  const century = digits.slice(0, 2) < '50' ? '20' : '19';
  const text = element.tag === UTC_TIME ? century + digits : digits;
  const time = new Date(text.replace(/^(\d{4})(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)Z$/, '$1-$2-$3T$4:$5:$6Z'));
  if (!isTime(element) || text.length !== MAX_TIME || Number.isNaN(time.getTime()))
    throw new DerError('a time that cannot be read');
  return time;
}

function isSame(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && a.every((byte, index) => byte === b[index]);
}

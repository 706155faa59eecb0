// Paged results (RFC 2696). The server remembers nothing: the cookie says where to go on, how many entries went out before, and
// which search it belongs to. It opens nothing: who may see what is decided anew for every page.

import { createHash } from 'node:crypto';
import { BerWriter } from 'ldapts';
import { BerError, Elements, OCTETS } from './ber.ts';
import type { SearchRequest } from './message.ts';
import type { Control } from './result.ts';
import { LAST_STAGE, type Position } from './walk.ts';

export const PAGED_RESULTS = '1.2.840.113556.1.4.319';

export interface Page {
  size: number;
  from: Position;
  /** Entries on earlier pages. */
  sent: number;
}

const COOKIE_BYTES = 19;

/** 'bad cookie' for one that this server never gave, or gave to another search. */
export function readPage(control: Control, request: SearchRequest): Page | 'malformed' | 'bad cookie' {
  let size: number;
  let cookie: Buffer;
  try {
    const value = new Elements(control.value ?? Buffer.alloc(0)).within();
    size = value.integer();
    cookie = value.next(OCTETS).content;
  } catch (error) {
    if (!(error instanceof BerError)) throw error;
    return 'malformed';
  }
  if (size < 0) return 'malformed';
  if (cookie.length === 0) return { size, from: { stage: 0, after: 0 }, sent: 0 };
  if (cookie.length !== COOKIE_BYTES || !cookie.subarray(11).equals(searchMark(request))) return 'bad cookie';
  const stage = cookie.readUInt8(0);
  if (stage > LAST_STAGE) return 'bad cookie';
  return { size, from: { stage, after: cookie.readUIntBE(1, 6) }, sent: cookie.readUInt32BE(7) };
}

/** The control of an answer; `next` is undefined on the last page. */
export function pageControl(request: SearchRequest, next: Position | undefined, sent: number): Control {
  const cookie = Buffer.alloc(next === undefined ? 0 : COOKIE_BYTES);
  if (next !== undefined) {
    cookie.writeUInt8(next.stage, 0);
    cookie.writeUIntBE(next.after, 1, 6);
    cookie.writeUInt32BE(sent, 7);
    searchMark(request).copy(cookie, 11);
  }
  const writer = new BerWriter();
  writer.startSequence();
  writer.writeInt(0);
  writer.writeBuffer(cookie, OCTETS);
  writer.endSequence();
  return { oid: PAGED_RESULTS, critical: false, value: writer.buffer };
}

function searchMark(request: SearchRequest): Buffer {
  return createHash('sha256').update(request.bytes).digest().subarray(0, 8);
}

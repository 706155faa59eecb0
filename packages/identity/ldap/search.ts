// Runs one search: finds entries, filters them, and sends them as fast as the client reads.

import { createHash } from 'node:crypto';
import { setImmediate } from 'node:timers/promises';
import { BerWriter } from 'ldapts';
import type { Roster } from '../model/roster.ts';
import { BerError, Elements, OCTETS } from './ber.ts';
import { entry, type Entry, SUBSCHEMA_NAME, text } from './entry.ts';
import type { LdapLimits } from './limits.ts';
import { compileFilter, type Match } from './matching.ts';
import type { Message, SearchRequest } from './message.ts';
import { type Control, RESULT, type Result, type SentAttribute, writeEntry } from './result.ts';
import { ATTRIBUTE_TYPES, attributeKey, isOperational, OBJECT_CLASSES } from './schema.ts';
import { containerName, nameKey, placeOf, readName, type Tree, treeOf } from './tree.ts';
import { entryAt, LAST_STAGE, type Position, type Viewer, walk } from './walk.ts';

/**
 * Paged results (RFC 2696). The server remembers nothing: the cookie says where to go on, how many
 * entries went out before, and which search it belongs to. It opens nothing: who may see what is
 * decided anew for every page.
 */
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

// What the server says about itself: the root DSE and the subschema.
export const MANAGE_DSA_IT = '2.16.840.1.113730.3.4.2';
export const WHO_AM_I = '1.3.6.1.4.1.4203.1.11.3';

export function rootDse(trees: readonly Tree[]): Entry {
  const contexts = trees.flatMap((tree) => [tree.base, containerName(tree, 'users'), containerName(tree, 'groups')]);
  return {
    ...entry('', [
      text('objectClass', 'top'),
      text('supportedLDAPVersion', '3'),
      text('namingContexts', ...contexts),
      text('subschemaSubentry', SUBSCHEMA_NAME),
      text('supportedControl', PAGED_RESULTS, MANAGE_DSA_IT),
      text('supportedExtension', WHO_AM_I),
      text('vendorName', 'Holdfast'),
      text('vendorVersion', 'embedded'),
    ]),
    operational: true,
  };
}

export function subschema(): Entry {
  return {
    ...entry(SUBSCHEMA_NAME, [
      text('objectClass', 'top', 'subschema'),
      text('cn', 'subschema'),
      text('attributeTypes', ...ATTRIBUTE_TYPES),
      text('objectClasses', ...OBJECT_CLASSES),
    ]),
    operational: true,
  };
}

// Which attributes of an entry a search asked for: names, `*`, `+`, `1.1` (RFC 4511, section
// 4.5.1.8; RFC 3673).
export type Selection = (entry: Entry) => SentAttribute[];

/** `wanted` in lower case. */
export function selection(wanted: readonly string[]): Selection {
  const names = new Set(wanted.map(attributeKey));
  const all = wanted.length === 0 || names.has('*');
  const operational = names.has('+');
  return (entry) => {
    const sent: SentAttribute[] = [];
    for (const [key, { name, values }] of entry.attributes) {
      const ofKind = isOperational(key) && entry.operational !== true ? operational : all;
      if (ofKind || names.has(key) || (operational && entry.operational === true)) sent.push({ name, values });
    }
    return sent;
  };
}

/** Takes bytes for the client; waits while it does not read. */
export type Send = (bytes: Buffer) => Promise<void>;

export interface SearchDeps {
  roster: Roster;
  trees: readonly Tree[];
  limits: LdapLimits;
}

const SENT_AT_ONCE = 64 * 1024;
const NOT_SIGNED_IN: Result = { code: RESULT.insufficientAccessRights, text: 'sign in first' };
const NO_SUCH_OBJECT: Result = { code: RESULT.noSuchObject };

/** `viewer` is asked for only where a sign-in is needed; undefined for a client without one. */
export async function search(
  deps: SearchDeps,
  message: Message<SearchRequest>,
  readViewer: () => Promise<Viewer | undefined>,
  send: Send,
  signal: AbortSignal,
): Promise<Result> {
  const { request } = message;
  const name = readName(request.base);
  if (name === undefined) return { code: RESULT.invalidDNSyntax };
  const entries = new EntryStream(message, send, (text) => text);
  if (name.length === 0 && request.scope === 'base') return entries.only(rootDse(deps.trees));
  const viewer = await readViewer();
  if (viewer === undefined) return NOT_SIGNED_IN;
  if (request.scope === 'base' && request.base?.toLowerCase() === SUBSCHEMA_NAME) return entries.only(subschema());
  const tree = treeOf(deps.trees, name);
  if (tree === undefined) return NO_SUCH_OBJECT;
  if (tree !== viewer.tree) {
    return { code: RESULT.insufficientAccessRights, text: 'signed in on another base' };
  }
  const place = placeOf(tree, name);
  const itself = place && (await entryAt(deps.roster, viewer, place));
  if (place === undefined || itself === undefined) return NO_SUCH_OBJECT;
  const page = pageOf(message);
  if (page !== undefined && 'code' in page) return page;
  const from = page?.from ?? { stage: 0, after: 0 };
  const most = maxEntries(request, page, deps.limits.entries);
  const found = new EntryStream(message, send, (text) => nameKey(tree, text));
  const batches = walk({ ...request, roster: deps.roster, viewer, place, itself, from, wanted: most });
  const next = await found.take(batches, most, signal);
  return settle(request, page, next, found.sent);
}

/** Undefined when no page was asked for. */
function pageOf({ request, controls }: Message<SearchRequest>): Page | Result | undefined {
  const requests: Control[] = controls.filter(({ oid }) => oid === PAGED_RESULTS);
  const [control] = requests;
  if (control === undefined) return undefined;
  const page = requests.length > 1 ? 'malformed' : readPage(control, request);
  if (page === 'malformed') return { code: RESULT.protocolError, text: 'paged results: malformed' };
  if (page === 'bad cookie') return { code: RESULT.unwillingToPerform, text: 'paged results: bad cookie' };
  return page;
}

/**
 * Entries that may still go out with this answer. The size limit of a client holds over all pages
 * of a search.
 */
function maxEntries({ sizeLimit }: SearchRequest, page: Page | undefined, serverLimit: number): number {
  const allowed = sizeLimit === 0 ? Infinity : Math.max(0, sizeLimit - (page?.sent ?? 0));
  return Math.min(allowed, page?.size ?? serverLimit, serverLimit);
}

/** `next` is where the first match lies that was not sent. */
function settle(request: SearchRequest, page: Page | undefined, next: Position | undefined, sent: number): Result {
  if (page === undefined) return { code: next === undefined ? RESULT.success : RESULT.sizeLimitExceeded };
  const total = page.sent + sent;
  if (page.size === 0) return { code: RESULT.success, controls: [pageControl(request, undefined, 0)] };
  if (next !== undefined && request.sizeLimit > 0 && total >= request.sizeLimit) {
    return { code: RESULT.sizeLimitExceeded, controls: [pageControl(request, undefined, 0)] };
  }
  return { code: RESULT.success, controls: [pageControl(request, next, total)] };
}

/** Filters, encodes and sends. */
class EntryStream {
  readonly #message: Message<SearchRequest>;
  readonly #send: Send;
  readonly #match: Match;
  readonly #select: ReturnType<typeof selection>;
  #waiting: Buffer[] = [];
  #waitingBytes = 0;
  sent = 0;

  constructor(message: Message<SearchRequest>, send: Send, key: (text: string) => string | undefined) {
    this.#message = message;
    this.#send = send;
    this.#match = compileFilter(message.request.filter, key);
    this.#select = selection(message.request.wanted);
  }

  async only(entry: Entry): Promise<Result> {
    if (this.#match(entry) === true) this.#add(entry);
    await this.#flush();
    return { code: RESULT.success };
  }

  /** At most `most` matches; where the next one lies, undefined when there is none. */
  async take(
    batches: AsyncIterable<{ entry: Entry; stage: number; key: number }[]>,
    most: number,
    signal: AbortSignal,
  ): Promise<Position | undefined> {
    for await (const batch of batches) {
      for (const { entry, stage, key } of batch) {
        if (this.#match(entry) !== true) continue;
        if (this.sent === most) {
          await this.#flush();
          return { stage, after: key - 1 };
        }
        this.#add(entry);
        if (this.#waitingBytes >= SENT_AT_ONCE) await this.#flush();
        signal.throwIfAborted();
      }
      await setImmediate();
      signal.throwIfAborted();
    }
    await this.#flush();
    return undefined;
  }

  #add(entry: Entry): void {
    const { id, request } = this.#message;
    const bytes = writeEntry(id, entry.dn, this.#select(entry), request.typesOnly);
    this.#waiting.push(bytes);
    this.#waitingBytes += bytes.length;
    this.sent++;
  }

  async #flush(): Promise<void> {
    if (this.#waiting.length === 0) return;
    const bytes = Buffer.concat(this.#waiting);
    this.#waiting = [];
    this.#waitingBytes = 0;
    await this.#send(bytes);
  }
}

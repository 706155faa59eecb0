// One search: finds the entries, holds them against the filter, sends them as fast as the client reads.

import { setImmediate } from 'node:timers/promises';
import type { Roster } from '../roster.ts';
import { SUBSCHEMA_NAME, type Entry } from './entry.ts';
import type { LdapLimits } from './limits.ts';
import { compileFilter, type Match } from './matching.ts';
import type { Message, SearchRequest } from './message.ts';
import { rootDse, subschema } from './own-entries.ts';
import { PAGED_RESULTS, pageControl, readPage, type Page } from './paging.ts';
import { RESULT, writeEntry, type Control, type Result } from './result.ts';
import { selection } from './selection.ts';
import { nameKey, placeOf, readName, treeOf, type Tree } from './tree.ts';
import { entryAt, walk, type Position, type Viewer } from './walk.ts';

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
  const most = mostEntries(request, page, deps.limits.entries);
  const found = new EntryStream(message, send, (text) => nameKey(tree, text));
  const batches = walk({ ...request, roster: deps.roster, viewer, place, itself, from, wanted: most });
  const next = await found.take(batches, most, signal);
  return settle(request, page, next, found.sent);
}

/** Undefined when no page was asked for. */
function pageOf({ request, controls }: Message<SearchRequest>): Page | Result | undefined {
  const asked: Control[] = controls.filter(({ oid }) => oid === PAGED_RESULTS);
  const [control] = asked;
  if (control === undefined) return undefined;
  const page = asked.length > 1 ? 'malformed' : readPage(control, request);
  if (page === 'malformed') return { code: RESULT.protocolError, text: 'paged results: malformed' };
  if (page === 'bad cookie') return { code: RESULT.unwillingToPerform, text: 'paged results: bad cookie' };
  return page;
}

/** Entries that may still go out with this answer. The size limit of a client holds over all pages of a search. */
function mostEntries({ sizeLimit }: SearchRequest, page: Page | undefined, serverLimit: number): number {
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

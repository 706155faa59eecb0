// Serves stored events: /Marti/api/cot/xml/{uid}, its history, and /Marti/api/cot/sa.

import { limitPerCaller } from '@holdfast/kit/concurrency';
import { DAY_MS, SECOND_MS } from '@holdfast/kit/time';
import { requestedDate, requestedNumber, request } from '../files/query-parameters.ts';
import { type GroupParts, visiblePlaces } from '../groups/own-groups.ts';
import { PageFault } from '../http/answers.ts';
import { type AdminContext, type AdminRoute, invalid, wholeNumber } from '../http/route.ts';
import { eventsDocument } from '../missions/contents.ts';
import { eventXml, XML_HEAD } from '../model/stored-event.ts';
import type { Box, History, HistoryQuery } from '../store/history.ts';
import type { LargeEvents } from '../stream/large-events.ts';

export interface HistoryOptions extends GroupParts {
  history: History;
  /** Events that were too large for a frame. */
  largeEvents: Pick<LargeEvents, 'find'>;
  now: () => Date;
}

const MAX_UID = 1024;
const MAX_EVENTS = 10_000;
/** Of `/Marti/api/cot/sa`, as in a release. */
const MAX_WINDOW_MS = DAY_MS;
const FIRST = new Date(0);
/** The last day that every client can write. */
const LAST = new Date('9999-12-31T23:59:59.999Z');
const MAX_AT_ONCE = { most: 24, maxPerOne: 4 };
const BEFORE = /^\d{1,19}$/;

export class HistoryRoutes {
  readonly #options: HistoryOptions;
  readonly #running = limitPerCaller(MAX_AT_ONCE);

  constructor(options: HistoryOptions) {
    this.#options = options;
  }

  routes(): AdminRoute[] {
    return [
      { path: '/Marti/api/cot/sa', handlers: { GET: (c) => this.#situation(c) } },
      { path: '/Marti/api/cot/xml/:uid', handlers: { GET: (c) => this.#newest(c) } },
      { path: '/Marti/api/cot/xml/:uid/all', handlers: { GET: (c) => this.#ofUid(c) } },
    ];
  }

  /** What was sent by pointer is found before it is stored, by those who got the pointer. */
  async #newest(c: AdminContext): Promise<Response> {
    const uid = uidOf(c);
    const sees = await visiblePlaces(c.env.caller, this.#options);
    const large = this.#options.largeEvents.find(uid, c.env.caller.username);
    const stored = await this.#options.history.newest(uid, sees).catch((error: unknown) => {
      if (large === undefined) throw error;
    });
    const isOlder = stored === undefined || (large !== undefined && stored.receivedAt.getTime() <= large.receivedAtMs);
    if (large !== undefined && isOlder) return xml(large.xml);
    return stored === undefined ? nothing() : xml(`${XML_HEAD}${eventXml(stored)}`);
  }

  async #ofUid(c: AdminContext): Promise<Response> {
    const uid = uidOf(c);
    const { start = FIRST, end = LAST } = windowOf(c, this.#options.now());
    if (start >= end) throw invalid('start must be before end');
    return this.#page(c, { uid, start, end });
  }

  async #situation(c: AdminContext): Promise<Response> {
    const { start, end } = windowOf(c, this.#options.now());
    if (start === undefined || end === undefined) throw invalid('start and end are needed');
    if (start > end || end.getTime() - start.getTime() > MAX_WINDOW_MS)
      throw invalid('start and end must be at most 24 hours apart, and start before end');
    const isFiltered = c.req.query('isFiltered')?.toLowerCase() !== 'false';
    return this.#page(c, { start, end, box: boxOf(c), positionsOnly: isFiltered });
  }

  async #page(c: AdminContext, query: Omit<HistoryQuery, 'sees' | 'limit'>): Promise<Response> {
    const limit = Math.min(wholeNumber(c, 'limit', MAX_EVENTS, 1), MAX_EVENTS);
    const before = request(c, 'before');
    if (before !== undefined && !BEFORE.test(before)) throw invalid('before must be the id of an event');
    const sees = await visiblePlaces(c.env.caller, this.#options);
    const leave = this.#running.enter(c.env.caller.username);
    if (leave === undefined)
      throw new PageFault(503, 'Too many requests for history at once. Try again in a moment.', {
        headers: { 'retry-after': '5' },
      });
    try {
      const { events, next } = await this.#options.history.list({ ...query, before, sees, limit });
      const answer = events.length === 0 ? nothing() : eventsDocument(this.#options.history, events);
      if (next !== undefined) answer.headers.set('link', `<${nextPage(c, next)}>; rel="next"`);
      return answer;
    } finally {
      leave();
    }
  }
}

/** Path and query of the page behind this one. */
function nextPage(c: AdminContext, { end, before }: { end: Date; before: string }): string {
  const { pathname, searchParams } = new URL(c.req.url);
  searchParams.set('end', end.toISOString());
  searchParams.set('before', before);
  return `${pathname}?${searchParams.toString()}`;
}

function uidOf(c: AdminContext): string {
  const uid = c.req.param('uid') ?? '';
  if (uid === '' || uid.length > MAX_UID || uid.includes('\0'))
    throw invalid(`a uid has 1 to ${MAX_UID} characters, and no NUL`);
  return uid;
}

/** `secago` wins over `start`, as in a release. */
export function windowOf(c: AdminContext, now: Date): { start: Date | undefined; end: Date | undefined } {
  const ago = wholeNumber(c, 'secago', 0, 0);
  const since = ago === 0 ? requestedDate(c, 'start') : new Date(Math.max(0, now.getTime() - ago * SECOND_MS));
  return { start: since, end: requestedDate(c, 'end') };
}

function boxOf(c: AdminContext): Box | undefined {
  const west = requestedNumber(c, 'left', -180, 180);
  const south = requestedNumber(c, 'bottom', -90, 90);
  const east = requestedNumber(c, 'right', -180, 180);
  const north = requestedNumber(c, 'top', -90, 90);
  const all = west !== undefined && south !== undefined && east !== undefined && north !== undefined;
  return all ? { west, south, east, north } : undefined;
}

function xml(text: string | Uint8Array<ArrayBuffer>): Response {
  return new Response(text, { headers: { 'content-type': 'application/xml' } });
}

/** As a release has it: no event, no document. */
function nothing(): Response {
  return new Response('', { status: 404, headers: { 'content-type': 'application/xml' } });
}

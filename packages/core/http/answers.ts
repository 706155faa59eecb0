// Builds the core's responses: the JSON wrapper, errors and dates.

import type { CoreConnection } from '../model/parts.ts';

/** What went wrong, as the core numbers it. */
export type FaultKind =
  | 'unreachable'
  | 'not found'
  | 'invalid'
  | 'not implemented'
  | 'conflict'
  | 'validation'
  | 'internal'
  | 'not modified'
  | 'gone'
  | 'unauthorized'
  | 'forbidden';

const FAULTS: Record<FaultKind, { code: number; status: number; name: string }> = {
  unreachable: { code: 0, status: 404, name: 'NOT_FOUND' },
  'not found': { code: 1, status: 404, name: 'NOT_FOUND' },
  invalid: { code: 2, status: 400, name: 'BAD_REQUEST' },
  'not implemented': { code: 3, status: 501, name: 'NOT_IMPLEMENTED' },
  conflict: { code: 4, status: 409, name: 'CONFLICT' },
  validation: { code: 5, status: 400, name: 'BAD_REQUEST' },
  internal: { code: 6, status: 500, name: 'INTERNAL_SERVER_ERROR' },
  'not modified': { code: 7, status: 304, name: 'NOT_MODIFIED' },
  gone: { code: 8, status: 410, name: 'GONE' },
  unauthorized: { code: 9, status: 401, name: 'UNAUTHORIZED' },
  forbidden: { code: 10, status: 403, name: 'FORBIDDEN' },
};

/** An error that the core handles: it is answered as JSON. The message is shown to the caller. */
export class CoreFault extends Error {
  readonly kind: FaultKind;

  constructor(kind: FaultKind, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'CoreFault';
    this.kind = kind;
  }
}

/** `{"status":"NOT_FOUND","code":1,"message":"…"}` */
export function faultResponse({ kind, message }: CoreFault): Response {
  const { code, status, name } = FAULTS[kind];
  return json({ status: name, code, message }, status);
}

/** JSON whose content type is exactly `application/json`: one client compares it literally. */
export function json(value: unknown, status = 200): Response {
  return new Response(status === 304 ? null : JSON.stringify(value), {
    status,
    headers: { 'content-type': 'application/json' },
  });
}

/** The success wrapper; members that are undefined are left out. */
export function wrapped(type: string, data: unknown, nodeId: string, messages?: readonly string[]): Response {
  return json({ version: '3', type, data, messages, nodeId });
}

/** 200 with nothing in it, as many a change is answered. */
export function emptyAnswer(): Response {
  return new Response(null, { status: 200 });
}

export function plainText(text: string): Response {
  return new Response(text, { headers: { 'content-type': 'text/plain;charset=utf-8' } });
}

/** An error that the core's handlers do not know: it is answered as the page of the web server. */
export class PageFault extends Error {
  readonly status: PageStatus;
  readonly headers: Readonly<Record<string, string>>;

  constructor(
    status: PageStatus,
    message: string,
    options: { cause?: unknown; headers?: Record<string, string> } = {},
  ) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = 'PageFault';
    this.status = status;
    this.headers = options.headers ?? {};
  }
}

export type PageStatus = keyof typeof PAGE_TITLES;

const PAGE_TITLES = {
  400: 'Bad Request',
  401: 'Sign in',
  403: 'Sign in',
  404: 'Not Found',
  405: 'Method Not Allowed',
  408: 'Request Timeout',
  413: 'Content Too Large',
  416: 'Range Not Satisfiable',
  429: 'Too Many Requests',
  500: 'Internal Server Error',
  503: 'Service Unavailable',
} as const;

export function pageResponse({ status, message, headers }: PageFault): Response {
  const page = htmlPage(status, PAGE_TITLES[status], message);
  for (const [name, value] of Object.entries(headers)) page.headers.set(name, value);
  return page;
}

/** What the web server of the core says where no handler does: an HTML page. */
export function htmlPage(status: number, title: string, text: string): Response {
  const page = `<!doctype html><html lang="en"><head><meta charset="utf-8"><title>${escaped(title)}</title></head><body><h1>${escaped(title)}</h1><p>${escaped(text)}</p></body></html>`;
  return new Response(page, { status, headers: { 'content-type': 'text/html;charset=utf-8' } });
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;');
}

/** Of certificate records: milliseconds are not padded (`.7Z` is 7 ms). */
export function certificateDate(date: Date): string {
  return `${date.toISOString().slice(0, 19)}.${date.getUTCMilliseconds()}Z`;
}

/** Of groups: `2026-11-22`. */
export function day(date: Date): string {
  return date.toISOString().slice(0, 10);
}

const SAFE = new Set(['GET', 'HEAD', 'OPTIONS']);
const OWN_FETCH_SITES = new Set(['same-origin', 'none']);

/**
 * No page of another site can make a browser change anything here. Whoever sends neither Origin nor
 * Sec-Fetch-Site is no browser, and is let through. True for a request of an unsafe method that a
 * page of another site has caused.
 */
export function isFromForeignSite(request: Request, connection: Pick<CoreConnection, 'secure'>): boolean {
  return !SAFE.has(request.method) && isOfForeignPage(request, connection);
}

/** The same whatever the method. */
export function isOfForeignPage(
  { headers, url }: Pick<Request, 'headers' | 'url'>,
  { secure }: Pick<CoreConnection, 'secure'>,
): boolean {
  const site = headers.get('sec-fetch-site');
  if (site !== null && !OWN_FETCH_SITES.has(site)) return true;
  const origin = headers.get('origin');
  return origin !== null && !isOurs(origin, `${secure ? 'https' : 'http'}://${new URL(url).host}`);
}

function isOurs(origin: string, own: string): boolean {
  return (
    /^https?:\/\/[^/?#@\\\s]+$/i.test(origin) && URL.canParse(origin) && new URL(origin).origin === new URL(own).origin
  );
}

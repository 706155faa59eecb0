// Guards everything that may change something: no page of another site can make a browser do it,
// and a body is of one type and of bounded size. Whoever sends neither Origin nor Sec-Fetch-Site is
// no browser.

import type { Context, MiddlewareHandler } from 'hono';
import { AppError } from '@holdfast/kit/app-error';
import type { AppEnv } from './context.ts';

/** The largest body that the API takes. */
export const MAX_BODY_BYTES = 1_000_000;

const SAFE = new Set(['GET', 'HEAD', 'OPTIONS']);
const KNOWN = new Set([...SAFE, 'POST', 'PUT', 'PATCH', 'DELETE']);
const OWN_FETCH_SITES = new Set(['same-origin', 'none']);

/** What a body may be: of the API, or of a form on a page. */
export type Bodies = 'json' | 'form';

const UPLOAD = 'multipart/form-data';
const TYPES: Record<Bodies, string> = { json: 'application/json', form: 'application/x-www-form-urlencoded' };

/**
 * Refuses unsafe methods that another site has caused (403), bodies of another type (415) or too
 * large (413). A body that is let through has been read, and is handed on as it was. A sender can
 * take minutes for a body: `afterBody` is where what was found out before it is asked again.
 */
export function csrfGuard(
  bodies: Bodies,
  afterBody: (c: Context<AppEnv>) => Promise<void> = async () => undefined,
): MiddlewareHandler<AppEnv> {
  const type = TYPES[bodies];
  return async function guardUnsafe(c, next) {
    if (!SAFE.has(c.req.method)) {
      refuseForeign(c);
      if (await checkBody(c, type)) await afterBody(c);
    }
    await next();
  };
}

/**
 * The same for a form with a file: the body is not read here, and is handed on as it comes. Its
 * reader limits its size, and sees it break off if `afterBody` rejects.
 */
export function uploadGuard(afterBody: (c: Context<AppEnv>) => Promise<void>): MiddlewareHandler<AppEnv> {
  return async function guardUpload(c, next) {
    refuseForeign(c);
    requireType(c, UPLOAD);
    const { body } = c.req.raw;
    if (body === null) throw new AppError('malformed', 'The request has no body.');
    const checked = body.pipeThrough(new TransformStream<Uint8Array, Uint8Array>({ flush: () => afterBody(c) }));
    c.req.raw = new Request(c.req.raw, { method: 'POST', body: checked, duplex: 'half' });
    await next();
  };
}

/** No route has such a method, and of some (TRACE) not even a request can be made to hand on. */
export const refuseUnknownMethod: MiddlewareHandler<AppEnv> = async function refuseMethod(c, next) {
  if (!KNOWN.has(c.req.method)) throw new AppError('not_found', `This address does not support ${c.req.method}.`);
  await next();
};

function refuseForeign({ req, env }: Context<AppEnv>): void {
  const cause = foreignCause(req.raw.headers, req.url, env.secure);
  if (cause !== undefined) throw new AppError('forbidden', cause);
}

/** Says that a page of another site has caused the request to `url`; undefined when none has. */
export function foreignCause(headers: Headers, url: string, secure: boolean): string | undefined {
  const site = headers.get('sec-fetch-site');
  const origin = headers.get('origin');
  if (site !== null && !OWN_FETCH_SITES.has(site))
    return 'This request came from a page of another site (Sec-Fetch-Site).';
  if (origin !== null && !isOurs(origin, url, secure)) return 'This request came from a page of another site (Origin).';
  return undefined;
}

/**
 * True when host and port of the origin are those that the request was sent to. Behind a proxy that
 * ends TLS the scheme of the connection says nothing; the one of the origin then decides which port
 * is meant where none is named.
 */
function isOurs(origin: string, requestUrl: string, secure: boolean): boolean {
  if (!/^https?:\/\/[^/?#@\\\s]+$/i.test(origin) || !URL.canParse(origin) || !URL.canParse(requestUrl)) return false;
  const theirs = new URL(origin);
  const ours = new URL(requestUrl);
  const ourScheme = secure ? 'https:' : theirs.protocol;
  return theirs.hostname === ours.hostname && portOf(theirs, theirs.protocol) === portOf(ours, ourScheme);
}

function portOf({ port }: URL, scheme: string): string {
  if (port !== '') return port;
  return scheme === 'https:' ? '443' : '80';
}

/** True when it had to be waited for. */
async function checkBody(c: Context<AppEnv>, type: string): Promise<boolean> {
  const declared = declaredLength(c);
  if (declared === 0) return withoutBody(c, type);
  if (declared !== undefined) {
    requireType(c, type);
    requireSize(declared);
  }
  const { body } = c.req.raw;
  if (body === null) return withoutBody(c, type);
  const bytes = await readBounded(body, () => requireType(c, type));
  if (bytes.length > 0) c.req.raw = withBody(c.req.raw, bytes, type);
  else withoutBody(c, type);
  return true;
}

/**
 * The right type without a body says nothing; what was read empty cannot be read again. False:
 * nothing was waited for.
 */
function withoutBody(c: Context<AppEnv>, type: string): false {
  const { url, method, headers: given, signal } = c.req.raw;
  const headers = new Headers(given);
  if (isOfType(c, type)) headers.delete('content-type');
  c.req.raw = new Request(url, { method, headers, signal });
  return false;
}

/** Its type in the one spelling that everything after this understands. */
function withBody(request: Request, body: Uint8Array<ArrayBuffer>, type: string): Request {
  const headers = new Headers(request.headers);
  headers.set('content-type', type);
  const { method } = request;
  return new Request(request, { method, headers, body });
}

/** What Content-Length says; undefined when only reading can tell. */
function declaredLength(c: Context<AppEnv>): number | undefined {
  const length = c.req.header('content-length');
  if (length === undefined || c.req.header('transfer-encoding') !== undefined) return undefined;
  if (!/^\d{1,15}$/.test(length)) throw new AppError('malformed', 'Content-Length must be a whole number.');
  return Number(length);
}

function requireType(c: Context<AppEnv>, type: string): void {
  if (isOfType(c, type)) return;
  throw new AppError('media_type', `The request body must be ${type}.`);
}

function isOfType(c: Context<AppEnv>, type: string): boolean {
  const given = c.req.header('content-type') ?? '';
  return given.split(';', 1)[0]?.trim().toLowerCase() === type;
}

function requireSize(bytes: number): void {
  if (bytes > MAX_BODY_BYTES) throw new AppError('too_large', 'The request body is too large: the limit is 1 MB.');
}

/**
 * The whole body; too large is an AppError. What is refused is left unread: the host cuts the
 * connection after the answer.
 */
async function readBounded(body: ReadableStream<Uint8Array>, atFirst: () => void): Promise<Uint8Array<ArrayBuffer>> {
  const reader = body.getReader();
  const chunks: Uint8Array[] = [];
  let size = 0;
  for (;;) {
    const { done, value } = await reader.read().catch(endedEarly);
    if (done) return joined(chunks, size);
    if (size === 0 && value.length > 0) atFirst();
    size += value.length;
    requireSize(size);
    chunks.push(value);
  }
}

function endedEarly(cause: unknown): never {
  throw new AppError('malformed', 'The request body ended too early.', { cause });
}

function joined(chunks: readonly Uint8Array[], size: number): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(size);
  let offset = 0;
  for (const chunk of chunks) {
    bytes.set(chunk, offset);
    offset += chunk.length;
  }
  return bytes;
}

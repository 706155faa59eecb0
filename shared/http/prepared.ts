// Answers with a JSON text that is ready, or with 304 when the caller has it already.

import type { Prepared } from '../ports/health-cache.ts';

/** 200 with the text, or 304 when `If-None-Match` names its entity tag. Callers must ask again each time. */
export function answerPrepared({ body, etag }: Prepared, request: Headers, requestId: string): Response {
  const known = request.get('if-none-match');
  const always = { 'X-Request-Id': requestId, ETag: etag, 'Cache-Control': 'private, no-cache' };
  if (known !== null && namesTag(known, etag)) return new Response(null, { status: 304, headers: always });
  const headers = Object.assign(always, { 'Content-Type': 'application/json' });
  return new Response(body, { headers });
}

/** A weak entity tag of a text. */
export async function weakEtag(text: string): Promise<string> {
  const digest = new Uint8Array(await crypto.subtle.digest('SHA-256', new TextEncoder().encode(text)));
  return `W/"${Array.from(digest.subarray(0, 16), (byte) => byte.toString(16).padStart(2, '0')).join('')}"`;
}

/** Weak comparison, as RFC 9110 asks for If-None-Match. */
export function namesTag(header: string, etag: string): boolean {
  const bare = (tag: string): string => tag.trim().replace(/^W\//, '');
  return header.split(',').some((tag) => tag.trim() === '*' || bare(tag) === bare(etag));
}

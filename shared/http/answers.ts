// Answers with a JSON text that is ready, or with 304 when the caller has it already.

import type { Context } from 'hono';
import { safeFileName } from '../devices/certificates/data-package.ts';
import type { Prepared } from '../health/port.ts';
import type { AppEnv } from './context.ts';

/**
 * 200 with the text, or 304 when `If-None-Match` names its entity tag. Callers must ask again each
 * time.
 */
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

/** A file as the answer: to be saved under a name, and never to be kept by anything between. */
interface Attachment {
  fileName: string;
  contentType: string;
  bytes: Uint8Array<ArrayBuffer>;
}

export function attachmentAnswer(c: Context<AppEnv>, { fileName, contentType, bytes }: Attachment) {
  return c.newResponse(bytes, 200, {
    'Content-Type': contentType,
    'Content-Disposition': dispositionOf(fileName),
    'Cache-Control': 'no-store',
    'X-Content-Type-Options': 'nosniff',
  });
}

/** RFC 6266: the name in plain characters, and as it is for whoever reads that. */
export function dispositionOf(fileName: string): string {
  const plain = safeFileName(fileName);
  if (plain === fileName) return `attachment; filename="${plain}"`;
  const exact = encodeURIComponent(fileName.toWellFormed()).replaceAll(
    /['()*]/g,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  );
  return `attachment; filename="${plain}"; filename*=UTF-8''${exact}`;
}

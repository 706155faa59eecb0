// A file as the answer: to be saved under a name, and never to be kept by anything between.

import type { Context } from 'hono';
import { safeFileName } from '../domain/data-package.ts';
import type { AppEnv } from './env.ts';

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

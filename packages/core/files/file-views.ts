// Formats files for the servlets, the API and the list of the web pages, with their download URLs.

import { urlHost } from '@holdfast/kit/addresses';
import type { Resource } from '../model/mission.ts';
import type { ListedResource } from '../store/resources.ts';

/** Of `/Marti/sync`: every scalar is a text. */
export function toMetadataView(file: Resource) {
  return {
    UID: file.uid,
    SubmissionDateTime: file.submissionTime.toISOString(),
    Keywords: file.keywords,
    MIMEType: file.mimeType,
    SubmissionUser: file.submitter,
    PrimaryKey: String(file.id),
    Hash: file.hash,
    CreatorUid: file.creatorUid,
    Name: file.name,
    Size: String(file.sizeBytes),
    Tool: file.tool,
    EXPIRATION: String(file.expiration),
  };
}

/** Of `/Marti/api/sync/search`, and of the contents of missions. */
export function toResourceView(file: Resource) {
  const { filename, keywords, mimeType, name, submitter, uid, hash, creatorUid, tool, expiration } = file;
  return {
    filename,
    keywords,
    mimeType,
    name,
    submissionTime: file.submissionTime.toISOString(),
    submitter,
    uid,
    hash,
    size: file.sizeBytes,
    creatorUid,
    tool,
    expiration,
  };
}

/** Of `/Marti/api/files/metadata`. */
export function toFileView(file: ListedResource) {
  return {
    Name: file.name,
    User: file.submitter,
    Creator: file.creatorUid,
    Size: toSizeView(file.sizeBytes),
    Time: file.submissionTime.toISOString(),
    MimeType: file.mimeType,
    Keywords: file.keywords,
    Expiration: file.expiration,
    Hash: file.hash,
    Groups: file.groups,
    Tool: file.tool,
  };
}

const UNITS = ['B', 'kB', 'MB', 'GB'];

/** Thousands, rounded: `3kB`. */
export function toSizeView(bytes: number): string {
  const unit = UNITS.findIndex((_, index) => index === UNITS.length - 1 || Math.round(bytes / 1000 ** index) < 1000);
  return `${Math.round(bytes / 1000 ** unit)}${UNITS[unit]}`;
}

/** Where a file is fetched; the Host header of a request has no say in it. */
export function contentUrl({ hostname, publicPort }: { hostname: string; publicPort: number }, hash: string): string {
  return `https://${urlHost(hostname)}:${publicPort}/Marti/sync/content?hash=${hash}`;
}

/** Not `application/json`: clients take these answers as texts, and parse them themselves. */
export function textJson(value: unknown): Response {
  return new Response(JSON.stringify(value), { headers: { 'content-type': 'text/json' } });
}

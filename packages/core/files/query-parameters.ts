// Parses the query parameters of file requests. Ignores the case of their names, as a release does.

import { CoreFault } from '../http/answers.ts';
import { type AdminContext, invalid } from '../http/route.ts';
import { MAX_KEYWORDS } from '../store/resources.ts';

/** Control characters, and marks that turn the direction of a text or cannot be seen. */
// oxlint-disable-next-line no-control-regex -- they are what is looked for
const UNSEEN = /[\u0000-\u001f\u007f-\u009f\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]/;
const LONE_SURROGATE = /\p{Surrogate}/u;

/** What is wrong with a text of a client that is kept with a file, in words; undefined: nothing. */
export function textFault(text: string, maxLength: number): string | undefined {
  if (text.length > maxLength) return `has more than ${maxLength} characters`;
  if (UNSEEN.test(text) || LONE_SURROGATE.test(text)) return 'has characters that cannot be shown';
  return undefined;
}

/** The last part of what may be a path of any system. */
export function lastPart(path: string): string {
  return path.slice(Math.max(path.lastIndexOf('/'), path.lastIndexOf('\\')) + 1);
}

/** Types that a browser runs or reads as a page; a file of such a type is only bytes. */
const RUN = /html|xml|svg|script|xsl|pdf|shockwave|multipart|message|wasm|json|css|manifest/;
const TYPE = /^[a-z0-9][a-z0-9!#$&^_.+-]{0,80}\/[a-z0-9][a-z0-9!#$&^_.+-]{0,80}$/;
export const BYTES = 'application/octet-stream';

/** `text/plain` of `Text/Plain; charset=x`; undefined for what is no type. */
export function plainType(type: string): string | undefined {
  const [name = ''] = type.toLowerCase().split(';');
  return TYPE.test(name.trim()) ? name.trim() : undefined;
}

/** The type that a download says it has. */
export function servedType(type: string): string {
  const plain = plainType(type);
  return plain === undefined || RUN.test(plain) ? BYTES : plain;
}

/** `attachment; filename="…"`, with the name in UTF-8 where ASCII cannot say it. */
export function contentDisposition(name: string): string {
  const seen = lastPart(name.replaceAll(new RegExp(UNSEEN, 'g'), ' ').toWellFormed()).trim();
  const whole = /^\.*$/.test(seen) ? 'file' : seen;
  const ascii = whole.replaceAll(/[^ -~]|["\\%;]/gu, '_');
  if (ascii === whole) return `attachment; filename="${ascii}"`;
  const utf8 = encodeURIComponent(whole).replaceAll(
    /['()*!]/g,
    (mark) => `%${mark.charCodeAt(0).toString(16).toUpperCase()}`,
  );
  return `attachment; filename="${ascii}"; filename*=UTF-8''${utf8}`;
}

export const MAX_NAME = 128;
export const MAX_TOOL = 128;
const MAX_KEYWORD = 128;
const MAX_TEXT = 256;
/** The last second of the year 9999. */
const LAST_SECOND = 253_402_300_799;

/** Every value of a parameter that is not empty. */
export function requestedAll(c: AdminContext, name: string): string[] {
  const wanted = name.toLowerCase();
  return [...new URL(c.req.url).searchParams]
    .filter(([key, value]) => key.toLowerCase() === wanted && value !== '')
    .map(([, value]) => value);
}

/** A text that is kept, or compared with what is kept; undefined when it is not there or empty. */
export function request(c: AdminContext, name: string, maxLength = MAX_TEXT): string | undefined {
  const [text] = requestedAll(c, name);
  return text === undefined ? undefined : goodText(name, text, maxLength);
}

export function goodText(name: string, text: string, maxLength: number): string {
  const fault = textFault(text, maxLength);
  if (fault === undefined) return text;
  throw invalid(`${name} ${fault}`);
}

/** Of the path, in the same way. */
export function pathHash(c: AdminContext): string {
  return goodText('hash', c.req.param('hash') ?? '', MAX_TEXT).toLowerCase();
}

/** A digest in lower case. What is none is the digest of no file. */
export function requestedHash(c: AdminContext): string | undefined {
  return request(c, 'hash')?.toLowerCase();
}

/** `keywords=a,b`, `keyword=a&keyword=b`: each once. */
export function requestedKeywords(c: AdminContext): string[] {
  return goodKeywords(
    [...requestedAll(c, 'keywords'), ...requestedAll(c, 'keyword')].flatMap((text) => text.split(',')),
  );
}

export function goodKeywords(given: readonly string[]): string[] {
  const keywords = [...new Set(given.map((each) => each.trim()).filter((each) => each !== ''))];
  if (keywords.length > MAX_KEYWORDS) throw invalid(`a file may have at most ${MAX_KEYWORDS} keywords`);
  return keywords.map((each) => goodText('keyword', each, MAX_KEYWORD));
}

export function requestedNumber(c: AdminContext, name: string, least: number, most: number): number | undefined {
  const text = request(c, name);
  if (text === undefined) return undefined;
  const value = /^[+-]?\d{1,12}(\.\d{0,20})?$/.test(text) ? Number(text) : Number.NaN;
  if (value >= least && value <= most) return value;
  throw invalid(`${name} must be a number from ${least} to ${most}, not "${text}"`);
}

export function requestedDate(c: AdminContext, name: string): Date | undefined {
  const text = request(c, name);
  if (text === undefined) return undefined;
  const date = new Date(text);
  if (/^\d{4}-\d\d-\d\d/.test(text) && !Number.isNaN(date.getTime())) return date;
  throw invalid(`${name} must be a date such as 2026-11-22T05:30:00Z, not "${text}"`);
}

/** Epoch seconds; -1: none. */
export function goodExpiration(text: string): number {
  const value = /^-?\d{1,15}$/.test(text) ? Number(text) : Number.NaN;
  if (value >= -1 && value <= LAST_SECOND) return value;
  throw invalid(`expiration must be seconds since 1970, or -1 for none, not "${text.slice(0, MAX_TEXT)}"`);
}

/** Throws 501 that names a parameter which would be left out of account. */
export function refuseParameters(c: AdminContext, names: readonly string[]): void {
  const name = names.find((each) => requestedAll(c, each).length > 0);
  if (name !== undefined) throw new CoreFault('not implemented', `Searching files by ${name} is not supported.`);
}

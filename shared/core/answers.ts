// Reads a response of the core and classifies it by content type. Size is limited; anything quoted
// from it is one short line.

import type { Dispatcher } from 'undici';
import { readBodyText } from '@holdfast/kit/body';
import { foreignWords } from '@holdfast/kit/text';

export interface Answer {
  status: number;
  kind: 'json' | 'page' | 'text' | 'other';
  text: string;
  /** Undefined unless the body is JSON that could be parsed. */
  json: unknown;
  retryAfterSeconds: number | undefined;
  /** The target of a redirect. */
  location: string;
  /** `JSESSIONID=…`, when the core starts a session. */
  cookie: string | undefined;
  /**
   * The whole Set-Cookie headers of the token: `access_token_0`, `access_token_1` …, because a
   * release splits it by size.
   */
  tokenCookies: string[];
}

export class TooLarge extends Error {}

const MAX_PAUSE_S = 86_400;
const SESSION = /^(JSESSIONID=[\w.+/=-]{1,200})(?:;|$)/;
const TOKEN_COOKIE = /^access_token(?:_\d{1,2})?=[ -~]{1,8000}$/;
/**
 * An HTML page with a JSON content type: a release sends its error pages this way to clients that
 * ask for JSON.
 */
const PAGE = /^\s*<(?:!doctype html|html)\b/i;
const TITLE = /<title[^>]*>([^<]{1,500})</i;
/** The embedded core puts more than its title in the first paragraph. */
const PARAGRAPH = /<p>([^<]{1,500})</i;
const WORDS = ['message', 'error_description', 'error', 'status'] as const;

/** Throws TooLarge, or the error that ends the stream. */
export async function readAnswer(
  { statusCode, headers, body }: Dispatcher.ResponseData,
  maxBytes: number,
): Promise<Answer> {
  // Stopping the read closes the connection.
  const text = await readBodyText(body, maxBytes, () => new TooLarge());
  const message = kindOf(headerOf(headers, 'content-type'));
  const kind = message === 'json' && PAGE.test(text) ? 'page' : message;
  const pause = Number(headerOf(headers, 'retry-after') || Number.NaN);
  return {
    status: statusCode,
    kind,
    text,
    json: kind === 'json' ? parsed(text) : undefined,
    retryAfterSeconds: pause > 0 && pause <= MAX_PAUSE_S ? Math.ceil(pause) : undefined,
    location: headerOf(headers, 'location'),
    cookie: cookiesIn(headers).flatMap((each) => SESSION.exec(each)?.[1] ?? [])[0],
    tokenCookies: cookiesIn(headers).filter((each) => TOKEN_COOKIE.test(each)),
  };
}

/** The core's own words about a failure, after a colon; empty when there is nothing to quote. */
export function quoted({ kind, text, json }: Answer, secrets: readonly string[]): string {
  const words = foreignWords(kind === 'page' ? pageWords(text) : kind === 'text' ? text : jsonWords(json), secrets);
  return words === '' ? '' : `: ${words}`;
}

function kindOf(contentType: string): Answer['kind'] {
  const type = contentType.split(';')[0]?.trim().toLowerCase() ?? '';
  if (type === 'application/json' || /^[\w.-]+\/[\w.-]+\+json$/.test(type)) return 'json';
  if (type === 'text/html' || type === 'application/xhtml+xml') return 'page';
  return type.startsWith('text/') || /^application\/(?:[\w.-]+\+)?xml$/.test(type) ? 'text' : 'other';
}

function headerOf(headers: Dispatcher.ResponseData['headers'], name: string): string {
  const value = headers[name];
  return (Array.isArray(value) ? value[0] : value) ?? '';
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function cookiesIn(headers: Dispatcher.ResponseData['headers']): string[] {
  return [headers['set-cookie'] ?? []].flat();
}

function pageWords(text: string): string {
  return [TITLE.exec(text)?.[1], PARAGRAPH.exec(text)?.[1]].filter((part) => part !== undefined).join(': ');
}

function jsonWords(json: unknown): string {
  if (typeof json !== 'object' || json === null) return '';
  const members = json as Record<string, unknown>;
  return WORDS.map((name) => members[name]).find((value): value is string => typeof value === 'string') ?? '';
}

const DATE = /^([1-9]\d{3}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,3}))?Z$/;

/**
 * Parses dates of the core: `yyyy-MM-dd'T'HH:mm:ss.S'Z'`, whose milliseconds have no padding: `.7Z`
 * is 7 ms. ISO 8601 in UTC; undefined for an invalid date.
 */
export function coreDate(text: string): string | undefined {
  const [, seconds, milliseconds = ''] = DATE.exec(text) ?? [];
  if (seconds === undefined) return undefined;
  const iso = `${seconds}.${milliseconds.padStart(3, '0')}Z`;
  const date = new Date(iso);
  // An overflow would become another date: 30 February.
  return !Number.isNaN(date.getTime()) && date.toISOString() === iso ? iso : undefined;
}

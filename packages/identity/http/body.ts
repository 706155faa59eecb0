// Provides what the provider's routes share: the caller, limited JSON bodies, and authentik's error
// responses.

import type { Context } from 'hono';
import type { ContentfulStatusCode } from 'hono/utils/http-status';
import { z } from 'zod';
import { readBody } from '@holdfast/kit/body';
import type { Json } from '@holdfast/kit/json';
import type { Log } from '@holdfast/kit/log';
import { isJsonObject, isKeepable, whyNotKept } from '../model/names.ts';
import type { StoredAccount } from '../store/account-rows.ts';
import { FieldRefusal } from '../store/database.ts';
import type { IdentityStore } from '../store/store.ts';

/**
 * Answers that are no success, in the provider's shapes.
 * Thrown by handlers; the app answers with it.
 */
export class Refused extends Error {
  readonly status: ContentfulStatusCode;
  /** Undefined: the answer has no body. */
  readonly body: Json | undefined;
  readonly headers: Readonly<Record<string, string>>;

  constructor(status: ContentfulStatusCode, body?: Json, headers: Record<string, string> = {}) {
    super(`refused with ${status}`);
    this.name = 'Refused';
    this.status = status;
    this.body = body;
    this.headers = headers;
  }
}

export const notFound = (detail = 'Not found.'): Refused => new Refused(404, { detail });
export const forbidden = (detail = 'You do not have permission to perform this action.'): Refused =>
  new Refused(403, { detail });

const MAX_BODY_BYTES = 1_000_000;
const MAX_ATTRIBUTE_BYTES = 100_000;
/** Of PostgreSQL's integer. */
export const HIGHEST_PK = 2_147_483_647;

/** The body as the schema has it; rejects with 413, 415, 400. An empty body counts as `{}`. */
export async function readJson<T>(c: IdentityContext, schema: z.ZodType<T>): Promise<T> {
  const tooLarge = (): Refused =>
    new Refused(413, { detail: `Request bodies may have at most ${MAX_BODY_BYTES} bytes.` });
  if (Number(c.req.header('content-length') ?? 0) > MAX_BODY_BYTES) throw tooLarge();
  const bytes = await readBody(c.req.raw.body, MAX_BODY_BYTES, tooLarge);
  return check(schema, bytes.length === 0 ? {} : parseObject(bytes, c.req.header('content-type') ?? ''));
}

function parseObject(bytes: Uint8Array, contentType: string): Record<string, unknown> {
  if (!/^application\/json\s*(;|$)/i.test(contentType)) {
    throw new Refused(415, { detail: `Unsupported media type "${contentType}" in request.` });
  }
  let given: unknown;
  try {
    given = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes));
  } catch {
    throw new Refused(400, { detail: 'JSON parse error' });
  }
  if (isJsonObject(given)) return given;
  throw new FieldRefusal({ non_field_errors: 'Invalid data. Expected a dictionary.' });
}

function check<T>(schema: z.ZodType<T>, given: Record<string, unknown>): T {
  const parsed = schema.safeParse(given, { error: inProvidersWords });
  if (parsed.success) return parsed.data;
  const fields: Record<string, string[]> = {};
  for (const { path, message } of parsed.error.issues) {
    (fields[String(path[0] ?? 'non_field_errors')] ??= []).push(message);
  }
  throw new FieldRefusal(fields);
}

const KIND_FAULTS: Readonly<Record<string, string>> = {
  string: 'Not a valid string.',
  boolean: 'Must be a valid boolean.',
  number: 'A valid integer is required.',
  int: 'A valid integer is required.',
  array: 'Expected a list of items.',
};

function inProvidersWords(issue: z.core.$ZodRawIssue): string | undefined {
  if (issue.input === undefined) return 'This field is required.';
  if (issue.input === null) return 'This field may not be null.';
  if (issue.code === 'invalid_type') return KIND_FAULTS[issue.expected] ?? 'Not a valid value.';
  if (issue.code === 'invalid_value') return `${JSON.stringify(issue.input)} is not a valid choice.`;
  if (issue.code === 'too_big' || issue.code === 'too_small') return 'Out of range.';
  return undefined;
}

/** Text without white space around it, at most `most` characters. */
export function text(most: number) {
  return z
    .string()
    .trim()
    .refine(isKeepable, 'Null characters and broken text are not allowed.')
    .refine((value) => Array.from(value).length <= most, `Ensure this field has no more than ${most} characters.`);
}

export function filledText(most: number) {
  return text(most).refine((value) => value !== '', 'This field may not be blank.');
}

export const pkSchema = z.int().min(1).max(HIGHEST_PK);

export const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/** A free JSON object within limits. */
export const attributesSchema = z
  .custom<Record<string, Json>>(isJsonObject, { error: ({ input }) => attributesFault(input) })
  .superRefine((value, issues) => {
    const why = whyNotKept(value);
    if (why !== undefined) return issues.addIssue(why);
    if (Buffer.byteLength(JSON.stringify(value)) <= MAX_ATTRIBUTE_BYTES) return undefined;
    return issues.addIssue(`Must have at most ${MAX_ATTRIBUTE_BYTES} bytes as JSON.`);
  });

function attributesFault(input: unknown): string {
  return input === null ? 'This field may not be null.' : 'Value must be a dictionary, and it is not one.';
}

const TIME_FORM = /^\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?(?:Z|[+-]\d\d:?\d\d)?$/i;
const TIME_FAULT =
  'Datetime has wrong format. Use one of these formats instead: YYYY-MM-DDThh:mm[:ss[.uuuuuu]][+HH:MM|-HH:MM|Z].';

/**
 * A time in ISO 8601, UTC without a zone; undefined when it is none, or of a year that is not 1 to
 * 9999.
 */
export function readTime(given: string): Date | undefined {
  if (!TIME_FORM.test(given)) return undefined;
  const zoned = /(?:Z|[+-]\d\d:?\d\d)$/i.test(given) ? given : `${given}Z`;
  const time = new Date(zoned.replace(' ', 'T').replace(/([+-]\d\d)(\d\d)$/, '$1:$2'));
  const year = time.getUTCFullYear();
  return year >= 1 && year <= 9999 ? time : undefined;
}

export const timeSchema = z.string().transform((given, issues) => {
  const time = readTime(given);
  if (time !== undefined) return time;
  issues.addIssue(TIME_FAULT);
  return z.NEVER;
});

/** What a file of routes is made of and from. */
export interface IdentityApiOptions {
  store: IdentityStore;
  now: () => Date;
  log: Log;
  /** What `/admin/version/` says: the release of authentik whose API this is, `2026.8.3`. */
  release: string;
}

export interface IdentityEnv {
  Variables: { caller: StoredAccount };
}
export type IdentityContext = Context<IdentityEnv>;

export const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'] as const;
export type Method = (typeof METHODS)[number];

/** What is done on one path; other methods are 405. */
export type Handlers = Partial<Record<Method, (c: IdentityContext) => Promise<Response> | Response>>;

/** One path, with its slash at the end. */
export interface IdentityRoute {
  path: string;
  /** True when it answers without a token. */
  open?: boolean;
  handlers: Handlers;
}

const MAX_KEY_LENGTH = 1024;

/**
 * Who asks: the owner of the API token in the Authorization header. Failures are 403, never 401.
 */
export async function signIn(header: string | undefined, store: IdentityStore, now: Date): Promise<StoredAccount> {
  if (header === undefined || header.trim() === '') {
    throw forbidden('Authentication credentials were not provided.');
  }
  const [scheme = '', key = '', ...rest] = header.trim().split(/\s+/);
  if (scheme.toLowerCase() !== 'bearer') throw forbidden('Unsupported authentication type');
  if (key === '' || rest.length > 0) throw forbidden('Malformed header');
  const owner = key.length > MAX_KEY_LENGTH ? undefined : await store.tokens.ownerOf(key, now);
  if (owner === undefined) throw forbidden('Token invalid/expired');
  return owner;
}

/** Administration is for members of a group of superusers. */
export function administers(caller: StoredAccount): void {
  if (!caller.is_superuser) throw forbidden();
}

/**
 * As `administers`, where the path names one object: who may not see it does not learn that it is
 * there.
 */
export function seesEverything(caller: StoredAccount): void {
  if (!caller.is_superuser) throw notFound();
}

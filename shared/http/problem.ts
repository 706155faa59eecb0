// Errors as RFC 9457 problem documents: one table from code to status, one place where an error
// becomes an answer.

import type { Context } from 'hono';
import { getCookie } from 'hono/cookie';
import { HTTPException } from 'hono/http-exception';
import { AppError, type ErrorCode } from '@holdfast/kit/app-error';
import type { Log } from '@holdfast/kit/log';
import type { Audit } from '../audit/port.ts';
import type { Principal } from '../sign-in/rules.ts';
import { type AppEnv, sessionCookieName } from './context.ts';

/**
 * Writes a denied attempt to the audit log: what somebody was not allowed to do (403), and a
 * session or a token that is not good (401). Wrong passwords are entered by the door that judged
 * them; a request without credentials is no attempt. Resolves at once on Node; in workerd when the
 * host has taken it, because nothing runs on after the request there.
 */
export async function noteDenied(
  audit: Pick<Audit, 'note'>,
  { code, message }: AppError,
  c: Context<AppEnv>,
): Promise<void> {
  const { clientAddress: address, requestId } = c.env;
  // Not set where the request was refused before anybody was asked who it is.
  const principal = c.get('principal') as Principal | undefined;
  const actor = { username: principal?.username ?? '', address, requestId };
  const target = `${c.req.method} ${c.req.path}`;
  if (code === 'forbidden')
    return audit.note({ actor, action: 'request.denied', target }, 'denied', { reason: message });
  const by = code === 'unauthenticated' ? signedText(c) : undefined;
  if (by !== undefined) await audit.note({ actor, action: 'sign-in', target }, 'denied', { by });
}

export function signedText(c: Context<AppEnv>): 'token' | 'session' | undefined {
  const header = c.req.header('authorization');
  if (header !== undefined) return /^\s*bearer\s/i.test(header) ? 'token' : undefined;
  return (getCookie(c, sessionCookieName(c.env.secure)) ?? '') === '' ? undefined : 'session';
}

const STATUS = {
  malformed: [400, 'Bad request'],
  unauthenticated: [401, 'Not signed in'],
  forbidden: [403, 'Not allowed'],
  not_found: [404, 'Not found'],
  conflict: [409, 'Conflict'],
  confirmation_needed: [409, 'Confirmation needed'],
  not_enough_disk: [409, 'Not enough disk'],
  not_supported: [409, 'Not supported'],
  too_large: [413, 'Too large'],
  media_type: [415, 'Unsupported media type'],
  invalid: [422, 'Invalid values'],
  locked_out: [429, 'Locked out'],
  internal: [500, 'Internal error'],
  upstream: [502, 'Bad response from another system'],
  unavailable: [503, 'Another system is unavailable'],
} as const satisfies Record<ErrorCode, readonly [number, string]>;

/** Our own script says by it that it asks (functions/pages/browser/live.ts). */
const PAGE_SCRIPT_HEADER = 'x-holdfast-page';

/** The statuses that a route may answer besides its success. */
export function statusOf(code: ErrorCode): (typeof STATUS)[ErrorCode][0] {
  return STATUS[code][0];
}

/**
 * The error handler of an app: an AppError speaks for itself, anything else is logged and answers
 * 500 without its text. What was denied goes into the audit log. Below /api the script of a page is
 * not asked for a password: the browser would ask the person by a window of its own, and keep the
 * script waiting. Programs are, and proxies that ask at /auth/verify.
 */
export function onError(log: Log, audit: Pick<Audit, 'note'>) {
  return async function answerProblem(error: Error, c: Context<AppEnv>): Promise<Response> {
    const known = asAppError(error);
    if (known.code === 'internal') {
      log.error('http.failed', { request_id: c.env.requestId, path: c.req.path, error: error.stack ?? String(error) });
    }
    await noteDenied(audit, known, c);
    const answer = problemResponse(known, c.env.requestId);
    if (c.req.path.startsWith('/api/') && c.req.header(PAGE_SCRIPT_HEADER) !== undefined)
      answer.headers.delete('WWW-Authenticate');
    return answer;
  };
}

function asAppError(error: Error): AppError {
  if (error instanceof AppError) return error;
  if (error instanceof HTTPException && error.status === 400)
    return new AppError('malformed', 'The request body is not valid JSON.');
  if (error instanceof HTTPException && error.status === 415)
    return new AppError('media_type', 'The request body must be application/json.');
  return new AppError('internal', 'An internal error occurred. The log has the details under this request id.');
}

/**
 * What an answer needs of an error; making an error itself costs as much as the rest of a short
 * answer.
 */
export type Problem = Pick<AppError, 'code' | 'message' | 'fields' | 'retryAfterSeconds'> &
  Partial<Pick<AppError, 'figures'>>;

/** The answer for an error; also used where no app handles the request. */
export function problemResponse(error: Problem, requestId: string): Response {
  return preparedProblem(error)(requestId);
}

/** The answers for an error that comes again and again. */
export function preparedProblem(error: Problem): (requestId: string) => Response {
  const [status, title] = STATUS[error.code];
  const { message: detail, code, fields, figures } = error;
  const head = JSON.stringify({ type: 'about:blank', title, status, detail, code }).slice(0, -1);
  const rest = { ...(fields.length > 0 ? { errors: fields } : {}), ...(figures === undefined ? {} : { figures }) };
  const tail = Object.keys(rest).length > 0 ? `,${JSON.stringify(rest).slice(1)}` : '}';
  const headers: Record<string, string> = {
    'Content-Type': 'application/problem+json',
    'Cache-Control': 'no-store',
  };
  if (code === 'unauthenticated') headers['WWW-Authenticate'] = 'Basic realm="Holdfast", charset="UTF-8"';
  if (error.retryAfterSeconds !== undefined) headers['Retry-After'] = String(error.retryAfterSeconds);
  return (requestId) =>
    new Response(`${head},"request_id":${JSON.stringify(requestId)}${tail}`, {
      status,
      headers: { ...headers, 'X-Request-Id': requestId },
    });
}

/**
 * What a request lacks or has wrong, in words for whoever sent it: the validator speaks of its own
 * types.
 */
interface Issue {
  code?: string | undefined;
  path: PropertyKey[];
  message: string;
  /** Of a choice: what may be chosen. */
  values?: unknown[] | undefined;
}

type HookResult = { success: true } | { success: false; error: { issues: Issue[] } };

const KINDS: Record<string, string> = {
  string: 'text',
  number: 'a number',
  boolean: 'true or false',
  array: 'a list',
  object: 'a JSON object',
  null: 'null',
};

/** The hook of every route: throws `invalid` with all that is wrong. */
export function refuseInvalid(result: HookResult): void {
  if (result.success) return;
  const fields = result.error.issues.map((issue) => ({
    path: issue.path.map(String).join('.'),
    message: wordsOf(issue),
  }));
  const messages = fields.map(({ path, message }) => (path === '' ? message : `${path}: ${message}`));
  throw new AppError('invalid', messages.join('; '), { fields });
}

/** Words of our own stay; those of the validator become ours. */
function wordsOf({ code, path, message, values }: Issue): string {
  if (code === 'invalid_value' && message.startsWith('Invalid option') && values !== undefined)
    return `must be one of: ${values.join(', ')}`;
  const [, comparison = '', bound = ''] =
    /^Too (?:big|small): expected string to have ([<>]=)(\d+) characters$/.exec(message) ?? [];
  if (comparison === '>=') return bound === '1' ? 'must not be empty' : `must have at least ${bound} characters`;
  if (comparison === '<=') return `must have at most ${bound} characters`;
  const [, least] = /^Too small: expected (?:number|int) to be >=(-?\d+)$/.exec(message) ?? [];
  if (least !== undefined) return `must be ${least} or more`;
  const [, expected = '', received = ''] = /^Invalid input: expected (\w+), received (\w+)$/.exec(message) ?? [];
  if (expected === '') return message;
  if (expected === 'int') return 'must be a whole number';
  const kind = KINDS[expected] ?? expected;
  if (received === 'undefined') return `is missing: provide ${kind}`;
  if (expected === 'string' && received === 'array') return 'must be a single text, given once';
  return `${path.length === 0 ? 'the body ' : ''}must be ${kind}, not ${KINDS[received] ?? received}`;
}

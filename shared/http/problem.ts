// Errors as RFC 9457 problem documents: one table from code to status, one place where an error becomes an answer.

import type { Context } from 'hono';
import { HTTPException } from 'hono/http-exception';
import { AppError, type ErrorCode } from '@holdfast/kit/app-error';
import type { Log } from '@holdfast/kit/log';
import type { Audit } from '../audit/port.ts';
import type { AppEnv } from './context.ts';
import { noteDenied } from './denied.ts';

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
  upstream: [502, 'An outside system answered wrongly'],
  unavailable: [503, 'An outside system did not answer'],
} as const satisfies Record<ErrorCode, readonly [number, string]>;

/** Our own script says by it that it asks (functions/pages/browser/live.ts). */
const PAGE_SCRIPT_HEADER = 'x-holdfast-page';

/** The statuses that a route may answer besides its success. */
export function statusOf(code: ErrorCode): (typeof STATUS)[ErrorCode][0] {
  return STATUS[code][0];
}

/**
 * The error handler of an app: an AppError speaks for itself, anything else is logged and answers 500 without its text.
 * What was denied goes into the audit log. Below /api the script of a page is not asked for a password: the browser would ask the
 * person by a window of its own, and keep the script waiting. Programs are, and proxies that ask at /auth/verify.
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
    return new AppError('media_type', 'A body must be application/json.');
  return new AppError('internal', 'Something went wrong on our side; the log has the details under this request id.');
}

/** What an answer needs of an error; making an error itself costs as much as the rest of a short answer. */
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

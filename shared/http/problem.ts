// Errors as RFC 9457 problem documents: one table from code to status, one place where an error becomes an answer.

import type { Context } from 'hono';
import { HTTPException } from 'hono/http-exception';
import { AppError, type ErrorCode } from '../domain/app-error.ts';
import type { Log } from '../ports/log.ts';
import type { AppEnv } from './env.ts';

const STATUS = {
  malformed: [400, 'Bad request'],
  unauthenticated: [401, 'Not signed in'],
  forbidden: [403, 'Not allowed'],
  not_found: [404, 'Not found'],
  conflict: [409, 'Conflict'],
  too_large: [413, 'Too large'],
  media_type: [415, 'Unsupported media type'],
  invalid: [422, 'Invalid values'],
  locked_out: [429, 'Locked out'],
  internal: [500, 'Internal error'],
  upstream: [502, 'An outside system answered wrongly'],
  unavailable: [503, 'An outside system did not answer'],
} as const satisfies Record<ErrorCode, readonly [number, string]>;

/** The statuses that a route may answer besides its success. */
export function statusOf(code: ErrorCode): number {
  return STATUS[code][0];
}

/** The error handler of an app: an AppError speaks for itself, anything else is logged and answers 500 without its text. */
export function onError(log: Log) {
  return function answerProblem(error: Error, c: Context<AppEnv>): Response {
    const known = asAppError(error);
    if (known.code === 'internal') {
      log.error('http.failed', { request_id: c.env.requestId, path: c.req.path, error: error.stack ?? String(error) });
    }
    return problemResponse(known, c.env.requestId);
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

/** The answer for an error; also used where no app handles the request. */
export function problemResponse(error: AppError, requestId: string): Response {
  const [status, title] = STATUS[error.code];
  const body = {
    type: 'about:blank',
    title,
    status,
    detail: error.message,
    code: error.code,
    request_id: requestId,
    ...(error.fields.length > 0 ? { errors: error.fields } : {}),
  };
  const headers: Record<string, string> = {
    'Content-Type': 'application/problem+json',
    'Cache-Control': 'no-store',
    'X-Request-Id': requestId,
  };
  if (error.code === 'unauthenticated') headers['WWW-Authenticate'] = 'Basic realm="Holdfast", charset="UTF-8"';
  if (error.retryAfterSeconds !== undefined) headers['Retry-After'] = String(error.retryAfterSeconds);
  return new Response(JSON.stringify(body), { status, headers });
}

// POST /oauth/token: the core's token for a name and a password, which stand in the form. The
// reverse proxy sends these requests here and not to the core, so that wrong passwords count at the
// one lock-out, for the address of the client. Errors look as the core's own.

import { createRoute, z } from '@hono/zod-openapi';
import type { Context } from 'hono';
import { AppError, type ErrorCode } from '@holdfast/kit/app-error';
import type { CoreTokenAnswer, CoreTokenOrder } from '../shared/core/devices/port.ts';
import type { App, AppEnv } from '../shared/http/context.ts';
import { csrfGuard } from '../shared/http/csrf-guard.ts';
import type { Deps } from '../shared/http/deps.ts';
import { noteDenied, statusOf } from '../shared/http/problem.ts';
import { enter } from '../shared/http/sign-in.ts';

const MAX_BODY_BYTES = 64 * 1024;
const FIELDS = ['grant_type', 'username', 'password'];
const form = z.object({ grant_type: z.literal('password'), username: z.string(), password: z.string() });
const failure = z.object({ error: z.string(), error_description: z.string() }).openapi('OAuthError');

/** As RFC 6749 calls them; what is not here is a fault of ours. */
const ERRORS: Partial<Record<ErrorCode, string>> = {
  malformed: 'invalid_request',
  media_type: 'invalid_request',
  too_large: 'invalid_request',
  forbidden: 'invalid_request',
  unauthenticated: 'invalid_grant',
  locked_out: 'temporarily_unavailable',
  unavailable: 'temporarily_unavailable',
  upstream: 'server_error',
};

const refusals = Object.fromEntries(
  Object.keys(ERRORS).map((code) => [
    statusOf(code as ErrorCode),
    { description: code.replaceAll('_', ' '), content: { 'application/json': { schema: failure } } },
  ]),
);

const route = createRoute({
  method: 'post',
  path: '/oauth/token',
  summary: 'Exchanges a username and password for a token of the core, for the reverse proxy in front of the core',
  tags: ['sign-in'],
  security: [],
  request: { body: { content: { 'application/x-www-form-urlencoded': { schema: form } } } },
  responses: {
    200: {
      description: "The core's response, with its cookies access_token_0, access_token_1 …",
      content: { 'application/json': { schema: z.object({ access_token: z.string() }).loose() } },
    },
    ...refusals,
  },
});

/** Adds the route of this file. */
export function oauthTokenFunction(app: App, deps: Pick<Deps, 'authenticator' | 'coreEnrollment' | 'audit'>): void {
  const guard = csrfGuard('form');

  async function giveToken(c: Context<AppEnv>): Promise<Response> {
    await guard(c, async () => undefined);
    const order = orderIn(await formOf(c));
    if (typeof order === 'string') return refused(400, 'unsupported_grant_type', order);
    const { username, password } = order;
    // The core would count a wrong password for the address of management, and in the end lock
    // everybody out.
    await enter(c, deps.authenticator, { kind: 'basic', username, password }, 'core');
    return passedOn(await deps.coreEnrollment.token(order));
  }

  app.openAPIRegistry.registerPath(route);
  app.post(route.path, async function answerToken(c) {
    try {
      return await giveToken(c);
    } catch (error) {
      const name = error instanceof AppError ? ERRORS[error.code] : undefined;
      if (!(error instanceof AppError) || name === undefined) throw error;
      if (error.code === 'forbidden') await noteDenied(deps.audit, error, c);
      const { code, message, retryAfterSeconds } = error;
      const words = code === 'unauthenticated' ? 'The username or the password is wrong.' : message;
      return refused(statusOf(code), name, words, retryAfterSeconds);
    }
  });
}

/**
 * Of address and body together: a client library sends the fields in the address, as a release
 * allows.
 */
async function formOf(c: Context<AppEnv>): Promise<[string, string][]> {
  const body = await c.req.arrayBuffer();
  if (body.byteLength > MAX_BODY_BYTES)
    throw new AppError('too_large', 'The request body is too large: the limit is 64 KB.');
  const text = utf8Of(body);
  return [...new URLSearchParams(`${new URL(c.req.url).search.slice(1)}&${text}`)];
}

function utf8Of(body: ArrayBuffer): string {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(body);
  } catch (cause) {
    throw new AppError('malformed', 'The request body is not UTF-8 text.', { cause });
  }
}

/** Text that says why, when another grant is asked for. */
function orderIn(fields: [string, string][]): CoreTokenOrder | string {
  const [grantType, username, password] = FIELDS.map((wanted) => {
    const values = fields.filter(([name]) => name === wanted);
    return values.length === 1 ? values[0]?.[1] : undefined;
  });
  if (grantType === undefined || username === undefined || password === undefined)
    throw new AppError('malformed', 'The form must contain grant_type, username and password, each once.');
  if (grantType !== 'password') return 'Only grant_type=password is supported.';
  return { username, password, further: fields.filter(([name]) => !FIELDS.includes(name)) };
}

function passedOn({ status, json, cookies }: CoreTokenAnswer): Response {
  const response = unstored(json, status, {});
  for (const cookie of cookies) response.headers.append('Set-Cookie', cookie);
  return response;
}

function refused(status: number, error: string, description: string, retryAfterSeconds?: number): Response {
  const after: Record<string, string> =
    retryAfterSeconds === undefined ? {} : { 'Retry-After': String(retryAfterSeconds) };
  return unstored(JSON.stringify({ error, error_description: description }), status, after);
}

function unstored(json: string, status: number, more: Record<string, string>): Response {
  const headers = { 'Content-Type': 'application/json', 'Cache-Control': 'no-store', ...more };
  return new Response(json, { status, headers });
}

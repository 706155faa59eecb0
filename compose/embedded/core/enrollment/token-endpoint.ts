// POST /oauth/token: a bearer token for a name and a password (RFC 6749, 4.3), which stand in the body. A client library sends them
// in the address instead, as a release allows: nothing here may write an address with its query.

import { json } from '../http/answers.ts';
import type { CoreConnection } from '../parts.ts';
import { readText } from './body.ts';
import { tokenCookies } from './credentials.ts';
import type { PasswordDoor } from './password-door.ts';
import { lockedOutText, TOO_MANY_AT_ONCE } from './sign-in.ts';
import type { Tokens } from './tokens.ts';

const FORM = 'application/x-www-form-urlencoded';

export function tokenEndpoint(door: PasswordDoor, tokens: Tokens) {
  return async function giveToken(request: Request, { clientAddress }: CoreConnection): Promise<Response> {
    const text = await readText(request);
    if (text !== '' && typeOf(request) !== FORM) return refused(415, 'invalid_request', `The body must be ${FORM}.`);
    const form = readForm(`${new URL(request.url).search.slice(1)}&${text}`);
    if (typeof form === 'string') return refused(400, 'invalid_request', form);
    if (form.grantType !== 'password')
      return refused(400, 'unsupported_grant_type', 'The only grant_type here is password.');

    const entrance = await door.enter({ ...form, address: clientAddress });
    if (entrance.kind === 'in') return granted(await tokens.issue(entrance.entry.username, form.password));
    if (entrance.kind === 'busy') return refused(503, 'temporarily_unavailable', TOO_MANY_AT_ONCE);
    // As a release does: no body.
    if (entrance.kind === 'refused') return unstored(new Response(null, { status: 401 }));
    const { retryAfterSeconds } = entrance;
    const after = { 'retry-after': String(retryAfterSeconds) };
    return refused(429, 'temporarily_unavailable', lockedOutText(retryAfterSeconds), after);
  };
}

function granted({ id, token, lifetimeSeconds }: Awaited<ReturnType<Tokens['issue']>>): Response {
  const answer = json({ access_token: token, token_type: 'Bearer', expires_in: lifetimeSeconds, jti: id });
  for (const cookie of tokenCookies(token, lifetimeSeconds)) answer.headers.append('set-cookie', cookie);
  return unstored(answer);
}

function refused(status: number, error: string, description: string, headers: Record<string, string> = {}): Response {
  const answer = json({ error, error_description: description }, status);
  for (const [name, value] of Object.entries(headers)) answer.headers.set(name, value);
  return unstored(answer);
}

function unstored(answer: Response): Response {
  answer.headers.set('cache-control', 'no-store');
  return answer;
}

function typeOf({ headers }: Request): string {
  return (headers.get('content-type') ?? '').split(';', 1)[0]?.trim().toLowerCase() ?? '';
}

/** The three fields, each once in address and body together; text that says what is wrong otherwise. */
function readForm(text: string): { grantType: string; username: string; password: string } | string {
  const form = new URLSearchParams(text);
  const [grantType, username, password] = ['grant_type', 'username', 'password'].map((name) => {
    const values = form.getAll(name);
    return values.length === 1 ? values[0] : undefined;
  });
  if (grantType === undefined || username === undefined || password === undefined)
    return 'There must be grant_type, username and password, each once.';
  return { grantType, username, password };
}

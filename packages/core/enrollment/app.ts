// Serves port 8446, which accepts passwords: enrollment, and for administrators the admin API.

import { type Context, Hono } from 'hono';
import { AppError, messageOf } from '@holdfast/kit/app-error';
import { readBody } from '@holdfast/kit/body';
import type { Lockout } from '@holdfast/kit/lockout';
import type { Log } from '@holdfast/kit/log';
import { ADMIN_ROLE_GROUP, nameKey } from '@holdfast/kit/names';
import type { Authority, SignedCertificate } from '@holdfast/pki/parts';
import { CoreFault, faultResponse, isFromForeignSite, json, PageFault, pageResponse } from '../http/answers.ts';
import type {
  CertificateStore,
  CoreCaller,
  CoreConnection,
  CoreDirectory,
  CoreFetch,
  CoreRole,
} from '../model/parts.ts';
import type { DeviceProfiles } from '../profiles/device-profiles.ts';
import { createEnroll } from './enroll.ts';
import { type EnrollmentAttempts, EnrollmentEvents } from './events.ts';
import { Refusal, refusalResponse } from './refusal.ts';
import {
  createSignIn,
  credentialsOf,
  lockedOutText,
  type PasswordCheck,
  createPasswordCheck,
  type SignedIn,
  tokenCookies,
  TOO_MANY_AT_ONCE,
} from './sign-in.ts';
import { Tokens } from './tokens.ts';
import {
  bundledCertificate,
  type CertificateBundle,
  certificateConfig,
  wantedRepresentation,
  writtenCertificate,
} from './written-certificate.ts';

const MAX_BODY_BYTES = 64 * 1024;

/**
 * The whole body as UTF-8 text. Throws Refusal: 413 for more than 64 KB, 400 for what is no UTF-8
 * or ends early.
 */
export async function readText(request: Request): Promise<string> {
  if (Number(request.headers.get('content-length') ?? 0) > MAX_BODY_BYTES) throw tooLarge();
  const bytes = await readBody(request.body, MAX_BODY_BYTES, tooLarge).catch(endedEarly);
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch (error) {
    throw new Refusal(400, 'The body is not UTF-8 text.', {}, { cause: error });
  }
}

function endedEarly(cause: unknown): never {
  if (cause instanceof Refusal) throw cause;
  throw new Refusal(400, 'The body is incomplete.', {}, { cause });
}

function tooLarge(): Refusal {
  return new Refusal(413, 'A body may have 64 KB at most.');
}

const FORM = 'application/x-www-form-urlencoded';

/**
 * POST /oauth/token: a bearer token for a name and a password (RFC 6749, 4.3), which stand in the
 * body. A client library sends them in the address instead, as a release allows: nothing here may
 * write an address with its query.
 */
export function tokenEndpoint(endpoint: PasswordCheck, tokens: Tokens) {
  return async function giveToken(request: Request, { clientAddress }: CoreConnection): Promise<Response> {
    const text = await readText(request);
    if (text !== '' && typeOf(request) !== FORM) return refused(415, 'invalid_request', `The body must be ${FORM}.`);
    const form = readForm(`${new URL(request.url).search.slice(1)}&${text}`);
    if (typeof form === 'string') return refused(400, 'invalid_request', form);
    if (form.grantType !== 'password')
      return refused(400, 'unsupported_grant_type', 'Only grant_type=password is supported.');

    const entrance = await endpoint.enter({ ...form, address: clientAddress });
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

/**
 * The three fields, each once in address and body together; text that says what is wrong otherwise.
 */
function readForm(text: string): { grantType: string; username: string; password: string } | string {
  const form = new URLSearchParams(text);
  const [grantType, username, password] = ['grant_type', 'username', 'password'].map((name) => {
    const values = form.getAll(name);
    return values.length === 1 ? values[0] : undefined;
  });
  if (grantType === undefined || username === undefined || password === undefined)
    return 'grant_type, username and password are required, each once.';
  return { grantType, username, password };
}

export interface EnrollmentApiOptions {
  directory: Pick<CoreDirectory, 'signIn'>;
  authority: Pick<Authority, 'chain' | 'issue'>;
  certificates: Pick<CertificateStore, 'add'>;
  bundle: CertificateBundle;
  /** Answers whatever is not of enrollment, and refuses by the role of the caller. */
  adminApi: (request: Request, connection: CoreConnection, caller: CoreCaller) => Response | Promise<Response>;
  profiles: Pick<DeviceProfiles, 'onEvent' | 'ofTool' | 'filesOfTool'>;
  /** Whoever is in it administers the core. */
  adminGroup?: string;
  attempts: Pick<EnrollmentAttempts, 'add'>;
  /** Shared by the nodes of a cluster; default: of this process. */
  lockout?: Lockout | undefined;
  tokenKey?: Uint8Array | undefined;
  log: Log;
  now: () => Date;
  /** Milliseconds that never go back. */
  steadyMs: () => number;
}

interface EnrollmentEnv {
  Bindings: { connection: CoreConnection };
  Variables: { user: string };
}
type EnrollmentContext = Context<EnrollmentEnv>;

const TLS = '/Marti/api/tls';
const MAX_CLIENT_UID_LENGTH = 255;
const CONTROL = /\p{Cc}/u;
/** Of the admin API, for anybody with a password. */
const FOR_EVERYBODY = /^\/Marti\/api\/(?:version(?:\/config)?|util\/user(?:\/[A-Za-z]+)*)$/;

/**
 * @example
 * const options = { directory, authority, certificates, bundle, adminApi, log, now, steadyMs };
 * const api = createEnrollmentApi(options);
 * const response = await api(request, { clientAddress: '192.0.2.7', secure: true });
 */
export function createEnrollmentApi(options: EnrollmentApiOptions): CoreFetch {
  const { directory, authority, bundle, adminApi, log, now, steadyMs } = options;
  const events = new EnrollmentEvents(log, steadyMs, options.attempts);
  const endpoint = createPasswordCheck(directory, steadyMs, events, options.lockout);
  const tokens = new Tokens(now, options.tokenKey);
  const prepareSignIn = createSignIn(directory, endpoint, tokens);
  const enroll = createEnroll({ ...options, events });
  const giveToken = tokenEndpoint(endpoint, tokens);
  const app = new Hono<EnrollmentEnv>();

  const prepare = (c: EnrollmentContext): (() => Promise<SignedIn>) => {
    const enter = prepareSignIn(c.req.raw.headers, c.env.connection.clientAddress);
    return async () => {
      const signedIn = await enter();
      c.set('user', signedIn.entry.username);
      return signedIn;
    };
  };

  async function certificate(c: EnrollmentContext, enter: () => Promise<SignedIn>): Promise<SignedCertificate> {
    const { clientAddress: address } = c.env.connection;
    const clientUid = clientUidOf(c);
    // The body first: it may take minutes, in which an account can be closed.
    const request = await readText(c.req.raw);
    return enroll(await enter(), { request, clientUid, channels: c.req.query('version') !== undefined, address });
  }

  function add(method: 'GET' | 'POST', path: string, handle: (c: EnrollmentContext) => Promise<Response>): void {
    app.on(method, path, handle);
    app.all(path, function refuseMethod() {
      const allow = method === 'GET' ? 'GET, HEAD' : method;
      throw new Refusal(405, `This address only allows ${allow}.`, { allow });
    });
  }

  /** For whoever may come in. */
  const signedIn = (answer: AnswerToAnybody) => async (c: EnrollmentContext) => {
    const { entry } = await prepare(c)();
    return answer(c.req.raw, entry.username, c.req.param('tool') ?? '');
  };

  app.use(async function refuseForeignSites(c, next) {
    if (isFromForeignSite(c.req.raw, c.env.connection))
      throw new Refusal(403, 'This request came from a page of another site.');
    await next();
  });
  add('POST', '/oauth/token', (c) => giveToken(c.req.raw, c.env.connection));
  add('GET', `${TLS}/config`, signedIn(certificateConfig));
  for (const [path, answer] of profileCalls(options.profiles)) add('GET', `${TLS}/profile/${path}`, signedIn(answer));
  add('POST', `${TLS}/signClient`, async (c) =>
    bundledCertificate(bundle, await certificate(c, prepare(c)), authority.chain),
  );
  add('POST', `${TLS}/signClient/v2`, async (c) => {
    const enter = prepare(c);
    const wanted = wantedRepresentation(c.req.header('accept'));
    if (wanted === undefined)
      throw new CoreFault('invalid', 'Invalid Request: Accept must allow application/json or application/xml');
    return writtenCertificate(wanted, await certificate(c, enter), authority.chain);
  });
  app.all('*', async function askAdminApi(c) {
    const someone = await prepare(c)();
    const role = await roleOf(someone, options.adminGroup ?? ADMIN_ROLE_GROUP);
    const isOpen = FOR_EVERYBODY.test(c.req.path) && ['GET', 'HEAD'].includes(c.req.method);
    if (role !== 'ROLE_ADMIN' && !isOpen) throw new Refusal(403, 'This requires a certificate.');
    return adminApi(c.req.raw, c.env.connection, { username: someone.entry.username, by: someone.by, role });
  });
  app.onError((error, c) => answerTo(error, c, events));

  return (request, connection) => app.fetch(request, { connection });
}

type AnswerToAnybody = (request: Request, username: string, tool: string) => Response | Promise<Response>;

function profileCalls(profiles: EnrollmentApiOptions['profiles']): [path: string, answer: AnswerToAnybody][] {
  return [
    ['enrollment', (request, username) => profiles.onEvent('Enrollment', request, username)],
    ['tool/:tool', (...given) => profiles.ofTool(...given)],
    ['tool/:tool/file', (...given) => profiles.filesOfTool(...given)],
  ];
}

/** An app password never administers: its QR code is handed around. */
async function roleOf({ entry, opens }: SignedIn, adminGroup: string): Promise<CoreRole> {
  const isAdmin = entry.groups.some((group) => nameKey(group) === nameKey(adminGroup));
  return isAdmin && (await opens('web')) ? 'ROLE_ADMIN' : 'ROLE_ANONYMOUS';
}

function clientUidOf(c: EnrollmentContext): string {
  const clientUid = c.req.query('clientUid') ?? '';
  if (clientUid.length > MAX_CLIENT_UID_LENGTH || CONTROL.test(clientUid))
    throw new CoreFault(
      'invalid',
      `Invalid Request: clientUid must have at most ${MAX_CLIENT_UID_LENGTH} characters, without control characters`,
    );
  return clientUid;
}

function answerTo(error: Error, c: EnrollmentContext, events: EnrollmentEvents): Response {
  if (error instanceof Refusal) return refusalResponse(error);
  if (error instanceof CoreFault) return faultResponse(error);
  if (error instanceof PageFault) return pageResponse(error);
  const failure = {
    address: c.env.connection.clientAddress,
    user: (c.get('user') as string | undefined) ?? claimedUser(c),
    clientUid: c.req.query('clientUid'),
    reason: `${c.req.method} ${c.req.path}: ${messageOf(error)}`,
  };
  if (error instanceof AppError && (error.code === 'unavailable' || error.code === 'upstream')) {
    events.failed('unavailable', failure);
    const [status, what] =
      error.code === 'unavailable' ? ([503, 'do not answer'] as const) : ([502, 'answer wrongly'] as const);
    return refusalResponse(new Refusal(status, `The directory or the database ${what}. Try again in a moment.`));
  }
  events.failed('internal', failure);
  return refusalResponse(new Refusal(500, 'The request failed. The server log has the reason.'));
}

/** Who the request says it is, where nobody could be asked whether that is so. */
function claimedUser(c: EnrollmentContext): string | undefined {
  const credentials = credentialsOf(c.req.raw.headers);
  return credentials.kind === 'password' ? credentials.username : undefined;
}

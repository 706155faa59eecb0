// /api/me: the signed-in person, their password and their certificates.

import { z } from '@hono/zod-openapi';
import type { Context } from 'hono';
import { AppError } from '@holdfast/kit/app-error';
import { toUserView } from '../shared/devices/accounts.ts';
import { downloadCertificate } from '../shared/devices/certificates/download.ts';
import { findOrRemembered, viewAfterRevocation, anyUser } from '../shared/devices/certificates/find.ts';
import { issueCertificate } from '../shared/devices/certificates/issue.ts';
import { listCertificates } from '../shared/devices/certificates/list.ts';
import { revokeCertificate } from '../shared/devices/revocation/revoke.ts';
import { attachmentAnswer } from '../shared/http/answers.ts';
import { type App, type AppEnv, clearSessionCookie } from '../shared/http/context.ts';
import type { Deps } from '../shared/http/deps.ts';
import { bodyOf } from '../shared/http/listing.ts';
import { apiRoute, jsonAnswer } from '../shared/http/route.ts';
import {
  certificateName,
  certificatePage,
  certificateParams,
  certificateQuery,
  certificateSchema,
  downloadAnswer,
  downloadQuery,
  issuedCertificateSchema,
} from '../shared/http/schemas/certificates.ts';
import { newPassword, userSchema } from '../shared/http/schemas/people.ts';
import { actingIn, lockedOut } from '../shared/http/sign-in.ts';
import type { Account } from '../shared/identity/port.ts';
import { setUserPassword } from '../shared/people/create-user.ts';
import type { Entrance } from '../shared/sign-in/port.ts';
import { type Principal, SCOPES } from '../shared/sign-in/rules.ts';

/**
 * Changing one's own password, for the API and the page: the one that is now comes first, at the
 * same door as a sign-in.
 */
interface Passwords {
  current: string;
  password: string;
}

/**
 * Every session of the person ends, also that of the request. `unauthenticated` for a wrong
 * `current`, which counts.
 */
export async function changeOwnPassword(
  c: Context<AppEnv>,
  deps: Deps,
  { current, password }: Passwords,
): Promise<void> {
  const principal = c.get('principal');
  const { username, by } = principal;
  const { clientAddress: address, requestId } = c.env;
  mustBeIn(await deps.authenticator.password({ username, password: current, address, base: 'web', requestId }));
  const { id } = await accountOf(deps, principal);
  await setUserPassword(actingIn(c, deps), { id, password, withHidden: true });
  if (by.kind === 'session') clearSessionCookie(c);
}

/** The account of whoever is signed in, hidden or not. */
export async function accountOf({ identity }: Deps, { username }: Principal): Promise<Account> {
  const account = await identity.accounts.named(username);
  if (account !== undefined) return account;
  throw new AppError('not_found', `The identity provider has no account ${username}.`);
}

/**
 * The password itself must have been judged: the emergency sign-in knows only that of the settings.
 */
function mustBeIn(entrance: Entrance): void {
  if (entrance.kind === 'locked') throw lockedOut(entrance.retryAfterSeconds);
  if (entrance.kind === 'refused') throw new AppError('unauthenticated', 'current_password is wrong.');
  if (entrance.principal.by.kind === 'break-glass')
    throw new AppError(
      'unavailable',
      'The directory does not answer, so the password cannot be changed. Try again later.',
    );
}

const tags = ['me'];
const meSchema = userSchema
  .extend({
    signed_in_by: z.object({
      kind: z.enum(['password', 'session', 'token']),
      scope: z.enum(SCOPES).optional().openapi({ description: 'Tokens only' }),
    }),
  })
  .openapi('Me');

const readRoute = apiRoute(
  {
    method: 'get',
    path: '/api/me',
    summary: 'Returns the signed-in person and the kind of sign-in',
    tags,
    responses: { 200: jsonAnswer('The user', meSchema) },
  },
  { access: 'own', fails: ['not_found', 'upstream', 'unavailable'] },
);

const passwordRoute = apiRoute(
  {
    method: 'post',
    path: '/api/me/password',
    summary: 'Changes your password and ends every session, including this one',
    tags,
    request: bodyOf({
      current_password: z.string().max(4096).openapi({ description: 'A wrong one counts toward the lockout' }),
      password: newPassword,
    }),
    responses: { 204: { description: 'The password is set' } },
  },
  { access: 'own', fails: ['not_found', 'upstream', 'unavailable'] },
);

/** Adds the routes of this file. */
export function meFunction(app: App, deps: Deps): void {
  app.openapi(readRoute, async function readMe(c) {
    const principal = c.get('principal');
    const account = await accountOf(deps, principal);
    c.header('Cache-Control', 'no-store');
    return c.json({ ...toUserView(account, deps), signed_in_by: signedInBy(principal) }, 200);
  });
  app.openapi(passwordRoute, async function changePassword(c) {
    const { current_password: current, password } = c.req.valid('json');
    await changeOwnPassword(c, deps, { current, password });
    return c.body(null, 204);
  });
}

function signedInBy({ by }: Principal): z.infer<typeof meSchema>['signed_in_by'] {
  if (by.kind === 'token') return { kind: 'token', scope: by.scope };
  return { kind: by.kind === 'session' ? 'session' : 'password' };
}

const certificateTags = ['me'];

const listRoute = apiRoute(
  {
    method: 'get',
    path: '/api/me/certs',
    summary: 'Lists your certificates, newest first',
    tags: certificateTags,
    request: { query: z.object(certificateQuery()) },
    responses: { 200: jsonAnswer('A page of certificates', certificatePage) },
  },
  { access: 'own', fails: ['invalid', 'upstream', 'unavailable'] },
);

const issueRoute = apiRoute(
  {
    method: 'post',
    path: '/api/me/certs',
    summary: 'Issues a certificate to yourself',
    tags: certificateTags,
    request: bodyOf({ name: certificateName }),
    responses: { 201: jsonAnswer('The certificate', issuedCertificateSchema) },
  },
  { access: 'own', fails: ['conflict', 'upstream', 'unavailable'] },
);

const downloadRoute = apiRoute(
  {
    method: 'get',
    path: '/api/me/certs/{file}/download',
    summary: 'Downloads your certificate with its key, as /api/ops/certs/{file}/download does',
    tags: certificateTags,
    request: { params: certificateParams, query: downloadQuery },
    responses: { 200: downloadAnswer },
  },
  { access: 'own', fails: ['not_found', 'conflict', 'invalid', 'upstream', 'unavailable'] },
);

const revokeRoute = apiRoute(
  {
    method: 'post',
    path: '/api/me/certs/{file}/revoke',
    summary: 'Revokes your certificate and proves that it is refused',
    tags: certificateTags,
    request: { params: certificateParams },
    responses: {
      200: jsonAnswer('Revoked, with proof', certificateSchema),
      202: jsonAnswer('Being revoked, until it is proven', certificateSchema),
    },
  },
  { access: 'own', fails: ['not_found', 'conflict', 'invalid', 'upstream', 'unavailable'] },
);

/**
 * /api/me/certs: the certificates whose record says that they are those of whoever is signed in.
 * Anything else is not there. Adds the routes of this file.
 */
export function meCertsFunction(app: App, deps: Deps): void {
  app.openapi(listRoute, async function listOwnCerts(c) {
    const { status: states, page, page_size: pageSize } = c.req.valid('query');
    const { username } = c.get('principal');
    const found = await listCertificates(deps, { username, states, page, pageSize });
    c.header('Cache-Control', 'no-store');
    return c.json({ ...found, page, page_size: pageSize }, 200);
  });
  app.openapi(issueRoute, async function issueOwnCert(c) {
    const { username } = c.get('principal');
    const wanted = { username, name: c.req.valid('json').name, own: true };
    const issued = await issueCertificate(actingIn(c, deps), wanted);
    c.header('Cache-Control', 'no-store');
    return c.json(issued, 201);
  });
  app.openapi(downloadRoute, async function downloadOwnCert(c) {
    const { format, app: phone, compat } = c.req.valid('query');
    const { username: of } = c.get('principal');
    const { file } = c.req.valid('param');
    const wanted = { file, of, format, app: phone, legacy: compat === 'legacy' };
    return attachmentAnswer(c, await downloadCertificate(actingIn(c, deps), wanted));
  });
  app.openapi(revokeRoute, async function revokeOwnCert(c) {
    const readable = anyUser(deps);
    const found = await findOrRemembered(readable, c.req.valid('param').file, c.get('principal').username);
    const revocation = await revokeCertificate(actingIn(c, deps), found.certificate);
    const shown = await viewAfterRevocation(readable, found.shown, revocation);
    c.header('Cache-Control', 'no-store');
    return shown.state === 'revoked' ? c.json(shown, 200) : c.json(shown, 202);
  });
}

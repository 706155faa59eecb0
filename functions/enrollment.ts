// /api/users/{id}/enrollment and /api/me/enrollment: enrollment codes, their diagnosis, and the
// data package.

import { z } from '@hono/zod-openapi';
import type { Context } from 'hono';
import { AppError } from '@holdfast/kit/app-error';
import { bytesOfBase64 } from '@holdfast/kit/text';
import { isHidden, userOf } from '../shared/devices/accounts.ts';
import { dataPackage, safeFileName } from '../shared/devices/certificates/data-package.ts';
import { ENROLLMENT_STAGES } from '../shared/devices/enrollment/check.ts';
import { diagnoseEnrollment, ENROLLMENT_STATES } from '../shared/devices/enrollment/diagnose.ts';
import { issueEnrollment } from '../shared/devices/enrollment/issue.ts';
import { registrationIdOf, cancelEnrollment } from '../shared/devices/enrollment/kept.ts';
import { apiPortOf, streamingPortOf } from '../shared/devices/links.ts';
import type { App, AppEnv } from '../shared/http/context.ts';
import type { Deps } from '../shared/http/deps.ts';
import { apiRoute, jsonAnswer } from '../shared/http/route.ts';
import {
  diagnosisSchema,
  enrollmentSchema,
  serverAddress,
  toEnrollmentView,
} from '../shared/http/schemas/enrollment.ts';
import { userId } from '../shared/http/schemas/people.ts';
import { actingIn, allow } from '../shared/http/sign-in.ts';
import type { Account } from '../shared/identity/port.ts';
import { whyNot } from '../shared/sign-in/rules.ts';

const PATH = '/api/users/{id}/enrollment';
const OWN_PATH = '/api/me/enrollment';
const params = z.object({ id: z.string().openapi({ type: 'integer' }) });
const ofUser = { request: { params }, tags: ['users'] };
const ofMe = { tags: ['me'] };
const issued = { 201: jsonAnswer('The code for the device to scan; a valid one is returned again', enrollmentSchema) };
const diagnosis = {
  200: jsonAnswer(
    'Its state, and the first reason why it would fail',
    diagnosisSchema(ENROLLMENT_STATES, ENROLLMENT_STAGES),
  ),
};
const canceled = { 204: { description: 'All app passwords for enrollment are deleted' } };

const ISSUE = 'Issues a password to enroll devices with, as link and QR code';
const DIAGNOSE = 'Diagnoses why an enrollment would fail now, with a remedy';
const CANCEL = 'Cancels the enrollment; enrolled devices stay';

const unavailable = ['not_found', 'upstream', 'unavailable'] as const;
const ofAdmin = { access: 'admin', area: 'people', fails: [...unavailable] } as const;
const own = { access: 'own', area: 'people', fails: [...unavailable] } as const;

const issueRoute = apiRoute(
  { method: 'post', path: PATH, summary: ISSUE, ...ofUser, responses: issued },
  { ...ofAdmin, fails: ['conflict', ...unavailable] },
);
const diagnoseRoute = apiRoute(
  { method: 'get', path: PATH, summary: DIAGNOSE, ...ofUser, responses: diagnosis },
  { ...ofAdmin, access: 'viewer', fails: [...unavailable] },
);
const cancelRoute = apiRoute(
  { method: 'delete', path: PATH, summary: CANCEL, ...ofUser, responses: canceled },
  { ...ofAdmin, fails: [...unavailable] },
);
const ownIssueRoute = apiRoute(
  { method: 'post', path: OWN_PATH, summary: ISSUE, ...ofMe, responses: issued },
  { ...own, fails: ['conflict', ...unavailable] },
);
const ownDiagnoseRoute = apiRoute(
  { method: 'get', path: OWN_PATH, summary: DIAGNOSE, ...ofMe, responses: diagnosis },
  { ...own, fails: [...unavailable] },
);
const cancelOwnRoute = apiRoute(
  { method: 'delete', path: OWN_PATH, summary: CANCEL, ...ofMe, responses: canceled },
  { ...own, fails: [...unavailable] },
);
const packageRoute = apiRoute(
  {
    method: 'get',
    path: `${PATH}/package`,
    summary:
      'Downloads a data package with CA and connection, to open on the device before the link; for administrators and that user',
    tags: ['users'],
    request: {
      params,
      query: z.object({ app: z.enum(['atak', 'itak'], { error: 'must be atak or itak' }).default('atak') }),
    },
    responses: {
      200: {
        description: 'The data package',
        content: { 'application/zip': { schema: z.string().openapi({ format: 'binary' }) } },
      },
    },
  },
  { ...own, fails: ['invalid', ...unavailable] },
);

/** Adds the routes of this file. */
export function enrollmentFunction(app: App, deps: Deps): void {
  const issue = async (c: Context<AppEnv>, account: Account) => {
    const host = serverAddress(deps);
    const { token, key, authority } = await issueEnrollment(actingIn(c, deps), account);
    const { identifier, username, expiresAt, caFingerprint } = token;
    const registrationId = registrationIdOf(identifier);
    const { chainPem } = authority;
    c.header('Cache-Control', 'no-store');
    const shown = { accountId: account.id, username, expiresAt, caFingerprint, chainPem, registrationId, key, host };
    return toEnrollmentView(deps, shown);
  };

  app.openapi(issueRoute, async function issueForUser(c) {
    return c.json(await issue(c, await userOf(deps, userId(c.req.valid('param').id))), 201);
  });
  app.openapi(ownIssueRoute, async function issueForMe(c) {
    return c.json(await issue(c, await ownAccount(deps, c)), 201);
  });
  app.openapi(diagnoseRoute, async function diagnoseUser(c) {
    const account = await userOf(deps, userId(c.req.valid('param').id));
    c.header('Cache-Control', 'no-store');
    return c.json(await diagnoseEnrollment(deps, account), 200);
  });
  app.openapi(ownDiagnoseRoute, async function diagnoseMe(c) {
    const account = await ownAccount(deps, c);
    c.header('Cache-Control', 'no-store');
    return c.json(await diagnoseEnrollment(deps, account, OWN_PATH), 200);
  });
  app.openapi(cancelRoute, async function cancelForUser(c) {
    await cancelEnrollment(actingIn(c, deps), { id: userId(c.req.valid('param').id) });
    return c.body(null, 204);
  });
  app.openapi(cancelOwnRoute, async function cancelMine(c) {
    await cancelEnrollment(actingIn(c, deps), await ownAccount(deps, c));
    return c.body(null, 204);
  });
  app.openapi(packageRoute, async function downloadPackage(c) {
    const account = await theirsToDownload(deps, c, userId(c.req.valid('param').id));
    const { app: wanted } = c.req.valid('query');
    const name = `${safeFileName(serverAddress(deps))}-${wanted}.zip`;
    return c.body(await packageFor(deps, account, wanted), 200, {
      'Content-Type': 'application/zip',
      'Content-Disposition': `attachment; filename="${name}"`,
      'Cache-Control': 'no-store',
    });
  });
}

async function ownAccount(deps: Deps, c: Context<AppEnv>): Promise<Account> {
  const { username } = c.get('principal');
  const account = await deps.identity.accounts.named(username);
  if (account !== undefined && !isHidden(account, deps)) return account;
  throw new AppError('not_found', `${username} is not a user who can enroll devices.`);
}

/** Nobody else learns from the answer whether there is such a user. */
async function theirsToDownload(deps: Deps, c: Context<AppEnv>, id: number): Promise<Account> {
  const principal = c.get('principal');
  if (whyNot(principal, { access: 'admin', area: 'people', safe: true }) !== undefined) {
    const account = await deps.identity.accounts.named(principal.username);
    if (account?.id !== id) allow(c, { access: 'admin', area: 'people' });
  }
  return userOf(deps, id);
}

async function packageFor(deps: Deps, { id }: Account, app: 'atak' | 'itak'): Promise<Uint8Array<ArrayBuffer>> {
  const { settings, place } = deps;
  const host = serverAddress(deps);
  const { chainPem } = await deps.coreAuthority.certificate();
  const trust = await deps.bundles.trust(chainPem);
  return dataPackage({
    app,
    uid: `holdfast-enroll-${id}`,
    description: place.name,
    host,
    streamingPort: streamingPortOf(settings.CORE_STREAMING_URL),
    trust: {
      fileName: 'truststore.p12',
      bytes: bytesOfBase64(trust),
    },
    enroll: { enrollmentPort: settings.CORE_ENROLLMENT_PORT, apiPort: apiPortOf(settings.CORE_API_URL) },
  });
}

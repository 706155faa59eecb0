// /api/me/certs: the certificates whose record says that they are those of whoever is signed in. Anything else is not there.

import { z } from '@hono/zod-openapi';
import { actingIn } from '../shared/http/acting.ts';
import { attachmentAnswer } from '../shared/http/attachment.ts';
import {
  certificateName,
  certificatePage,
  certificateQuery,
  downloadAnswer,
  downloadQuery,
  issuedCertificateSchema,
} from '../shared/http/certificate-requests.ts';
import { certificateParams, certificateSchema } from '../shared/http/certificate-schemas.ts';
import type { Deps } from '../shared/http/deps.ts';
import type { App } from '../shared/http/env.ts';
import { bodyOf } from '../shared/http/people-schemas.ts';
import { apiRoute, jsonAnswer } from '../shared/http/route.ts';
import { downloadCertificate } from '../shared/verbs/download-certificate.ts';
import { findAlsoWhileAway, whoeverItsUser } from '../shared/verbs/find-certificate.ts';
import { issueCertificate } from '../shared/verbs/issue-certificate.ts';
import { listCertificates } from '../shared/verbs/list-certificates.ts';
import { revokeCertificate } from '../shared/verbs/revoke-certificate.ts';
import { shownAfterRevocation } from '../shared/verbs/shown-revocation.ts';

const tags = ['me'];

const listRoute = apiRoute(
  {
    method: 'get',
    path: '/api/me/certs',
    summary: "One's own certificates, newest first",
    tags,
    request: { query: z.object(certificateQuery()) },
    responses: { 200: jsonAnswer('A page', certificatePage) },
  },
  { access: 'own', fails: ['invalid', 'upstream', 'unavailable'] },
);

const issueRoute = apiRoute(
  {
    method: 'post',
    path: '/api/me/certs',
    summary: 'Issues a certificate to oneself',
    tags,
    request: bodyOf({ name: certificateName }),
    responses: { 201: jsonAnswer('The certificate', issuedCertificateSchema) },
  },
  { access: 'own', fails: ['conflict', 'upstream', 'unavailable'] },
);

const downloadRoute = apiRoute(
  {
    method: 'get',
    path: '/api/me/certs/{file}/download',
    summary: "One's own certificate with its key, as /api/ops/certs/{file}/download gives it",
    tags,
    request: { params: certificateParams, query: downloadQuery },
    responses: { 200: downloadAnswer },
  },
  { access: 'own', fails: ['not_found', 'conflict', 'invalid', 'upstream', 'unavailable'] },
);

const revokeRoute = apiRoute(
  {
    method: 'post',
    path: '/api/me/certs/{file}/revoke',
    summary: "Revokes one's own certificate, and proves it",
    tags,
    request: { params: certificateParams },
    responses: {
      200: jsonAnswer('It is revoked, which is proven', certificateSchema),
      202: jsonAnswer('It is being revoked, until that is proven', certificateSchema),
    },
  },
  { access: 'own', fails: ['not_found', 'conflict', 'invalid', 'upstream', 'unavailable'] },
);

/** Adds the routes of this file. */
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
    const issued = await issueCertificate(actingIn(c, deps, 'own', 'rest'), wanted);
    c.header('Cache-Control', 'no-store');
    return c.json(issued, 201);
  });
  app.openapi(downloadRoute, async function downloadOwnCert(c) {
    const { format, app: phone, compat } = c.req.valid('query');
    const { username: of } = c.get('principal');
    const { file } = c.req.valid('param');
    const wanted = { file, of, format, app: phone, legacy: compat === 'legacy' };
    return attachmentAnswer(c, await downloadCertificate(actingIn(c, deps, 'own', 'rest'), wanted));
  });
  app.openapi(revokeRoute, async function revokeOwnCert(c) {
    const readable = whoeverItsUser(deps);
    const found = await findAlsoWhileAway(readable, c.req.valid('param').file, c.get('principal').username);
    const revocation = await revokeCertificate(actingIn(c, deps, 'own', 'rest'), found.certificate);
    const shown = await shownAfterRevocation(readable, found.shown, revocation);
    c.header('Cache-Control', 'no-store');
    return shown.state === 'revoked' ? c.json(shown, 200) : c.json(shown, 202);
  });
}

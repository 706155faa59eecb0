// /api/ops/certs: all certificates of the core, its CA, and its revocation list.

import { z } from '@hono/zod-openapi';
import { downloadCertificate } from '../shared/devices/certificates/download.ts';
import { findOrRemembered, viewAfterRevocation, anyUser } from '../shared/devices/certificates/find.ts';
import { issueCertificate } from '../shared/devices/certificates/issue.ts';
import { listCertificates } from '../shared/devices/certificates/list.ts';
import { withProblem } from '../shared/devices/certificates/while-core-is-unavailable.ts';
import { revokeCertificate } from '../shared/devices/revocation/revoke.ts';
import { attachmentAnswer } from '../shared/http/answers.ts';
import type { App } from '../shared/http/context.ts';
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
  readCertificateSchema,
} from '../shared/http/schemas/certificates.ts';
import { actingIn } from '../shared/http/sign-in.ts';

const tags = ['certificates'];

const listRoute = apiRoute(
  {
    method: 'get',
    path: '/api/ops/certs',
    summary: 'Lists certificates by user, newest first',
    tags,
    request: {
      query: z.object({
        username: z.string().min(1).max(200).optional().openapi({ description: 'Exactly this username' }),
        ...certificateQuery(),
      }),
    },
    responses: { 200: jsonAnswer('A page of certificates', certificatePage) },
  },
  { access: 'viewer', area: 'people', fails: ['invalid', 'upstream', 'unavailable'] },
);

const issueRoute = apiRoute(
  {
    method: 'post',
    path: '/api/ops/certs',
    summary: 'Issues a certificate to a user, with a key made by Holdfast',
    tags,
    request: bodyOf({ username: z.string().max(1000), name: certificateName }),
    responses: { 201: jsonAnswer('The certificate', issuedCertificateSchema) },
  },
  { access: 'admin', area: 'people', fails: ['conflict', 'upstream', 'unavailable'] },
);

const authorityRoute = apiRoute(
  {
    method: 'get',
    path: '/api/ops/certs/ca',
    summary: 'Returns the CA of the core, with the certificates above it',
    tags,
    responses: {
      200: jsonAnswer(
        'The CA',
        z
          .object({
            pem: z.string(),
            fingerprint: z.string().openapi({ description: 'SHA-256 of the CA certificate' }),
            expires_at: z.iso.datetime(),
          })
          .openapi('CertificateAuthority'),
      ),
    },
  },
  { access: 'viewer', area: 'people', fails: ['unavailable'] },
);

const revocationListRoute = apiRoute(
  {
    method: 'get',
    path: '/api/ops/certs/crl',
    summary: 'Returns the revocation list of the core',
    tags,
    responses: {
      200: jsonAnswer(
        'The revocation list',
        z
          .object({
            pem: z.string(),
            serials: z.array(z.string()).openapi({ description: 'Lower-case hex' }),
            this_update: z.iso.datetime(),
            next_update: z.iso.datetime().nullable(),
          })
          .openapi('RevocationList'),
      ),
    },
  },
  { access: 'viewer', area: 'people', fails: ['unavailable'] },
);

const readRoute = apiRoute(
  {
    method: 'get',
    path: '/api/ops/certs/{file}',
    summary: 'Returns a certificate; among several of one name the one that is not revoked, else the newest',
    tags,
    request: { params: certificateParams },
    responses: { 200: jsonAnswer('The certificate', readCertificateSchema) },
  },
  { access: 'viewer', area: 'people', fails: ['not_found', 'invalid', 'upstream', 'unavailable'] },
);

/** Adds the routes of this file. */
export function certsFunction(app: App, deps: Deps): void {
  app.openapi(listRoute, async function listCerts(c) {
    const { username, status: states, page, page_size: pageSize } = c.req.valid('query');
    const found = await listCertificates(deps, { username, states, page, pageSize });
    c.header('Cache-Control', 'no-store');
    return c.json({ ...found, page, page_size: pageSize }, 200);
  });
  app.openapi(issueRoute, async function issueCert(c) {
    const issued = await issueCertificate(actingIn(c, deps), c.req.valid('json'));
    c.header('Cache-Control', 'no-store');
    return c.json(issued, 201);
  });
  // Before `{file}`, which would take these names for files.
  app.openapi(authorityRoute, async function readAuthority(c) {
    const { chainPem, fingerprint, expiresAt } = await deps.coreAuthority.certificate();
    return c.json({ pem: chainPem.map(endedLine).join(''), fingerprint, expires_at: expiresAt }, 200);
  });
  app.openapi(revocationListRoute, async function readRevocationList(c) {
    const { pem, serials, thisUpdate, nextUpdate } = await deps.coreAuthority.revocationList();
    c.header('Cache-Control', 'no-store');
    return c.json({ pem, serials, this_update: thisUpdate, next_update: nextUpdate }, 200);
  });
  app.openapi(readRoute, async function readCert(c) {
    const { shown, problem } = await findOrRemembered(deps, c.req.valid('param').file);
    c.header('Cache-Control', 'no-store');
    return c.json(withProblem(shown, problem), 200);
  });
}

function endedLine(pem: string): string {
  return `${pem.trim()}\n`;
}

const route = apiRoute(
  {
    method: 'get',
    path: '/api/ops/certs/{file}/download',
    summary: 'Downloads a certificate with its key: PKCS#12 (password atakatak), data package for ATAK or iTAK, or PEM',
    tags: ['certificates'],
    request: { params: certificateParams, query: downloadQuery },
    responses: { 200: downloadAnswer },
  },
  { access: 'admin', area: 'people', fails: ['not_found', 'conflict', 'invalid', 'upstream', 'unavailable'] },
);

/**
 * GET /api/ops/certs/{file}/download: a certificate with its key, as a file for a phone or a
 * program. Adds the route of this file.
 */
export function certDownloadsFunction(app: App, deps: Deps): void {
  app.openapi(route, async function downloadCert(c) {
    const { format, app: phone, compat } = c.req.valid('query');
    const { file } = c.req.valid('param');
    const wanted = { file, format, app: phone, legacy: compat === 'legacy' };
    return attachmentAnswer(c, await downloadCertificate(actingIn(c, deps), wanted));
  });
}

const revocationRoute = apiRoute(
  {
    method: 'post',
    path: '/api/ops/certs/{file}/revoke',
    summary: 'Revokes a certificate and proves that it is refused',
    tags: ['certificates'],
    request: { params: certificateParams },
    responses: {
      200: jsonAnswer('Revoked, with proof', certificateSchema),
      202: jsonAnswer('Being revoked, until it is proven', certificateSchema),
    },
  },
  { access: 'admin', area: 'people', fails: ['not_found', 'conflict', 'invalid', 'upstream', 'unavailable'] },
);

/**
 * POST /api/ops/certs/{file}/revoke: revokes a certificate. 200 says that it is proven; 202 that it
 * goes on. Adds the route of this file.
 */
export function certRevocationFunction(app: App, deps: Deps): void {
  app.openapi(revocationRoute, async function revokeOne(c) {
    const readable = anyUser(deps);
    const found = await findOrRemembered(readable, c.req.valid('param').file);
    const revocation = await revokeCertificate(actingIn(c, deps), found.certificate);
    const shown = await viewAfterRevocation(readable, found.shown, revocation);
    c.header('Cache-Control', 'no-store');
    return shown.state === 'revoked' ? c.json(shown, 200) : c.json(shown, 202);
  });
}

// GET /api/ops/certs/{file}/download: a certificate with its key, as a file for a phone or a program.

import { actingIn } from '../shared/http/acting.ts';
import { attachmentAnswer } from '../shared/http/attachment.ts';
import { downloadAnswer, downloadQuery } from '../shared/http/certificate-requests.ts';
import { certificateParams } from '../shared/http/certificate-schemas.ts';
import type { Deps } from '../shared/http/deps.ts';
import type { App } from '../shared/http/env.ts';
import { apiRoute } from '../shared/http/route.ts';
import { downloadCertificate } from '../shared/verbs/download-certificate.ts';

const route = apiRoute(
  {
    method: 'get',
    path: '/api/ops/certs/{file}/download',
    summary: 'The certificate with its key: PKCS#12 (password atakatak), data package for ATAK or iTAK, or PEM',
    tags: ['certificates'],
    request: { params: certificateParams, query: downloadQuery },
    responses: { 200: downloadAnswer },
  },
  { access: 'admin', area: 'people', fails: ['not_found', 'conflict', 'invalid', 'upstream', 'unavailable'] },
);

/** Adds the route of this file. */
export function certDownloadsFunction(app: App, deps: Deps): void {
  app.openapi(route, async function downloadCert(c) {
    const { format, app: phone, compat } = c.req.valid('query');
    const { file } = c.req.valid('param');
    const wanted = { file, format, app: phone, legacy: compat === 'legacy' };
    return attachmentAnswer(c, await downloadCertificate(actingIn(c, deps), wanted));
  });
}

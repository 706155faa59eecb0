// POST /api/ops/certs/{file}/revoke: revokes a certificate. 200 says that it is proven; 202 that it goes on.

import { actingIn } from '../shared/http/acting.ts';
import { certificateParams, certificateSchema } from '../shared/http/certificate-schemas.ts';
import type { Deps } from '../shared/http/deps.ts';
import type { App } from '../shared/http/env.ts';
import { apiRoute, jsonAnswer } from '../shared/http/route.ts';
import { findAlsoWhileAway, whoeverItsUser } from '../shared/verbs/find-certificate.ts';
import { revokeCertificate } from '../shared/verbs/revoke-certificate.ts';
import { shownAfterRevocation } from '../shared/verbs/shown-revocation.ts';

const route = apiRoute(
  {
    method: 'post',
    path: '/api/ops/certs/{file}/revoke',
    summary: 'Revokes a certificate, and proves it',
    tags: ['certificates'],
    request: { params: certificateParams },
    responses: {
      200: jsonAnswer('It is revoked, which is proven', certificateSchema),
      202: jsonAnswer('It is being revoked, until that is proven', certificateSchema),
    },
  },
  { access: 'admin', area: 'people', fails: ['not_found', 'conflict', 'invalid', 'upstream', 'unavailable'] },
);

/** Adds the route of this file. */
export function certRevocationFunction(app: App, deps: Deps): void {
  app.openapi(route, async function revokeOne(c) {
    const readable = whoeverItsUser(deps);
    const found = await findAlsoWhileAway(readable, c.req.valid('param').file);
    const revocation = await revokeCertificate(actingIn(c, deps), found.certificate);
    const shown = await shownAfterRevocation(readable, found.shown, revocation);
    c.header('Cache-Control', 'no-store');
    return shown.state === 'revoked' ? c.json(shown, 200) : c.json(shown, 202);
  });
}

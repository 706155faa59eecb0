// What the functions of certificates take and give besides the certificate itself.

import { z } from '@hono/zod-openapi';
import { includeQuery, pageOf, pagingQuery } from '../listing.ts';

const time = z.iso.datetime();

/** How certificates look in answers, for every function that speaks of them. */
export const certificateSchema = z
  .object({
    file: z.string().openapi({ description: 'Its name in paths, which also accept its hash' }),
    username: z.string(),
    name: z.string().nullable().openapi({ description: 'Null for a certificate that a device enrolled' }),
    serial: z.string().openapi({ description: 'Lower-case hex' }),
    fingerprint: z.string().openapi({ description: 'SHA-256' }),
    issued_at: time,
    expires_at: time,
    effective_until: time.openapi({
      description: 'Expiry of the certificate or its user, or the revocation, whichever comes first',
    }),
    days_left: z.int(),
    state: z.enum(['active', 'expired', 'revoking', 'revoked', 'revocation_failed']),
    revoked_at: time.nullable(),
    downloadable: z.boolean(),
    client_uid: z.string(),
  })
  .openapi('Certificate');

/** In a path: the file of a certificate, or its hash. */
export const certificateParams = z.object({
  file: z.string().max(200).openapi({ description: 'The file of the certificate, or its SHA-256 hash' }),
});

export const certsError = z.string().optional().openapi({
  description:
    "Reason why the list is incomplete while the core is unavailable; it then contains only Holdfast's own records",
});

export const certificatePage = pageOf(certificateSchema, 'CertificatePage').extend({ certs_error: certsError });

export const readCertificateSchema = certificateSchema.extend({ certs_error: certsError }).openapi('ReadCertificate');

export const issuedCertificateSchema = certificateSchema
  .extend({
    p12_base64: z
      .string()
      .optional()
      .openapi({ description: 'Only when keys are not kept: the bundle, which is never shown again' }),
  })
  .openapi('IssuedCertificate');

/** Rules beyond the length are those of the verb. */
export const certificateName = z.string().max(1000).openapi({ pattern: '^[A-Za-z0-9._-]{1,64}$' });

/** The query parameters that choose among certificates. */
export function certificateQuery() {
  return {
    status: includeQuery(['active', 'revoked', 'expired']).openapi({
      description: 'revoked: includes certificates being revoked',
    }),
    ...pagingQuery(),
  };
}

/** The query parameters of a download. */
export const downloadQuery = z.object({
  format: z.enum(['p12', 'data-package', 'pem']).default('p12'),
  app: z.enum(['atak', 'itak']).optional().openapi({ description: 'Format of the data package; default: atak' }),
  compat: z
    .enum(['legacy'])
    .optional()
    .openapi({ description: 'PKCS#12 for ATAK versions that refuse the usual format' }),
});

/** The answer of a download. */
export const downloadAnswer = {
  description: 'The file to save',
  content: {
    'application/x-pkcs12': { schema: binary() },
    'application/zip': { schema: binary() },
    'application/x-pem-file': { schema: z.string() },
  },
};

function binary() {
  return z.string().openapi({ format: 'binary' });
}

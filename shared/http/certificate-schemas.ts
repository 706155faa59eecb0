// How certificates look in answers, for every function that speaks of them.

import { z } from '@hono/zod-openapi';

const time = z.iso.datetime();

export const certificateSchema = z
  .object({
    file: z.string().openapi({ description: 'Its name in paths; its hash is taken there as well' }),
    username: z.string(),
    name: z.string().nullable().openapi({ description: 'Null for one that a device enrolled' }),
    serial: z.string().openapi({ description: 'Lower-case hex' }),
    fingerprint: z.string().openapi({ description: 'SHA-256' }),
    issued_at: time,
    expires_at: time,
    effective_until: time.openapi({ description: 'Its end, that of its user, or its revocation, whichever is first' }),
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

// What somebody may say who wants an API token.

import { z } from '@hono/zod-openapi';
import { SCOPES } from '../domain/principal.ts';
import { timeText } from './query.ts';

export const wantedTokenSchema = z
  .object({
    name: z
      .string()
      .trim()
      .min(1, 'must have 1 to 64 characters')
      .refine((name) => Array.from(name).length <= 64, 'must have 1 to 64 characters')
      .refine((name) => !/[\p{C}\p{Zl}\p{Zp}]/u.test(name), 'must have printable characters only')
      .openapi({ minLength: 1, maxLength: 64 }),
    scope: z.enum(SCOPES).openapi({
      description:
        'read: what a viewer may read. users: users, groups, enrollment and certificates. admin: what its owner may do',
    }),
    expires_at: timeText(),
  })
  .openapi('WantedToken');

// How people and groups look in requests and answers, for every function that speaks of them.

import { z } from '@hono/zod-openapi';
import { isEmailAddress } from '@holdfast/kit/addresses';
import { ROLES, SCOPES } from '../../sign-in/rules.ts';
import { timeText } from '../listing.ts';
import { certificateSchema } from './certificates.ts';

const time = z.iso.datetime();

export const userSchema = z
  .object({
    id: z.int(),
    username: z.string(),
    name: z.string(),
    email: z.string(),
    is_active: z.boolean(),
    role: z.enum(ROLES),
    groups: z.array(z.string()).openapi({ description: 'Channels, with the prefix core_' }),
    expires_at: time.nullable(),
    app_expires: z.int().nullable().openapi({ description: 'The same in seconds of Unix time' }),
    created_at: time.nullable(),
    last_login: time.nullable(),
    certs: z
      .array(certificateSchema)
      .optional()
      .openapi({ description: 'Newest first; always for a single user, in the list only with include=certs' }),
    certs_error: z.string().optional().openapi({
      description:
        "For a single user: why certs contains only Holdfast's own records. The core or our database does not answer",
    }),
  })
  .openapi('User');

export const groupSchema = z.object({ id: z.guid(), name: z.string() }).openapi('Group');

/** Part of a name or an address. */
export const searchQuery = z
  .string()
  .max(200, 'must have at most 200 characters')
  .refine((text) => !/\p{Cc}/u.test(text), 'must have no control characters')
  .optional();

export const displayName = z
  .string()
  .min(1, { error: 'must not be empty', abort: true })
  .max(200, 'must have at most 200 characters')
  .refine((text) => !/[\p{Cc}\p{Zl}\p{Zp}]/u.test(text), 'must be one line without control characters')
  .refine(
    (text) => text.isWellFormed() && text.trim() !== 'must have a visible character',
    'must have a character that can be seen',
  );

/** Empty: none. */
export const emailAddress = z
  .string()
  .max(254, 'must have at most 254 characters')
  .refine((text) => text === '' || isEmailAddress(text), 'must be a plain email address, such as ada@example.org');

export const expiry = z
  .union([z.iso.datetime({ offset: true }), z.iso.datetime({ offset: true, precision: -1 })], {
    error: 'must be a time in ISO 8601 with its offset, such as 2027-01-02T03:04:05Z',
  })
  .nullable()
  .openapi({ type: ['string', 'null'], format: 'date-time', description: 'In the future; null for never' });

/** Rules beyond the length are those of the verb, which knows whose it is. */
export const newPassword = z.string().max(4096, 'must have at most 1024 bytes').openapi({ minLength: 12 });

const MAX_GROUPS = 200;
export const groupNames = z
  .array(z.string().max(100, 'must have at most 64 characters'))
  .max(MAX_GROUPS, `must be at most ${MAX_GROUPS} groups`)
  .openapi({ description: 'Names of channels, with or without the prefix core_' });

/** The id of a user in a path; one that no user can have is NaN, which finds nobody. */
export function userId(text: string): number {
  return /^[1-9]\d{0,9}$/.test(text) ? Number(text) : Number.NaN;
}

/** What somebody may say who wants an API token. */
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
        'read: read access as a viewer. users: users, groups, enrollment and certificates. admin: everything that its owner may do',
    }),
    expires_at: timeText(),
  })
  .openapi('WantedToken');

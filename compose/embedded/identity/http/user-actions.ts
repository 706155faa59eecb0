// What else is done with users: passwords, accounts of programs, the caller itself, paths.

import { z } from 'zod';
import { newKey } from '../keys.ts';
import { hashPassword, LONGEST_PASSWORD_BYTES, readPasswordHash } from '../password-hash.ts';
import type { IdentityApiOptions, IdentityContext, IdentityRoute } from './route.ts';
import { readBody, timeSchema } from './body.ts';
import { queryOf } from './query.ts';
import { notFound, Refused } from './refused.ts';
import { shownSelf } from './shown.ts';
import { administers, seesEverything } from './sign-in.ts';
import { pkOf, usernameSchema } from './users.ts';

/** Not trimmed: what is typed at sign-in is not, either. */
const passwordSchema = z
  .string()
  .refine((value) => value.trim() !== '', 'This field may not be blank.')
  .refine((value) => value.isWellFormed(), 'Not a valid string.')
  .refine(
    (value) => Buffer.byteLength(value) <= LONGEST_PASSWORD_BYTES,
    `Ensure this field has no more than ${LONGEST_PASSWORD_BYTES} bytes.`,
  );

const hashSchema = z
  .string()
  .refine((value) => value.trim() !== '', 'This field may not be blank.')
  .refine(
    (value) => value.length <= 512 && readPasswordHash(value) !== undefined,
    'Not a password hash of a known form (argon2id, pbkdf2_sha256) with acceptable costs.',
  );

const serviceAccountSchema = z.object({
  name: usernameSchema,
  create_group: z.boolean().default(false),
  expiring: z.boolean().default(true),
  expires: timeSchema.optional(),
});
const SERVICE_ACCOUNT_DAYS = 360;

export function userActionRoutes({ store, now }: IdentityApiOptions): IdentityRoute[] {
  async function setPassword(c: IdentityContext): Promise<Response> {
    seesEverything(c.get('caller'));
    const { password } = await readBody(c, z.object({ password: passwordSchema }));
    const pk = pkOf(c);
    if ((await store.accounts.get(pk)) === undefined) throw notFound();
    const hash = await store.line.run({ standing: 'own' }, () => hashPassword(password));
    if (hash === undefined) throw new Refused(503, { detail: 'Too many passwords are being checked.' });
    return keepHash(c, pk, hash);
  }

  async function setPasswordHash(c: IdentityContext): Promise<Response> {
    seesEverything(c.get('caller'));
    const { password } = await readBody(c, z.object({ password: hashSchema }));
    return keepHash(c, pkOf(c), password);
  }

  async function keepHash(c: IdentityContext, pk: number, hash: string): Promise<Response> {
    if (!(await store.accounts.setPasswordHash(pk, hash, now()))) throw notFound();
    return c.body(null, 204);
  }

  async function createServiceAccount(c: IdentityContext): Promise<Response> {
    administers(c.get('caller'));
    const given = await readBody(c, serviceAccountSchema);
    const at = now();
    const expires = given.expires ?? new Date(at.getTime() + SERVICE_ACCOUNT_DAYS * 86_400_000);
    const key = newKey();
    const account = { name: given.name, createGroup: given.create_group, expires, expiring: given.expiring };
    const { pk, username, groupUuid } = await store.serviceAccounts.create(account, key, at);
    const group = groupUuid === undefined ? {} : { group_pk: groupUuid };
    const made = { username, token: key, user_uid: store.keys.uid(pk), user_pk: pk, ...group };
    return c.json(made, 200, { 'cache-control': 'no-store' });
  }

  return [
    { path: '/core/users/:pk{[0-9]+}/set_password/', handlers: { POST: setPassword } },
    { path: '/core/users/:pk{[0-9]+}/set_password_hash/', handlers: { POST: setPasswordHash } },
    { path: '/core/users/service_account/', handlers: { POST: createServiceAccount } },
    {
      path: '/core/users/me/',
      handlers: {
        GET: (c) => {
          const user = shownSelf(c.get('caller'), store.keys);
          return c.json({ user, users: [user] });
        },
      },
    },
    {
      path: '/core/users/paths/',
      handlers: {
        GET: async function listPaths(c) {
          administers(c.get('caller'));
          return c.json({ paths: await store.accounts.paths(queryOf(c).text('search') ?? '') });
        },
      },
    },
  ];
}

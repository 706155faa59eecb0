// Serves /core/users/: list, create, read, change, delete.

import { z } from 'zod';
import { ACCOUNT_TYPES, type StoredAccount } from '../store/account-rows.ts';
import type { AccountChange } from '../store/accounts.ts';
import {
  administers,
  attributesSchema,
  filledText,
  HIGHEST_PK,
  type IdentityApiOptions,
  type IdentityContext,
  type IdentityRoute,
  notFound,
  readJson,
  seesEverything,
  text,
  UUID,
} from './body.ts';
import { envelope, queryOf } from './query.ts';
import { toUserView } from './resource-views.ts';

const MAX_USERNAME_LENGTH = 150;
export const usernameSchema = filledText(MAX_USERNAME_LENGTH);

const emailSchema = text(254).refine(
  (value) => value === '' || /^[^\s@]+@(?:localhost|[^\s@.]+(?:\.[^\s@.]+)+)$/u.test(value),
  'Enter a valid email address.',
);

const pathSchema = filledText(500)
  .refine((path) => !path.startsWith('/') && !path.endsWith('/'), 'No leading or trailing slashes allowed.')
  .refine((path) => !path.includes('//'), 'No empty segments in user path allowed.');

const typeSchema = z
  .enum(ACCOUNT_TYPES)
  .refine((type) => type !== 'internal_service_account', 'Setting a user to internal service account is not allowed.');

const uuidSchema = z
  .string()
  .refine((value) => UUID.test(value), { error: ({ input }) => `“${String(input)}” is not a valid UUID.` });

const fields = {
  username: usernameSchema,
  name: text(1000),
  email: emailSchema.optional(),
  is_active: z.boolean().optional(),
  path: pathSchema.optional(),
  type: typeSchema.optional(),
  attributes: attributesSchema.optional(),
  groups: z.array(uuidSchema).max(1000).optional(),
  roles: z
    .array(z.unknown())
    .max(0, { error: () => 'Roles are not supported.' })
    .optional(),
};
const wholeSchema = z.object(fields);
const partSchema = wholeSchema.partial();
type Given = z.infer<typeof partSchema>;

export function userRoutes({ store, now }: IdentityApiOptions): IdentityRoute[] {
  async function listUsers(c: IdentityContext): Promise<Response> {
    administers(c.get('caller'));
    const query = queryOf(c);
    const paging = query.paging();
    const filter = {
      search: query.text('search'),
      username: query.text('username'),
      email: query.text('email'),
      name: query.text('name'),
      isActive: query.flag('is_active'),
      isSuperuser: query.flag('is_superuser'),
      uuid: query.uuid('uuid'),
      path: query.text('path'),
      pathStart: query.text('path_startswith'),
      types: query.choices('type', ACCOUNT_TYPES),
      groupNames: query.texts('groups_by_name'),
      groupUuids: query.uuids('groups_by_pk'),
      joined: query.span('date_joined'),
      updated: query.span('last_updated'),
      login: { ...query.span('last_login'), isNull: query.flag('last_login__isnull') },
      attributes: query.attributes(),
    };
    const withGroups = query.flag('include_groups') ?? true;
    const found = await store.accounts.list(filter, paging);
    return c.json(envelope(found, paging, (account) => toUserView(account, store.keys, withGroups)));
  }

  async function createUser(c: IdentityContext): Promise<Response> {
    administers(c.get('caller'));
    const given = await readJson(c, wholeSchema);
    const { email = '', is_active: isActive = true, path = 'users', type = 'internal', attributes = {} } = given;
    const values = { username: given.username, name: given.name, email, isActive, path, type, attributes };
    const account = await store.accounts.create({ ...values, groups: given.groups }, now());
    return c.json(toUserView(account, store.keys), 201);
  }

  const change = (schema: z.ZodType<Given>) =>
    async function changeUser(c: IdentityContext): Promise<Response> {
      seesEverything(c.get('caller'));
      const account = await store.accounts.change(pkOf(c), changeIn(await readJson(c, schema)), now());
      return c.json(toUserView(existing(account), store.keys));
    };

  return [
    { path: '/core/users/', handlers: { GET: listUsers, POST: createUser } },
    {
      path: '/core/users/:pk{[0-9]+}/',
      handlers: {
        GET: async function readUser(c) {
          seesEverything(c.get('caller'));
          return c.json(toUserView(existing(await store.accounts.get(pkOf(c))), store.keys));
        },
        PUT: change(wholeSchema),
        PATCH: change(partSchema),
        DELETE: async function deleteUser(c) {
          seesEverything(c.get('caller'));
          if (!(await store.accounts.delete(pkOf(c)))) throw notFound();
          return c.body(null, 204);
        },
      },
    },
  ];
}

function changeIn({
  username,
  name,
  email,
  is_active: isActive,
  path,
  type,
  attributes,
  groups,
}: Given): AccountChange {
  return { username, name, email, isActive, path, type, attributes, groups };
}

/** The pk in the path; one that no account can have is 404. */
export function pkOf(c: IdentityContext): number {
  const pk = Number(c.req.param('pk'));
  if (pk > HIGHEST_PK) throw notFound();
  return pk;
}

export function existing(account: StoredAccount | undefined): StoredAccount {
  if (account === undefined) throw notFound();
  return account;
}

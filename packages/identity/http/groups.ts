// Serves /core/groups/: list, create, read, change, delete, members.

import { z } from 'zod';
import type { GroupChange, StoredGroup } from '../store/groups.ts';
import {
  administers,
  attributesSchema,
  filledText,
  type IdentityApiOptions,
  type IdentityContext,
  type IdentityRoute,
  notFound,
  pkSchema,
  readJson,
  seesEverything,
  UUID,
} from './body.ts';
import { envelope, queryOf } from './query.ts';
import { toGroupView } from './resource-views.ts';

const wholeSchema = z.object({
  name: filledText(250),
  is_superuser: z.boolean().optional(),
  attributes: attributesSchema.optional(),
  users: z.array(pkSchema).optional(),
  parents: z
    .array(z.unknown())
    .max(0, { error: () => 'Nested groups are not supported.' })
    .optional(),
  roles: z
    .array(z.unknown())
    .max(0, { error: () => 'Roles are not supported.' })
    .optional(),
});
const partSchema = wholeSchema.partial();
type Given = z.infer<typeof partSchema>;

const memberSchema = z.object({ pk: pkSchema });

export function groupRoutes({ store, now }: IdentityApiOptions): IdentityRoute[] {
  async function listGroups(c: IdentityContext): Promise<Response> {
    administers(c.get('caller'));
    const query = queryOf(c);
    const paging = query.paging();
    const filter = {
      search: query.text('search'),
      name: query.text('name'),
      isSuperuser: query.flag('is_superuser'),
      memberNames: query.texts('members_by_username'),
      memberPks: query.pks('members_by_pk'),
      attributes: query.attributes(),
    };
    const found = await store.groups.list(filter, query.flag('include_users') ?? true, paging);
    return c.json(envelope(found, paging, (group) => toGroupView(group, store.keys)));
  }

  async function createGroup(c: IdentityContext): Promise<Response> {
    administers(c.get('caller'));
    const { name, is_superuser: isSuperuser = false, attributes = {}, users } = await readJson(c, wholeSchema);
    const group = await store.groups.create({ name, isSuperuser, attributes, users }, now());
    return c.json(toGroupView(group, store.keys), 201);
  }

  const change = (schema: z.ZodType<Given>) =>
    async function changeGroup(c: IdentityContext): Promise<Response> {
      seesEverything(c.get('caller'));
      const { name, is_superuser: isSuperuser, attributes, users } = await readJson(c, schema);
      const wanted: GroupChange = { name, isSuperuser, attributes, users };
      return c.json(toGroupView(existing(await store.groups.change(uuidOf(c), wanted, now())), store.keys));
    };

  const changeMember = (act: (uuid: string, pk: number) => Promise<boolean>) =>
    async function changeMembership(c: IdentityContext): Promise<Response> {
      seesEverything(c.get('caller'));
      const { pk } = await readJson(c, memberSchema);
      if (!(await act(uuidOf(c), pk))) throw notFound();
      return c.body(null, 204);
    };

  return [
    { path: '/core/groups/', handlers: { GET: listGroups, POST: createGroup } },
    {
      path: '/core/groups/:uuid/',
      handlers: {
        GET: async function readGroup(c) {
          seesEverything(c.get('caller'));
          const withMembers = queryOf(c).flag('include_users') ?? true;
          return c.json(toGroupView(existing(await store.groups.get(uuidOf(c), withMembers)), store.keys));
        },
        PUT: change(wholeSchema),
        PATCH: change(partSchema),
        DELETE: async function deleteGroup(c) {
          seesEverything(c.get('caller'));
          if (!(await store.groups.delete(uuidOf(c)))) throw notFound();
          return c.body(null, 204);
        },
      },
    },
    {
      path: '/core/groups/:uuid/add_user/',
      handlers: { POST: changeMember((uuid, pk) => store.groups.addMember(uuid, pk)) },
    },
    {
      path: '/core/groups/:uuid/remove_user/',
      handlers: { POST: changeMember((uuid, pk) => store.groups.removeMember(uuid, pk)) },
    },
  ];
}

function uuidOf(c: IdentityContext): string {
  const uuid = c.req.param('uuid') ?? '';
  if (!UUID.test(uuid)) throw notFound();
  return uuid;
}

function existing(group: StoredGroup | undefined): StoredGroup {
  if (group === undefined) throw notFound();
  return group;
}

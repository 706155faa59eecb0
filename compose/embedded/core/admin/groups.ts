// /Marti/api/groups: what devices ask of their groups.

import { CoreFault, wrapped } from '../http/answers.ts';
import type { AdminApiOptions, AdminContext, AdminRoute } from './route.ts';
import { demanded, invalid } from './body.ts';
import { GROUP_TYPE, groupsOf, rowsOf, shownGroup } from './own-groups.ts';
import { isAdmin } from './roles.ts';

const BASE = '/Marti/api/groups';

export function groupRoutes(options: AdminApiOptions): AdminRoute[] {
  const { nodeId, people } = options;

  async function listGroups(c: AdminContext): Promise<Response> {
    return wrapped(GROUP_TYPE, (await groupsOf(c.env.caller, options)).map(shownGroup), nodeId);
  }

  async function readGroup(c: AdminContext): Promise<Response> {
    const name = c.req.param('name') ?? '';
    const direction = c.req.param('direction') ?? '';
    if (direction !== 'IN' && direction !== 'OUT') throw invalid(`the direction must be IN or OUT, not "${direction}"`);
    const { caller } = c.env;
    const own = await groupsOf(caller, options);
    const row = own.find((each) => each.group.name === name && (each.direction === direction || isAdmin(caller)));
    if (row !== undefined) return wrapped(GROUP_TYPE, shownGroup({ ...row, direction }), nodeId);
    throw new CoreFault('not found', `There is no group ${name} with the direction ${direction}.`);
  }

  async function listGroupsOfUser(c: AdminContext): Promise<Response> {
    const username = demanded(c, 'username');
    const memberships = await people.find(username);
    if (memberships === undefined) throw new CoreFault('not found', `There is no user ${username}.`);
    return wrapped(GROUP_TYPE, (await rowsOf(username, memberships, options, true)).map(shownGroup), nodeId);
  }

  return [
    { path: `${BASE}/all`, handlers: { GET: listGroups } },
    {
      path: `${BASE}/groupCacheEnabled`,
      handlers: { GET: () => wrapped('java.lang.Boolean', true, nodeId) },
    },
    { path: `${BASE}/user`, handlers: { GET: listGroupsOfUser } },
    { path: `${BASE}/:name/:direction`, handlers: { GET: readGroup } },
  ];
}

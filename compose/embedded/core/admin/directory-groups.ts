// The groups as the directory has them: /Marti/api/groups?groupNameFilter=, their members, and the prefix of their names.

import { ADMIN_ROLE_GROUP, nameKey } from '../../../../shared/domain/names.ts';
import { wrapped } from '../http/answers.ts';
import type { DirectoryGroup } from '../parts.ts';
import type { AdminApiOptions, AdminContext, AdminRoute } from './route.ts';

export function directoryGroupRoutes({ directory, groupPrefix, nodeId }: AdminApiOptions): AdminRoute[] {
  const start = nameKey(groupPrefix);

  async function found(c: AdminContext): Promise<DirectoryGroup[]> {
    const groups = await directory.groups(c.req.query('groupNameFilter') ?? '');
    const admins = nameKey(ADMIN_ROLE_GROUP);
    return groups.filter(({ name }) => nameKey(name).startsWith(start) && nameKey(name) !== admins);
  }

  return [
    {
      path: '/Marti/api/groups',
      handlers: {
        GET: async function listDirectoryGroups(c) {
          const shown = (await found(c)).map(({ name: cn, dn, description }) => ({ cn, dn, description }));
          return wrapped('com.bbn.marti.remote.LdapGroup', shown, nodeId);
        },
      },
    },
    {
      path: '/Marti/api/groups/members',
      handlers: {
        GET: async function countMembers(c) {
          const names = (await found(c)).flatMap(({ members }) => members.map(nameKey));
          return wrapped('java.lang.Integer', new Set(names).size, nodeId);
        },
      },
    },
    {
      path: '/Marti/api/groupprefix',
      handlers: { GET: () => wrapped('java.lang.String', groupPrefix, nodeId) },
    },
  ];
}

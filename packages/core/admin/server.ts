// What the server says of itself and of whoever asks: version, name, home, roles, counts, and the profile of a device.

import { join } from 'node:path';
import { readOrMakeRandom } from '@holdfast/kit/files';
import { groupsOf } from '../groups/own-groups.ts';
import { json, plainText, wrapped } from '../http/answers.ts';
import { deviceProfile } from '../http/device-profile.ts';
import { type AdminContext, type AdminRoute, isAdmin } from '../http/route.ts';
import type { AdminApiOptions } from './options.ts';

/** The release whose API this is; clients know the form. The vendor numbers its builds from 1. */
export const API_RELEASE = { major: 5, minor: 7, patch: 0, branch: 'RELEASE' } as const;
export const CORE_VERSION = `${API_RELEASE.major}.${API_RELEASE.minor}-${API_RELEASE.branch}-${API_RELEASE.patch}`;

export function serverRoutes(options: AdminApiOptions): AdminRoute[] {
  const { nodeId, hostname, database } = options;

  /** Whoever may send into no group only reads. */
  async function listRoles(c: AdminContext): Promise<Response> {
    const { caller } = c.env;
    if (isAdmin(caller)) return json([caller.role]);
    const sends = (await groupsOf(caller, options)).some(({ direction }) => direction === 'IN');
    return json([...new Set(sends ? [caller.role] : [caller.role, 'ROLE_READONLY'])]);
  }

  const connectionProfile = { GET: (c: AdminContext) => deviceProfile('Connection', c.req.raw) };
  const noProfile = { GET: () => new Response(null, { status: 204 }) };

  return [
    { path: '/Marti/api/version', handlers: { GET: () => plainText(CORE_VERSION) } },
    { path: '/Marti/api/version/info', handlers: { GET: () => json({ ...API_RELEASE, variant: 'embedded' }) } },
    {
      path: '/Marti/api/version/config',
      handlers: { GET: () => wrapped('ServerConfig', { version: CORE_VERSION, api: '3', hostname }, nodeId) },
    },
    { path: '/Marti/api/node/id', handlers: { GET: () => plainText(nodeId) } },
    // There are no pages here: this is what everybody may open.
    { path: '/Marti/api/home', handlers: { GET: () => plainText('/Marti/api/version') } },
    { path: '/Marti/api/util/isAdmin', handlers: { GET: (c) => json(isAdmin(c.env.caller)) } },
    { path: '/Marti/api/util/user/roles', handlers: { GET: listRoles } },
    { path: '/Marti/api/device/profile/connection', handlers: connectionProfile },
    { path: '/Marti/api/device/profile/tool/:tool', handlers: noProfile },
    { path: '/Marti/api/database/cotCount', handlers: { GET: async () => json(await database.cotCount()) } },
  ];
}

/**
 * The name of this server in every wrapped answer. 32 hex digits from `{data_dir}/node-id`, which is made when it is
 * missing. Throws a StackError that names the file.
 */
export function readNodeId(dataDir: string): string {
  return readOrMakeRandom({
    path: join(dataDir, 'node-id'),
    bytes: 16,
    remedy: 'put the old number back; without one, delete the file, and devices take this for a new server',
  });
}

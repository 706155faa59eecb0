// Authorizes API requests: a few paths are open to every certificate, all others only to
// administrators.

import { PageFault } from '../http/answers.ts';
import { isAdmin } from '../http/route.ts';
import type { CoreCaller } from '../model/parts.ts';

/** Method and path as it is routed. */
export const OPEN_TO_ALL: ReadonlySet<string> = new Set([
  'GET /Marti/api/version',
  'GET /Marti/api/version/info',
  'GET /Marti/api/version/config',
  'GET /Marti/api/node/id',
  'GET /Marti/api/home',
  'GET /Marti/api/util/user/roles',
  'GET /Marti/api/groups/all',
  'GET /Marti/api/groups/groupCacheEnabled',
  'PUT /Marti/api/groups/active',
  'PUT /Marti/api/groups/activebits',
  'GET /Marti/api/groups/:name/:direction',
  'GET /Marti/api/clientEndPoints',
  'GET /Marti/api/contacts/all',
  'GET /Marti/api/contacts/all/lite',
  'GET /Marti/api/contacts/all/full',
  'GET /Marti/api/subscriptions/all',
  'GET /Marti/api/subscription/:uid',
  'GET /Marti/api/device/profile/connection',
  'GET /Marti/api/device/profile/tool/:tool',
  'GET /Marti/sync/search',
  'GET /Marti/api/sync/search',
  'GET /Marti/sync/missionquery',
  'GET /Marti/sync/content',
  'GET /Marti/api/files/metadata',
  'GET /Marti/api/files/metadata/count',
  'GET /Marti/api/files/:hash',
  'GET /Marti/api/pagedmissions',
  'GET /Marti/api/missioncount',
  'GET /Marti/api/missions',
  'GET /Marti/api/missions/all/invitations',
  'GET /Marti/api/missions/invitations',
  'GET /Marti/api/missions/guid/:guid',
  'GET /Marti/api/missions/:name',
  'GET /Marti/api/missions/guid/:guid/changes',
  'GET /Marti/api/missions/:name/changes',
  'GET /Marti/api/missions/guid/:guid/cot',
  'GET /Marti/api/missions/:name/cot',
  'GET /Marti/api/missions/guid/:guid/subscription',
  'GET /Marti/api/missions/:name/subscription',
  'GET /Marti/api/missions/guid/:guid/subscriptions/roles',
  'GET /Marti/api/missions/:name/subscriptions/roles',
  'GET /Marti/api/missions/guid/:guid/subscriptions',
  'GET /Marti/api/missions/:name/subscriptions',
  'GET /Marti/api/missions/guid/:guid/role',
  'GET /Marti/api/missions/:name/role',
  'GET /Marti/api/missions/guid/:guid/contacts',
  'GET /Marti/api/missions/:name/contacts',
  'GET /Marti/api/missions/guid/:guid/invitations',
  'GET /Marti/api/missions/:name/invitations',
  'PUT /Marti/api/missions/guid/:guid/subscription',
  'PUT /Marti/api/missions/:name/subscription',
  'DELETE /Marti/api/missions/guid/:guid/subscription',
  'DELETE /Marti/api/missions/:name/subscription',
]);

/** Open to every certificate but those that may only read. */
export const OPEN_TO_WRITERS: ReadonlySet<string> = new Set([
  'POST /Marti/sync/upload',
  'POST /Marti/sync/missionupload',
  'POST /Marti/sync/delete',
  'DELETE /Marti/sync/delete',
  'DELETE /Marti/api/files/:hash',
  'PUT /Marti/api/sync/metadata/:hash/:what',
  'DELETE /Marti/api/missions',
  'PUT /Marti/api/missions/:name',
  'POST /Marti/api/missions/:name',
  'DELETE /Marti/api/missions/:name',
  'PUT /Marti/api/missions/:name/keywords',
  'DELETE /Marti/api/missions/:name/keywords',
  'DELETE /Marti/api/missions/:name/keywords/:keyword',
  'PUT /Marti/api/missions/guid/:guid/contents',
  'PUT /Marti/api/missions/:name/contents',
  'DELETE /Marti/api/missions/guid/:guid/contents',
  'DELETE /Marti/api/missions/:name/contents',
  'PUT /Marti/api/missions/guid/:guid/role',
  'PUT /Marti/api/missions/:name/role',
]);

/** Throws the page of 403. `path` is the routed one; undefined where there is no route. */
export function requireRight(method: string, path: string | undefined, caller: CoreCaller): void {
  if (isAdmin(caller)) return;
  const place = `${method} ${path ?? ''}`;
  if (OPEN_TO_ALL.has(place)) return;
  if (OPEN_TO_WRITERS.has(place)) {
    if (caller.role !== 'ROLE_READONLY') return;
    throw new PageFault(403, 'This certificate is read-only.');
  }
  throw new PageFault(403, 'Only administrators may do this.');
}

/**
 * What an admin gets for a method that a path does not have. To delete what cannot be deleted is
 * forbidden to everybody.
 */
export function noSuchMethod(method: string, allowed: readonly string[]): PageFault {
  if (method === 'DELETE') return new PageFault(403, 'Nothing can be deleted at this address.');
  if (allowed.length === 0) return new PageFault(404, 'Nothing at this address.');
  const headers = { allow: allowed.join(', ').replace('GET', 'GET, HEAD') };
  return new PageFault(405, `Method ${method} is not allowed at this address.`, { headers });
}

// Who may ask what: a few paths are open to every certificate, all others are for admins.

import { PageFault } from '../http/answers.ts';
import type { CoreCaller } from '../parts.ts';
import { isAdmin } from './roles.ts';

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
]);

/** Throws the page of 403. `path` is the routed one; undefined where there is no route. */
export function requireRight(method: string, path: string | undefined, caller: CoreCaller): void {
  if (isAdmin(caller) || (path !== undefined && OPEN_TO_ALL.has(`${method} ${path}`))) return;
  throw new PageFault(403, 'This needs the right of an administrator.');
}

/** What an admin gets for a method that a path does not have. To delete what cannot be deleted is forbidden to everybody. */
export function noSuchMethod(method: string, allowed: readonly string[]): PageFault {
  if (method === 'DELETE') return new PageFault(403, 'Nothing can be deleted at this address.');
  if (allowed.length === 0) return new PageFault(404, 'There is nothing at this address.');
  const headers = { allow: allowed.join(', ').replace('GET', 'GET, HEAD') };
  return new PageFault(405, `The method ${method} is not known at this address.`, { headers });
}

// Serves the API of port 8443 (and of 8446 for web admins): certificates, groups, clients,
// retention, server state.

import { Hono } from 'hono';
import { z } from 'zod';
import { AppError, codeOf, messageOf } from '@holdfast/kit/app-error';
import type { Log } from '@holdfast/kit/log';
import { ADMIN_ROLE_GROUP, nameKey } from '@holdfast/kit/names';
import { isNoticeText } from '@holdfast/kit/text';
import { CatalogRoutes } from '../files/catalog-routes.ts';
import { ContentRoutes } from '../files/content-routes.ts';
import { UploadRoutes } from '../files/upload-routes.ts';
import { GROUP_TYPE, groupsOf, rowsOf, toGroupView } from '../groups/own-groups.ts';
import { CoreFault, faultResponse, isFromForeignSite, PageFault, pageResponse, wrapped } from '../http/answers.ts';
import {
  type AdminContext,
  type AdminEnv,
  type AdminRoute,
  demanded,
  invalid,
  isAdmin,
  type Method,
  METHODS,
  readJson,
} from '../http/route.ts';
import { exportRoutes } from '../history/export-routes.ts';
import { HistoryRoutes } from '../history/routes.ts';
import { missionRoutes } from '../missions/routes.ts';
import type { CoreCaller, CoreConnection, DirectoryGroup } from '../model/parts.ts';
import { ProfileRoutes } from '../profiles/routes.ts';
import { ReportRoutes } from '../reports/citrap.ts';
import { ErrorLogRoutes } from '../reports/error-logs.ts';
import { TrackRoutes } from '../reports/tracks.ts';
import { ProductRoutes } from '../services/products.ts';
import { streamServiceRoutes } from '../services/stream-services.ts';
import { VideoRoutes } from '../services/video.ts';
import { notice } from '../stream/server-events.ts';
import { CertificateRoutes } from './certificates.ts';
import { clientRoutes } from './clients.ts';
import { noSuchMethod, requireRight } from './gate.ts';
import { groupChangeRoutes } from './group-changes.ts';
import type { AdminApiOptions } from './options.ts';
import { retentionRoutes } from './retention.ts';
import { securityRoutes } from './security.ts';
import { Actuator, serverRoutes } from './server.ts';
import { SubscriptionRoutes } from './subscriptions.ts';

const BASE = '/Marti/api/groups';

export function groupRoutes(options: AdminApiOptions): AdminRoute[] {
  const { nodeId, people } = options;

  async function listGroups(c: AdminContext): Promise<Response> {
    return wrapped(GROUP_TYPE, (await groupsOf(c.env.caller, options)).map(toGroupView), nodeId);
  }

  async function readGroup(c: AdminContext): Promise<Response> {
    const name = c.req.param('name') ?? '';
    const direction = c.req.param('direction') ?? '';
    if (direction !== 'IN' && direction !== 'OUT') throw invalid(`the direction must be IN or OUT, not "${direction}"`);
    const { caller } = c.env;
    const own = await groupsOf(caller, options);
    const row = own.find((each) => each.group.name === name && (each.direction === direction || isAdmin(caller)));
    if (row !== undefined) return wrapped(GROUP_TYPE, toGroupView({ ...row, direction }), nodeId);
    throw new CoreFault('not found', `Group ${name} with direction ${direction} not found.`);
  }

  async function listGroupsOfUser(c: AdminContext): Promise<Response> {
    const username = demanded(c, 'username');
    const memberships = await people.find(username);
    if (memberships === undefined) throw new CoreFault('not found', `User ${username} not found.`);
    return wrapped(GROUP_TYPE, (await rowsOf(username, memberships, options, true)).map(toGroupView), nodeId);
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

/**
 * The groups as the directory has them: /Marti/api/groups?groupNameFilter=, their members, and the
 * prefix of their names.
 */
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

const APP_BASE = '/Marti/api/plugins/info';

/** /Marti/api/plugins: the embedded core has no plugins, and says so. */
export function pluginRoutes({ nodeId }: AdminApiOptions): AdminRoute[] {
  function refuseUnknown(c: AdminContext): never {
    throw invalid(`there is no plugin "${demanded(c, 'name')}"`);
  }

  return [
    {
      path: `${APP_BASE}/all`,
      handlers: { GET: () => wrapped('tak.server.plugins.PluginInfo', [], nodeId) },
    },
    {
      path: `${APP_BASE}/all/started`,
      handlers: {
        POST: function startAll() {
          throw invalid('there is no plugin');
        },
      },
    },
    ...['started', 'enabled', 'archive'].map((what) => ({
      path: `${APP_BASE}/${what}`,
      handlers: { POST: refuseUnknown },
    })),
  ];
}

const WANTED = 'must have 1 to 1000 characters, and no control characters but newline';
const noticeSchema = z.strictObject({ text: z.string().refine(isNoticeText, WANTED) });

/**
 * /Marti/api/stream/notices: a word of the operators to everybody who is connected. Of our own: a
 * release has no such call.
 */
export function noticeRoutes({ toEverybody, nodeId, now }: AdminApiOptions): AdminRoute[] {
  async function tell(c: AdminContext): Promise<Response> {
    const { text } = await readJson(c, noticeSchema);
    return wrapped('StreamNotice', { clients: toEverybody(notice(text, now())) }, nodeId);
  }

  return [{ path: '/Marti/api/stream/notices', handlers: { POST: tell } }];
}

/**
 * /Marti/api/tls/attempts: the last attempts to enroll on 8446, newest first. Of our own: a release
 * has no such call.
 */
export function enrollmentAttemptRoutes({ enrollmentAttempts, nodeId }: AdminApiOptions): AdminRoute[] {
  return [
    {
      path: '/Marti/api/tls/attempts',
      handlers: {
        GET: (c) => wrapped('EnrollmentAttempt', enrollmentAttempts.list(c.req.query('username')), nodeId),
      },
    },
  ];
}

const LOCK_NOT_AVAILABLE = '55P03';

export type AdminApi = (request: Request, connection: CoreConnection, caller: CoreCaller) => Promise<Response>;

/** Every path of the API, in the order in which they are looked for. */
export function adminRoutes(options: AdminApiOptions): AdminRoute[] {
  return [
    ...serverRoutes(options),
    ...securityRoutes(options),
    ...new CertificateRoutes(options).routes(),
    ...enrollmentAttemptRoutes(options),
    ...groupChangeRoutes(options),
    ...directoryGroupRoutes(options),
    ...groupRoutes(options),
    ...clientRoutes(options),
    ...new SubscriptionRoutes(options).routes(),
    ...noticeRoutes(options),
    ...missionRoutes(options),
    ...new HistoryRoutes(options).routes(),
    ...new ProfileRoutes(options).routes(),
    ...new ErrorLogRoutes(options).routes(),
    ...new ReportRoutes(options).routes(),
    ...exportRoutes(options),
    ...new TrackRoutes(options).routes(),
    ...retentionRoutes(options),
    ...new VideoRoutes(options).routes(),
    ...new ProductRoutes(options).routes(),
    ...streamServiceRoutes(options),
    ...pluginRoutes(options),
    ...new Actuator(options).routes(),
    ...new UploadRoutes(options).routes(),
    ...new CatalogRoutes(options).routes(),
    ...new ContentRoutes(options).routes(),
  ];
}

/**
 * @example
 * const admin = createAdminApi(options);
 * const response = await admin(request, connection, callerOf(connection.certificate, users));
 */
export function createAdminApi(options: AdminApiOptions): AdminApi {
  const { log } = options;
  const app = new Hono<AdminEnv>({ strict: false });

  function add({ path, handlers }: AdminRoute): void {
    const allowed = METHODS.filter((method) => handlers[method] !== undefined);
    app.all(path, async function dispatch(c) {
      const method = c.req.method === 'HEAD' ? 'GET' : c.req.method;
      requireRight(method, path, c.env.caller);
      const handler = METHODS.includes(method as Method) ? handlers[method as Method] : undefined;
      if (handler === undefined) throw noSuchMethod(method, allowed);
      return handler(c);
    });
  }

  for (const route of adminRoutes(options)) add(route);
  app.notFound((c) => {
    requireRight(c.req.method, undefined, c.env.caller);
    throw noSuchMethod(c.req.method, []);
  });
  app.onError((error, c) => answerTo(error, { method: c.req.method, path: c.req.path }, log));

  return async function answer(request, connection, caller) {
    const response = await answerGuarded(request, connection, caller);
    if (request.method !== 'GET' && request.method !== 'HEAD') {
      const { pathname: path } = new URL(request.url);
      const { username: user, by } = caller;
      log.info('core.request', { method: request.method, path, status: response.status, user, by });
    }
    return response;
  };

  async function answerGuarded(request: Request, connection: CoreConnection, caller: CoreCaller): Promise<Response> {
    if (isFromForeignSite(request, connection))
      return pageResponse(new PageFault(403, 'This request came from a page of another site.'));
    return app.fetch(request, { connection, caller });
  }
}

/**
 * What is away is a page of 503: the error of code 0 is a 404, which looks as if the thing that was
 * asked for did not exist.
 */
function answerTo(error: Error, place: { method: string; path: string }, log: Log): Response {
  if (error instanceof CoreFault) return faultResponse(error);
  if (error instanceof PageFault) return pageResponse(error);
  if (isUnavailable(error)) {
    log.warn('core.unavailable', { ...place, error: error.message });
    return pageResponse(new PageFault(503, 'A part of the server does not answer at the moment.'));
  }
  log.error('core.failed', { ...place, error: messageOf(error) });
  return pageResponse(new PageFault(500, 'The request failed. The server log has the reason.'));
}

/** A lock that was not to be had in time counts too: a table is being rewritten. */
function isUnavailable(error: Error): boolean {
  if (error instanceof AppError) return error.code === 'unavailable' || error.code === 'upstream';
  return codeOf(error) === LOCK_NOT_AVAILABLE;
}

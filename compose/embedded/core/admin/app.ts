// The API of port 8443 (and of 8446 for web-admins): certificates, groups, clients, retention, the state of the core.

import { Hono } from 'hono';
import { AppError } from '../../../../shared/domain/app-error.ts';
import { codeOf, messageOf } from '../../../../shared/domain/thrown.ts';
import type { Log } from '../../../../shared/ports/log.ts';
import { catalogRoutes } from '../files/catalog-routes.ts';
import { contentRoutes } from '../files/content-routes.ts';
import { uploadRoutes } from '../files/upload-routes.ts';
import { CoreFault, faultResponse, PageFault, pageResponse } from '../http/answers.ts';
import { isFromForeignSite } from '../http/foreign-site.ts';
import { missionRoutes } from '../missions/routes.ts';
import type { CoreCaller, CoreConnection } from '../parts.ts';
import { actuatorRoutes } from './actuator.ts';
import { certificateRoutes } from './certificates.ts';
import { clientRoutes } from './clients.ts';
import { directoryGroupRoutes } from './directory-groups.ts';
import { enrollmentAttemptRoutes } from './enrollment-attempts.ts';
import { noSuchMethod, requireRight } from './gate.ts';
import { groupChangeRoutes } from './group-changes.ts';
import { groupRoutes } from './groups.ts';
import { noticeRoutes } from './notices.ts';
import { pluginRoutes } from './plugins.ts';
import { retentionRoutes } from './retention.ts';
import { type AdminApiOptions, type AdminEnv, type AdminRoute, type Method, METHODS } from './route.ts';
import { serverRoutes } from './server.ts';
import { subscriptionRoutes } from './subscriptions.ts';

const LOCK_NOT_AVAILABLE = '55P03';

export type AdminApi = (request: Request, connection: CoreConnection, caller: CoreCaller) => Promise<Response>;

/** Every path of the API, in the order in which they are looked for. */
export function adminRoutes(options: AdminApiOptions): AdminRoute[] {
  const parts = [
    serverRoutes,
    certificateRoutes,
    enrollmentAttemptRoutes,
    groupChangeRoutes,
    directoryGroupRoutes,
    groupRoutes,
    clientRoutes,
    subscriptionRoutes,
    noticeRoutes,
    missionRoutes,
    retentionRoutes,
    pluginRoutes,
    actuatorRoutes,
    uploadRoutes,
    catalogRoutes,
    contentRoutes,
  ];
  return parts.flatMap((make) => make(options));
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
      return pageResponse(new PageFault(403, 'This request was caused by a page of another site.'));
    return app.fetch(request, { connection, caller });
  }
}

/** What is away is a page of 503: the error of code 0 is a 404, which looks as if the thing that was asked for did not exist. */
function answerTo(error: Error, place: { method: string; path: string }, log: Log): Response {
  if (error instanceof CoreFault) return faultResponse(error);
  if (error instanceof PageFault) return pageResponse(error);
  if (isAway(error)) {
    log.warn('core.unavailable', { ...place, error: error.message });
    return pageResponse(new PageFault(503, 'A part of the server does not answer at the moment.'));
  }
  log.error('core.failed', { ...place, error: messageOf(error) });
  return pageResponse(new PageFault(500, 'The request could not be answered.'));
}

/** A lock that was not to be had in time counts too: a table is being rewritten. */
function isAway(error: Error): boolean {
  if (error instanceof AppError) return error.code === 'unavailable' || error.code === 'upstream';
  return codeOf(error) === LOCK_NOT_AVAILABLE;
}

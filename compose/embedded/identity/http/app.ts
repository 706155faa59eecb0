// The provider's HTTP API: the part of the authentik API v3 that a stack client uses, under /api/v3.

import { type Context, Hono } from 'hono';
import { AppError } from '../../../../shared/domain/app-error.ts';
import { messageOf } from '../../../../shared/domain/thrown.ts';
import type { Log } from '../../../../shared/ports/log.ts';
import type { StoredAccount } from '../store/account-rows.ts';
import { AttributeQueryFault } from '../store/attribute-query.ts';
import { FieldRefusal } from '../store/database.ts';
import { groupRoutes } from './groups.ts';
import { Refused } from './refused.ts';
import { type IdentityApiOptions, type IdentityEnv, type IdentityRoute, type Method, METHODS } from './route.ts';
import { signIn } from './sign-in.ts';
import { systemRoutes } from './system.ts';
import { tokenActionRoutes } from './token-actions.ts';
import { tokenRoutes } from './tokens.ts';
import { userActionRoutes } from './user-actions.ts';
import { userRoutes } from './users.ts';

const BASE = '/api/v3';

/**
 * @example
 * const api = createIdentityApi({ store, now: () => new Date(), log, release: '2026.8.3' });
 * const response = await api.request('/api/v3/core/users/me/', { headers: { authorization: `Bearer ${key}` } });
 */
export function createIdentityApi(options: IdentityApiOptions): Hono<IdentityEnv> {
  const { store, now, log } = options;
  const app = new Hono<IdentityEnv>();
  app.use(async function logChanges(c, next) {
    await next();
    const { method, path } = c.req;
    if (method === 'GET' || method === 'HEAD' || method === 'OPTIONS') return;
    const caller = c.get('caller') as StoredAccount | undefined;
    log.info('identity.request', { method, path, status: c.res.status, user: caller?.username ?? null });
  });

  function add({ path, open = false, handlers }: IdentityRoute): void {
    const allowed = METHODS.filter((method) => handlers[method] !== undefined);
    app.all(BASE + path, async function dispatch(c) {
      if (!open) c.set('caller', await signIn(c.req.header('authorization'), store, now()));
      const method = c.req.method === 'HEAD' ? 'GET' : c.req.method;
      const handler = METHODS.includes(method as Method) ? handlers[method as Method] : undefined;
      if (handler === undefined) {
        throw new Refused(405, { detail: `Method "${method}" not allowed.` }, { allow: allowed.join(', ') });
      }
      return handler(c);
    });
    app.get((BASE + path).slice(0, -1), function addSlash(c) {
      const { pathname, search } = new URL(c.req.url);
      return c.redirect(`${pathname}/${search}`, 301);
    });
  }

  const routes = [systemRoutes, userActionRoutes, userRoutes, groupRoutes, tokenActionRoutes, tokenRoutes];
  for (const route of routes.flatMap((make) => make(options))) add(route);

  app.notFound((c) => c.json({ detail: 'Not found.' }, 404));
  app.onError((error, c) => answerTo(error, c, log));
  return app;
}

function answerTo(error: Error, c: Context, log: Log): Response {
  if (error instanceof Refused) {
    const { status, body, headers } = error;
    return body === undefined ? c.body(null, status, { ...headers }) : c.json(body, status, { ...headers });
  }
  if (error instanceof FieldRefusal) return c.json(error.fields, 400);
  if (error instanceof AttributeQueryFault) return c.json([error.message], 400);
  if (error instanceof AppError && error.code === 'unavailable') {
    log.warn('identity.unavailable', { path: c.req.path, error: error.message });
    return c.json({ detail: 'The service is not available at the moment.' }, 503);
  }
  log.error('identity.failed', { method: c.req.method, path: c.req.path, error: messageOf(error) });
  return c.json({ detail: 'Internal error.' }, 500);
}

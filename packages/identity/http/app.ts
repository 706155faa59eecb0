// Serves the part of the authentik API v3 that a stack client uses, under /api/v3.

import { type Context, Hono } from 'hono';
import { z } from 'zod';
import { AppError, messageOf } from '@holdfast/kit/app-error';
import type { Log } from '@holdfast/kit/log';
import { DAY_MS } from '@holdfast/kit/time';
import { RELEASE } from '@holdfast/kit/release';
import { newKey } from '../model/keys.ts';
import { hashPassword, MAX_PASSWORD_BYTES, readPasswordHash } from '../model/password-hash.ts';
import type { StoredAccount } from '../store/account-rows.ts';
import { AttributeQueryFault } from '../store/attribute-query.ts';
import { FieldRefusal } from '../store/database.ts';
import {
  administers,
  type IdentityApiOptions,
  type IdentityContext,
  type IdentityEnv,
  type IdentityRoute,
  type Method,
  METHODS,
  notFound,
  readJson,
  Refused,
  seesEverything,
  signIn,
  timeSchema,
} from './body.ts';
import { groupRoutes } from './groups.ts';
import { queryOf } from './query.ts';
import { toSelfView } from './resource-views.ts';
import { tokenOf, tokenRoutes } from './tokens.ts';
import { pkOf, usernameSchema, userRoutes } from './users.ts';

/** Not trimmed: what is typed at sign-in is not, either. */
const passwordSchema = z
  .string()
  .refine((value) => value.trim() !== '', 'This field may not be blank.')
  .refine((value) => value.isWellFormed(), 'Not a valid string.')
  .refine(
    (value) => Buffer.byteLength(value) <= MAX_PASSWORD_BYTES,
    `Ensure this field has no more than ${MAX_PASSWORD_BYTES} bytes.`,
  );

const hashSchema = z
  .string()
  .refine((value) => value.trim() !== '', 'This field may not be blank.')
  .refine(
    (value) => value.length <= 512 && readPasswordHash(value) !== undefined,
    'Not a password hash of a known form (argon2id, pbkdf2_sha256) with acceptable costs.',
  );

const serviceAccountSchema = z.object({
  name: usernameSchema,
  create_group: z.boolean().default(false),
  expiring: z.boolean().default(true),
  expires: timeSchema.optional(),
});
const SERVICE_ACCOUNT_DAYS = 360;

/** What else is done with users: passwords, accounts of programs, the caller itself, paths. */
export function userActionRoutes({ store, now }: IdentityApiOptions): IdentityRoute[] {
  async function setPassword(c: IdentityContext): Promise<Response> {
    seesEverything(c.get('caller'));
    const { password } = await readJson(c, z.object({ password: passwordSchema }));
    const pk = pkOf(c);
    if ((await store.accounts.get(pk)) === undefined) throw notFound();
    const hash = await store.line.run({ status: 'own' }, () => hashPassword(password));
    if (hash === undefined)
      throw new Refused(503, { detail: 'Too many password checks at once. Try again in a moment.' });
    return keepHash(c, pk, hash);
  }

  async function setPasswordHash(c: IdentityContext): Promise<Response> {
    seesEverything(c.get('caller'));
    const { password } = await readJson(c, z.object({ password: hashSchema }));
    return keepHash(c, pkOf(c), password);
  }

  async function keepHash(c: IdentityContext, pk: number, hash: string): Promise<Response> {
    if (!(await store.accounts.setPasswordHash(pk, hash, now()))) throw notFound();
    return c.body(null, 204);
  }

  async function createServiceAccount(c: IdentityContext): Promise<Response> {
    administers(c.get('caller'));
    const given = await readJson(c, serviceAccountSchema);
    const at = now();
    const expires = given.expires ?? new Date(at.getTime() + SERVICE_ACCOUNT_DAYS * DAY_MS);
    const key = newKey();
    const account = { name: given.name, createGroup: given.create_group, expires, expiring: given.expiring };
    const { pk, username, groupUuid } = await store.serviceAccounts.create(account, key, at);
    const group = groupUuid === undefined ? {} : { group_pk: groupUuid };
    const made = { username, token: key, user_uid: store.keys.uid(pk), user_pk: pk, ...group };
    return c.json(made, 200, { 'cache-control': 'no-store' });
  }

  return [
    { path: '/core/users/:pk{[0-9]+}/set_password/', handlers: { POST: setPassword } },
    { path: '/core/users/:pk{[0-9]+}/set_password_hash/', handlers: { POST: setPasswordHash } },
    { path: '/core/users/service_account/', handlers: { POST: createServiceAccount } },
    {
      path: '/core/users/me/',
      handlers: {
        GET: (c) => {
          const user = toSelfView(c.get('caller'), store.keys);
          return c.json({ user, users: [user] });
        },
      },
    },
    {
      path: '/core/users/paths/',
      handlers: {
        GET: async function listPaths(c) {
          administers(c.get('caller'));
          return c.json({ paths: await store.accounts.paths(queryOf(c).text('search') ?? '') });
        },
      },
    },
  ];
}

/** Keys are compared without a slow hash, so they must not be guessable. */
const SHORTEST_KEY = 20;
const MAX_KEY_LENGTH = 1024;
const keySchema = z.object({ key: z.string() });

/** The keys of tokens: looked at, set. */
export function tokenActionRoutes({ store, log }: IdentityApiOptions): IdentityRoute[] {
  return [
    {
      path: '/core/tokens/:identifier/view_key/',
      handlers: {
        GET: async function viewKey(c) {
          const { uuid, identifier } = await tokenOf(c, store);
          const found = await store.tokens.key(uuid);
          if (found === undefined) throw notFound();
          if (found === 'unreadable') {
            throw new Refused(500, { detail: "Couldn't open the key: it was sealed with another secret key." });
          }
          log.info('identity.key_viewed', { token: identifier, user: c.get('caller').username });
          return c.json(found, 200, { 'cache-control': 'no-store' });
        },
      },
    },
    {
      path: '/core/tokens/:identifier/set_key/',
      handlers: {
        POST: async function setKey(c) {
          const { uuid } = await tokenOf(c, store);
          administers(c.get('caller'));
          const { key } = await readJson(c, keySchema).catch((error: unknown) => {
            throw error instanceof Refused ? error : new Refused(400);
          });
          if (!/^[\x21-\x7e]+$/.test(key) || key.length < SHORTEST_KEY || key.length > MAX_KEY_LENGTH)
            throw new Refused(400);
          const outcome = await store.tokens.setKey(uuid, key);
          if (outcome === 'gone') throw notFound();
          if (outcome === 'taken') throw new Refused(400);
          return c.body(null, 204);
        },
      },
    },
  ];
}

// What tells that the provider is up, and which release it speaks for.
export function systemRoutes({ release }: IdentityApiOptions): IdentityRoute[] {
  return [
    {
      path: '/root/config/',
      open: true,
      handlers: {
        GET: (c) =>
          c.json({
            error_reporting: {
              enabled: false,
              sentry_dsn: '',
              environment: '',
              send_pii: false,
              traces_sample_rate: 0,
            },
            capabilities: [],
            cache_timeout: 0,
            cache_timeout_flows: 0,
            cache_timeout_policies: 0,
          }),
      },
    },
    {
      path: '/admin/version/',
      handlers: {
        GET: (c) => {
          administers(c.get('caller'));
          return c.json({
            version_current: release,
            version_latest: release,
            version_latest_valid: true,
            // Management tells this provider from authentik by its build.
            build_hash: `holdfast-${RELEASE}`,
            outdated: false,
            outpost_outdated: false,
          });
        },
      },
    },
  ];
}

const BASE = '/api/v3';

/**
 * @example
 * const api = createIdentityApi({ store, now: () => new Date(), log, release: '2026.8.3' });
 * const headers = { authorization: `Bearer ${key}` };
 * const response = await api.request('/api/v3/core/users/me/', { headers });
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

// Registers pages with their faces and access. Pages accept only the session cookie. Forms pass the
// same CSRF check as every other change.

import { OpenAPIHono } from '@hono/zod-openapi';
import type { Context, MiddlewareHandler, Next } from 'hono';
import { AppError } from '@holdfast/kit/app-error';
import type { FormUpload } from '../../shared/core/contents/port.ts';
import { type App, type AppEnv, type Face, FACES, givenSessionCookie } from '../../shared/http/context.ts';
import { csrfGuard, uploadGuard } from '../../shared/http/csrf-guard.ts';
import type { Deps } from '../../shared/http/deps.ts';
import { goTo } from '../../shared/http/page.tsx';
import { noteDenied } from '../../shared/http/problem.ts';
import { allow, identify } from '../../shared/http/sign-in.ts';
import { type Access, type Area, roleInForce } from '../../shared/sign-in/rules.ts';

export type PageContext = Context<AppEnv>;
type Handler = (c: PageContext) => Response | Promise<Response>;

interface PageDemand {
  access: Exclude<Access, 'open'>;
  /** Default: `rest`. */
  area?: Area;
}

/** Adds one page or several related pages. */
export type PageFunction = (app: App, deps: Deps) => void;

export interface Pages {
  get(path: string, demand: PageDemand, handler: Handler): void;
  /** For forms. The body is `application/x-www-form-urlencoded`. */
  post(path: string, demand: PageDemand, handler: Handler): void;
  /** For forms with a file (`multipart/form-data`), which the handler hands on or reads. */
  upload(path: string, demand: PageDemand, handler: (c: PageContext, upload: FormUpload) => Promise<Response>): void;
}

export function faceOf(c: PageContext): Face {
  return c.env.face ?? 'console';
}

export function isAdmin(c: PageContext): boolean {
  return roleInForce(c.get('principal')) === 'admin';
}

/** Registers pages of these faces. The other face answers 404 at their addresses. */
export function pagesOf(app: App, deps: Deps, faces: readonly Face[]): Pages {
  function add(method: 'GET' | 'POST', path: string, { access, area = 'rest' }: PageDemand, handler: Handler): void {
    const demand = { access, area };
    addWith(csrfGuard('form', mustStillBeIn(demand)), { method, path, demand }, handler);
  }

  const mustStillBeIn = (demand: Required<PageDemand>) => async (c: PageContext) => {
    await identify(c, deps.authenticator);
    allow(c, demand);
  };

  function addWith(
    guard: MiddlewareHandler<AppEnv>,
    { method, path, demand }: { method: 'GET' | 'POST'; path: string; demand: Required<PageDemand> },
    handler: Handler,
  ): void {
    async function serve(c: PageContext): Promise<Response> {
      c.set('byCookieOnly', true);
      const cookie = givenSessionCookie(c);
      const principal = cookie === undefined ? undefined : await deps.authenticator.session(cookie);
      if (principal === undefined) {
        // A GET may come from a page that was left open, so only a form counts as denied.
        if (method === 'POST') await noteDenied(deps.audit, new AppError('unauthenticated', ''), c);
        return goTo(c, signInPath(c));
      }
      c.set('principal', principal);
      allow(c, demand);
      c.set('demand', demand);
      if (method === 'GET') return handler(c);
      let response: Response | undefined;
      await guard(c, async () => {
        response = await handler(c);
      });
      return response ?? c.body(null, 500);
    }
    async function showPage(c: PageContext, next: Next): Promise<Response | void> {
      if (!faces.includes(faceOf(c))) return next();
      return serve(c);
    }
    app.on(method, path, Object.assign(showPage, { faces }));
  }

  return {
    get: (path, demand, handler) => add('GET', path, demand, handler),
    post: (path, demand, handler) => add('POST', path, demand, handler),
    upload(path, { access, area = 'rest' }, handler) {
      const demand = { access, area };
      const place = { method: 'POST', path, demand } as const;
      addWith(uploadGuard(mustStillBeIn(demand)), place, (c) => handler(c, uploadOf(c)));
    },
  };
}

function uploadOf(c: PageContext): FormUpload {
  const { body } = c.req.raw;
  if (body === null) throw new AppError('malformed', 'The request has no body.');
  return { contentType: c.req.header('content-type') ?? '', body };
}

/**
 * Adds pages sorted by address: fixed segments before parameters, so that `/people/new` is not
 * taken for a person. Throws when two pages of one face share an address.
 */
export function addPages(app: App, deps: Deps, pages: readonly PageFunction[]): void {
  const collected: App = new OpenAPIHono<AppEnv>();
  for (const page of pages) page(collected, deps);
  const taken = new Set<string>();
  for (const { method, path, handler } of byAddress(collected.routes)) {
    for (const face of (handler as { faces?: readonly Face[] }).faces ?? FACES) {
      const address = `${method} ${path} (${face})`;
      if (taken.has(address)) throw new Error(`Two pages are at ${address}`);
      taken.add(address);
    }
    app.on(method, path, handler);
  }
}

interface Address {
  method: string;
  path: string;
}

/** Replaces `:` by `~`, which sorts after every letter. */
function byAddress<T extends Address>(routes: readonly T[]): T[] {
  const keyed = routes.map((route) => ({ route, key: `${route.path.replaceAll('/:', '/~')} ${route.method}` }));
  return keyed.toSorted((a, b) => Number(a.key > b.key) - Number(a.key < b.key)).map(({ route }) => route);
}

/** The sign-in page, with the way back to the requested page. A submitted form is not repeated. */
function signInPath({ req }: PageContext): string {
  if (req.method !== 'GET') return '/sign-in';
  const { pathname, search } = new URL(req.url);
  return `/sign-in?return_to=${encodeURIComponent(pathname + search).replaceAll('%2F', '/')}`;
}

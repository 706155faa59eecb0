// Registers pages: which face shows them, who may see them, and that only the cookie of a session says who asks. What a
// form sends passes the same guard as every other change.

import type { Context } from 'hono';
import { AppError } from '@holdfast/kit/app-error';
import type { App, AppEnv, Face } from '../../shared/http/context.ts';
import { unsafeGuard } from '../../shared/http/csrf-guard.ts';
import { noteDenied } from '../../shared/http/denied.ts';
import type { Deps } from '../../shared/http/deps.ts';
import { goTo } from '../../shared/http/page.tsx';
import { givenSessionCookie } from '../../shared/http/session-cookie.ts';
import { allow, identify } from '../../shared/http/sign-in.ts';
import { type Access, type Area, roleInForce } from '../../shared/sign-in/principal.ts';

export type PageContext = Context<AppEnv>;
type Handler = (c: PageContext) => Response | Promise<Response>;

interface PageDemand {
  access: Exclude<Access, 'open'>;
  /** Default: `rest`. */
  area?: Area;
}

export interface Pages {
  get(path: string, demand: PageDemand, handler: Handler): void;
  /** For forms: a body is `application/x-www-form-urlencoded`. */
  post(path: string, demand: PageDemand, handler: Handler): void;
}

export function faceOf(c: PageContext): Face {
  return c.env.face ?? 'console';
}

export function isAdmin(c: PageContext): boolean {
  return roleInForce(c.get('principal')) === 'admin';
}

/** Pages of these faces; at the other one there is nothing at their addresses. */
export function pagesOf(app: App, deps: Deps, faces: readonly Face[]): Pages {
  function add(method: 'GET' | 'POST', path: string, { access, area = 'rest' }: PageDemand, handler: Handler): void {
    const guard = unsafeGuard('form', async (c) => {
      await identify(c, deps.doors);
      allow(c, access, area);
    });
    async function enter(c: PageContext): Promise<Response> {
      c.set('byCookieOnly', true);
      const cookie = givenSessionCookie(c);
      const principal = cookie === undefined ? undefined : await deps.doors.session(cookie);
      if (principal === undefined) {
        // Whoever only looks may have left a page open.
        if (method === 'POST') await noteDenied(deps.audit, new AppError('unauthenticated', ''), c);
        return goTo(c, signInPath(c));
      }
      c.set('principal', principal);
      allow(c, access, area);
      if (method === 'GET') return handler(c);
      let answer: Response | undefined;
      await guard(c, async () => {
        answer = await handler(c);
      });
      return answer ?? c.body(null, 500);
    }
    app.on(method, path, async function showPage(c, next) {
      if (!faces.includes(faceOf(c))) return next();
      return enter(c);
    });
  }

  return {
    get: (path, demand, handler) => add('GET', path, demand, handler),
    post: (path, demand, handler) => add('POST', path, demand, handler),
  };
}

/** Back to the page that was asked for; a form that was sent is not sent again. */
function signInPath({ req }: PageContext): string {
  if (req.method !== 'GET') return '/sign-in';
  const { pathname, search } = new URL(req.url);
  return `/sign-in?return_to=${encodeURIComponent(pathname + search).replaceAll('%2F', '/')}`;
}

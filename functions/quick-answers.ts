// What is asked again and again, answered without the framework and without waiting: GET of the
// addresses in the table below, for somebody who came in a moment ago, and to /auth/verify with a
// password from a locked address. Whatever is not exactly that goes the normal way and gets the
// same answer there.

import { parse as parseCookie } from 'hono/utils/cookie';
import { AppError } from '@holdfast/kit/app-error';
import type { HealthCache, HealthView } from '../shared/health/port.ts';
import { answerPrepared } from '../shared/http/answers.ts';
import { type Bindings, sessionCookieName } from '../shared/http/context.ts';
import { preparedProblem } from '../shared/http/problem.ts';
import type { AppFetch } from '../shared/http/request-log.ts';
import { type Credentials, lockedOutProblem, readBasic } from '../shared/http/sign-in.ts';
import type { Settings } from '../shared/settings/table.ts';
import type { FastAuthenticator } from '../shared/sign-in/port.ts';
import { type Principal, whyNot } from '../shared/sign-in/rules.ts';
import {
  foreignForwarded,
  passed,
  type Remote,
  remoteOf,
  type VerifyDemand,
  verifyRoute,
  whyNotThrough,
} from './auth-verify.ts';
import { healthRoute } from './health.ts';

const BASIC = 'Basic ';

export interface QuickDeps {
  authenticator: FastAuthenticator;
  health: HealthCache;
  settings: Pick<Settings, 'ADMIN_GROUP'>;
}

/** Undefined: the normal way. */
type ShortCut = (request: Request, bindings: Bindings) => Response | undefined;

/** The app's fetch with short cuts. */
export function withQuickAnswers(fetch: AppFetch, { authenticator, health, settings }: QuickDeps): AppFetch {
  const healthPath = healthRoute.path;
  const verifyPath = verifyRoute.path;
  const shortCuts = new Map<string, ShortCut>([
    [healthPath, healthIn('full')],
    [`${healthPath}?view=status`, healthIn('status')],
    [verifyPath, verify({ base: 'web', role: undefined })],
    [`${verifyPath}?role=viewer`, verify({ base: 'web', role: 'viewer' })],
    [`${verifyPath}?role=admin`, verify({ base: 'web', role: 'admin' })],
    [`${verifyPath}?base=core`, verify({ base: 'core' })],
  ]);
  const demand = { ...healthRoute.demand, safe: true };
  const remotes = new WeakMap<Principal, Remote>();
  let lastLocked: { seconds: number; answer: (requestId: string) => Response } | undefined;

  return function answer(request, bindings) {
    const shortCut = request.method === 'GET' ? shortCuts.get(targetOf(request.url)) : undefined;
    return shortCut?.(request, bindings) ?? fetch(request, bindings);
  };

  function healthIn(view: HealthView): ShortCut {
    return ({ headers }, bindings) => {
      const principal = knownOf(headers, bindings);
      if (principal === undefined || whyNot(principal, demand) !== undefined) return undefined;
      const prepared = health.current(view);
      return prepared instanceof Promise ? undefined : answerPrepared(prepared, headers, bindings.requestId);
    };
  }

  function verify(demand: VerifyDemand): ShortCut {
    return (request, bindings) => {
      const { headers } = request;
      if (foreignForwarded(request, bindings.secure) !== undefined) return undefined;
      const refusal = lockedOut(headers, bindings);
      if (refusal !== undefined || demand.base === 'core') return refusal;
      const principal = knownOf(headers, bindings);
      if (principal === undefined || whyNotThrough(principal, demand.role) !== undefined) return undefined;
      return passed(bindings.requestId, remoteFor(principal));
    };
  }

  function knownOf(headers: Headers, { clientAddress, secure }: Bindings): Principal | undefined {
    const authorization = headers.get('authorization');
    if (authorization !== null) return authenticator.known(authorization, clientAddress);
    const cookies = headers.get('cookie');
    if (cookies === null) return undefined;
    const name = sessionCookieName(secure);
    const cookie = parseCookie(cookies, name)[name];
    return cookie === undefined ? undefined : authenticator.knownSession(cookie);
  }

  function remoteFor(principal: Principal): Remote {
    const known = remotes.get(principal);
    if (known !== undefined) return known;
    const remote = remoteOf(principal, settings.ADMIN_GROUP);
    remotes.set(principal, remote);
    return remote;
  }

  function lockedOut(headers: Headers, { clientAddress: address, requestId }: Bindings): Response | undefined {
    const authorization = headers.get('authorization');
    if (authorization?.startsWith(BASIC) !== true) return undefined;
    const seconds = authenticator.lockedFor(address);
    const credentials = seconds === undefined ? undefined : readable(authorization.slice(BASIC.length));
    if (seconds === undefined || credentials?.kind !== 'basic') return undefined;
    const { username, password } = credentials;
    authenticator.noteLocked({ username, password, address, base: 'web', requestId });
    if (lastLocked?.seconds !== seconds) lastLocked = { seconds, answer: preparedProblem(lockedOutProblem(seconds)) };
    return lastLocked.answer(requestId);
  }
}

/** Path and query. */
function targetOf(url: string): string {
  return url.slice(url.indexOf('/', url.indexOf('://') + 3));
}

/** What is malformed gets its answer the normal way. */
function readable(encoded: string): Credentials | undefined {
  if (/\s/.test(encoded)) return undefined;
  try {
    return readBasic(encoded);
  } catch (error) {
    if (error instanceof AppError) return undefined;
    throw error;
  }
}

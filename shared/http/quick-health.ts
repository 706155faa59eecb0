// The one question that monitors ask again and again, answered without the framework: GET /api/health with a credential
// that the settings name. Whatever is not exactly that goes the normal way and gets the same answer there.

import type { Deps } from './deps.ts';
import { answerPrepared } from './prepared.ts';
import type { AppFetch } from './request-log.ts';
import { knownHeaders } from './sign-in.ts';
import type { HealthView } from '../ports/health-cache.ts';

const PATH = '/api/health';
const VIEWS: ReadonlyMap<string, HealthView> = new Map([
  ['', 'full'],
  ['?view=status', 'status'],
]);

/** The app's fetch with a short cut. */
export function withQuickHealth(fetch: AppFetch, deps: Deps): AppFetch {
  const recognise = knownHeaders(deps.settings);

  return function answer(request, bindings) {
    const view = request.method === 'GET' ? viewOf(request.url) : undefined;
    const principal = view === undefined ? undefined : recognise(request.headers.get('authorization') ?? '');
    if (view === undefined || principal === undefined) return fetch(request, bindings);
    const prepared = deps.health.current(view);
    if (prepared instanceof Promise) return fetch(request, bindings);
    return answerPrepared(prepared, request.headers, bindings.requestId);
  };
}

/** Undefined when the address is another one. */
function viewOf(url: string): HealthView | undefined {
  const start = url.indexOf('/', url.indexOf('://') + 3);
  return url.startsWith(PATH, start) ? VIEWS.get(url.slice(start + PATH.length)) : undefined;
}

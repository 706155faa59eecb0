// Names each request, logs one line for it, and counts it. It wraps the app from outside, so that
// the hot path has no middleware that touches the response. Paths are logged without their query.

import type { Log } from '@holdfast/kit/log';
import type { RequestCounter } from '../host/request-statistics.ts';
import type { Bindings } from './context.ts';

export type AppFetch = (request: Request, bindings: Bindings) => Response | Promise<Response>;

/** What the host knows of the connection itself. */
export type Connection = Omit<Bindings, 'requestId'>;

export type HostFetch = (request: Request, connection: Connection) => Response | Promise<Response>;

/**
 * The app with a fresh id for each request, and a line `http.request` and a count after each
 * answer; who asks every few seconds whether this process lives, and hears that it does, leaves no
 * line. `clock` counts milliseconds.
 */
export function withRequestLog(fetch: AppFetch, log: Log, clock: () => number, requests: RequestCounter): HostFetch {
  return function handle(request, connection) {
    const started = clock();
    const requestId = crypto.randomUUID();
    const { clientAddress } = connection;
    const answer = fetch(request, { ...connection, requestId });

    function logged(response: Response): Response {
      const ms = clock() - started;
      requests.answered(request.method, response.status, ms / 1000);
      const path = pathOf(request.url);
      if (path === '/api/ping' && response.ok) return response;
      log.info('http.request', {
        request_id: requestId,
        method: request.method,
        path,
        status: response.status,
        ms: Math.round(ms * 10) / 10,
        address: clientAddress,
      });
      return response;
    }

    return answer instanceof Promise ? answer.then(logged) : logged(answer);
  };
}

function pathOf(url: string): string {
  const start = url.indexOf('/', url.indexOf('://') + 3);
  const end = url.indexOf('?', start);
  return url.slice(start, end === -1 ? undefined : end);
}

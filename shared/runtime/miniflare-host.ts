// A worker in workerd through Miniflare, as the Node host sees it: requests, crons, and the calls
// that come back.

import { Miniflare, Response as WorkerResponse } from 'miniflare';
import { limitConcurrency } from '@holdfast/kit/concurrency';
import { MAX_BODY_BYTES } from '../http/csrf-guard.ts';
import type { AppFetch } from '../http/request-log.ts';
import type { WorkerFacts } from './workerd-deps.ts';

export interface WorkerOptions {
  /** The bundled worker. */
  script: string;
  compatibilityDate: string;
  compatibilityFlags: string[];
  /** Proves this host to the worker and the worker to this host. */
  token: string;
  facts: WorkerFacts;
  /** Answers the calls of the worker through its HOST binding. */
  answerHost(request: Request): Promise<Response>;
}

interface Scheduled {
  scheduled(event: { cron: string; scheduledTime: Date }): Promise<unknown>;
}

export interface RunningWorker {
  fetch: AppFetch;
  /** Runs the jobs of a cron to their end. */
  scheduled(cron: string, time: Date): Promise<void>;
  end(): Promise<void>;
}

/**
 * Each request of a worker has connections of its own to the database, and those are few: others
 * wait.
 */
const MAX_CONCURRENT = 8;

/** Without what concerns only the way between workerd and this host. */
function endToEnd(headers: [string, string][]): [string, string][] {
  return headers.filter(
    ([name]) => !/^(mf-.*|transfer-encoding|content-encoding|content-length|connection)$/i.test(name),
  );
}

/**
 * A body up to one byte more than the worker takes: it says so itself, and this host never holds
 * more.
 */
async function startOf(body: ReadableStream<Uint8Array>): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of body) {
    chunks.push(chunk);
    size += chunk.length;
    if (size > MAX_BODY_BYTES) break;
  }
  return Buffer.concat(chunks).subarray(0, MAX_BODY_BYTES + 1);
}

export async function startWorker(options: WorkerOptions): Promise<RunningWorker> {
  const { token } = options;
  const miniflare = new Miniflare({
    modules: true,
    scriptPath: options.script,
    compatibilityDate: options.compatibilityDate,
    compatibilityFlags: options.compatibilityFlags,
    bindings: { HOST_TOKEN: token, FACTS: JSON.stringify(options.facts) },
    serviceBindings: {
      HOST: async (request: Request) => {
        const { url, headers } = request;
        const body = await request.text();
        const answer = await options.answerHost(new Request(url, { method: 'POST', headers: [...headers], body }));
        return new WorkerResponse(await answer.text(), { status: answer.status });
      },
    },
  });
  await miniflare.ready;
  const inTurn = limitConcurrency(MAX_CONCURRENT);

  const dispatch: AppFetch = async (request, connection) => {
    const headers = new Headers([...request.headers].filter(([name]) => !/^(mf|cf)-/i.test(name)));
    headers.set('x-holdfast-host', token);
    headers.set('x-holdfast-connection', JSON.stringify(connection));
    const body = request.body === null ? null : await startOf(request.body);
    headers.delete('content-length');
    headers.delete('transfer-encoding');
    const answer = await miniflare.dispatchFetch(request.url, {
      method: request.method,
      headers: [...headers],
      body,
      redirect: 'manual',
    });
    const { status } = answer;
    const bytes = await answer.arrayBuffer();
    // Bytes, be they none, would get a type that the worker has not named.
    return new Response(bytes.byteLength === 0 ? null : bytes, {
      status,
      headers: endToEnd([...answer.headers]),
    });
  };

  return {
    fetch: (request, connection) => inTurn(async () => dispatch(request, connection)),
    scheduled: async (cron, time) => {
      const worker = (await miniflare.getWorker()) as unknown as Scheduled;
      await worker.scheduled({ cron, scheduledTime: time });
    },
    end: () => miniflare.dispose(),
  };
}

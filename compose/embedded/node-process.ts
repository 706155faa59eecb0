// A Node process of the stack as the supervisor starts it: what it needs comes in its environment, and it says when it
// listens.

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { type IncomingMessage, request as requestPlain } from 'node:http';
import { request as requestSecure } from 'node:https';
import { join } from 'node:path';
import type { Layout } from './layout.ts';
import { errorInLog, processLog } from './process-log.ts';
import type { ProcessSpec } from './supervised-process.ts';

export interface NodeProcessOptions {
  layout: Layout;
  /** The bundled program. */
  program: string;
  /** Added to the environment. */
  environment: Record<string, string>;
  /** An address of the process that answers 200 without sign-in. */
  pingUrl: string;
  /** The CA that signed its certificate, when the address is an https one. */
  caFile: string;
  stopWithinMs: number;
  /** Gets what the process tells besides that it listens. */
  heard?: (message: { kind: string }) => void;
}

/** Tells the supervisor that the process listens. */
export const LISTENING = { kind: 'listening' } as const;

/** A Node process of the stack whose output goes to DIR/logs/<role>.log. */
export function nodeProcess(role: string, options: NodeProcessOptions): ProcessSpec {
  const { layout, program, environment, pingUrl, caFile, stopWithinMs, heard } = options;
  const log = processLog(join(layout.logs, `${role}.log`));
  const listening = new WeakSet<ChildProcess>();
  const shared = {
    NODE_COMPILE_CACHE: join(layout.run, 'cache'),
    // Name lookups, password hashes and file systems that hang take threads; the rest must go on.
    UV_THREADPOOL_SIZE: '16',
  };

  function start(): ChildProcess {
    const env = { ...process.env, ...shared, ...environment };
    const child = log.open((descriptor) =>
      spawn(process.execPath, [program], {
        cwd: layout.root,
        env,
        detached: true,
        stdio: ['ignore', descriptor, descriptor, 'ipc'],
      }),
    );
    child.on('message', (message: { kind: string }) => {
      if (message.kind === LISTENING.kind) listening.add(child);
      else heard?.(message);
    });
    return child;
  }

  async function answers(child: ChildProcess): Promise<boolean> {
    return listening.has(child) && (await statusOf(pingUrl, caFile)) === 200;
  }

  return {
    role,
    start,
    answers,
    answersWithinMs: 60_000,
    stopSignal: 'SIGTERM',
    stopWithinMs,
    lastWords: () => errorInLog(log.sinceOpened()),
  };
}

/** Tells the supervisor; without one there is nobody to tell. */
export function tellSupervisor(message: { kind: string }): void {
  if (process.connected) process.send?.(message, undefined, undefined, () => undefined);
}

async function statusOf(url: string, caFile: string): Promise<number | undefined> {
  const options = { agent: false, signal: AbortSignal.timeout(2000) };
  const request = url.startsWith('https:')
    ? requestSecure(url, { ...options, ca: readFileSync(caFile) })
    : requestPlain(url, options);
  const [response] = (await once(request.end(), 'response')) as [IncomingMessage];
  response.resume();
  return response.statusCode;
}

// The management process as the supervisor starts it: what it needs comes in one variable, and it says when it listens.

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
}

/** What the process tells its supervisor. */
export type ManagementMessage = { kind: 'listening' } | { kind: 'measured'; modules: MeasuredModule[] };

/** One health module as the management process measured it first. */
export interface MeasuredModule {
  module: string;
  status: string;
  message: string;
}

export interface ManagementProcess extends ProcessSpec {
  /** Resolves when every health module was measured once. */
  measured: Promise<MeasuredModule[]>;
}

/** A Node process of the stack whose output goes to DIR/logs/<role>.log. */
export function nodeProcess(
  role: string,
  { layout, program, environment, pingUrl, caFile }: NodeProcessOptions,
): ManagementProcess {
  const log = processLog(join(layout.logs, `${role}.log`));
  const listening = new WeakSet<ChildProcess>();
  const { promise: measured, resolve: hasMeasured } = Promise.withResolvers<MeasuredModule[]>();

  function start(): ChildProcess {
    const options = { cwd: layout.root, env: { ...process.env, ...environment }, detached: true } as const;
    const child = log.open((descriptor) =>
      spawn(process.execPath, [program], { ...options, stdio: ['ignore', descriptor, descriptor, 'ipc'] }),
    );
    child.on('message', (message: ManagementMessage) => {
      if (message.kind === 'listening') listening.add(child);
      else hasMeasured(message.modules);
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
    stopWithinMs: 18_000,
    lastWords: () => errorInLog(log.sinceOpened()),
    measured,
  };
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

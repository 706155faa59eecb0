// A Node process of the stack as the supervisor starts it: what it needs comes in its environment, and it says when it
// listens.

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { type IncomingMessage, request as requestPlain } from 'node:http';
import { request as requestSecure } from 'node:https';
import { join } from 'node:path';
import { connect } from 'node:tls';
import { LISTENING } from '@holdfast/kit/service';
import type { MeasuredMessage, MeasuredModule } from '../../../shared/runtime/management.ts';
import type { Layout } from './layout.ts';
import { errorInLog, processLog } from './process-log.ts';
import type { ProcessSpec } from './supervised-process.ts';

export interface NodeProcessOptions {
  layout: Layout;
  /** The bundled program. */
  program: string;
  /** Of Node itself, before the program. */
  flags?: readonly string[];
  /** Added to the environment. */
  environment: Record<string, string>;
  asked: Asked;
  stopWithinMs: number;
  /** Gets what the process tells besides that it listens. */
  heard?: (message: { kind: string }) => void;
}

/** How a process is asked whether it answers: by a URL that gives 200 without sign-in, or for its certificate on a port. */
export type Asked = {
  /** The CA that signed the certificate of the process, if it shows one. */
  caFile: string;
} & ({ pingUrl: string } | { tlsPort: number });

/** A Node process of the stack whose output goes to DIR/logs/<role>.log. */
export function nodeProcess(role: string, options: NodeProcessOptions): ProcessSpec {
  const { layout, program, flags = [], environment, asked, stopWithinMs, heard } = options;
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
      spawn(process.execPath, [...flags, program], {
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
    return listening.has(child) && (await answersTo(asked));
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

/** Whether somebody answers there as wanted. */
export async function answersTo(asked: Asked): Promise<boolean> {
  if ('pingUrl' in asked) return (await statusOf(asked.pingUrl, asked.caFile)) === 200;
  return showsCertificate(asked.tlsPort, asked.caFile);
}

/** Rejects when nobody answers there, or shows a certificate that is not of this CA. */
async function showsCertificate(port: number, caFile: string): Promise<boolean> {
  const socket = connect({ host: '127.0.0.1', port, ca: readFileSync(caFile) });
  try {
    await once(socket, 'secureConnect', { signal: AbortSignal.timeout(2000) });
  } catch (error) {
    socket.destroy();
    throw error;
  }
  // Cut off at once, it would be a failed handshake for the other side.
  socket.on('error', () => socket.destroy()).end();
  return true;
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

/** Management also tells the first measurement of every health module. */
export interface ManagementProcess extends ProcessSpec {
  /** Resolves when every health module was measured once. */
  measured: Promise<MeasuredModule[]>;
}

/** A mail that is on its way may take 15 seconds of an orderly stop. */
const STOP_WITHIN_MS = 18_000;

export function managementProcess(options: Omit<NodeProcessOptions, 'heard' | 'stopWithinMs'>): ManagementProcess {
  const { promise: measured, resolve: hasMeasured } = Promise.withResolvers<MeasuredModule[]>();
  const spec = nodeProcess('management', {
    ...options,
    stopWithinMs: STOP_WITHIN_MS,
    heard: (message) => hasMeasured((message as MeasuredMessage).modules),
  });
  return { ...spec, measured };
}

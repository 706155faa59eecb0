// One process that the supervisor owns: started, waited for, restarted when it dies (the pause between tries grows),
// stopped in order.

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { type IncomingMessage, request as requestPlain } from 'node:http';
import { request as requestSecure } from 'node:https';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { connect } from 'node:tls';
import { messageOf, StackError } from '@holdfast/kit/app-error';
import { LISTENING } from '@holdfast/kit/service';
import type { MeasuredMessage, MeasuredModule } from '../../../shared/runtime/management.ts';
import type { Layout } from './layout.ts';
import { errorInLog, processLog } from './process-log.ts';

export interface ProcessSpec {
  role: string;
  start(): ChildProcess | Promise<ChildProcess>;
  /** Whether exactly this process answers (not another one on its port); asked again and again until it does. */
  answers(child: ChildProcess): Promise<boolean>;
  /** After this it counts as ended and is killed. */
  answersWithinMs: number;
  stopSignal: NodeJS.Signals;
  /** After this the process is killed. */
  stopWithinMs: number;
  /** Why it ended, as far as its own output tells. */
  lastWords(): string | undefined;
}

export interface ProcessEvents {
  started(role: string, pid: number, stopSignal: NodeJS.Signals): void;
  ended(role: string, pid: number): void;
  died(role: string, how: string, words: string | undefined, pauseMs: number): void;
  restarted(role: string): void;
}

export interface SupervisedProcess {
  role: string;
  pid(): number | undefined;
  /** Starts and waits until the process answers; rejects when it ends before. */
  start(): Promise<void>;
  /** Ends the process and every restart of it. */
  stop(): Promise<void>;
}

const FIRST_PAUSE_MS = 500;
const MAX_PAUSE_MS = 30_000;
const STEADY_AFTER_MS = 60_000;
const ASK_EVERY_MS = 25;

/** A process that ended before it answered. */
export class EarlyEnd extends Error {
  readonly how: string;
  readonly words: string | undefined;

  constructor(role: string, how: string, words: string | undefined) {
    super(`${role} ended ${how}${words === undefined ? '' : `: ${words}`}`);
    this.name = 'EarlyEnd';
    this.how = how;
    this.words = words;
  }
}

/** The end of a process in its first start, for a person: its own remedy if it has told one. */
export function explainEarlyEnd(error: EarlyEnd, logFile: string): StackError {
  if (/No space left on device/.test(error.words ?? ''))
    return new StackError(
      `The disk of ${logFile} is full: ${error.message}.`,
      'free some space and start again; no data was lost',
      error,
    );
  const [, reported = error.message, remedy] = /^([^]+?)\.? Remedy: ([^]+?)\.?$/.exec(error.message) ?? [];
  return new StackError(`${reported}.`, remedy ?? `read ${logFile}; it ends with the reason`, error);
}

/** A process that is not started yet. Its events are told in the order in which they happen. */
export function supervise(spec: ProcessSpec, events: ProcessEvents): SupervisedProcess {
  let child: ChildProcess | undefined;
  let stopping = false;
  let pauseMs = FIRST_PAUSE_MS;
  let spawning: Promise<ChildProcess> | undefined;
  const wake = new AbortController();

  async function launch(): Promise<void> {
    const startedAt = Date.now();
    spawning = spawnChild();
    const launched = await spawning;
    const pid = launched.pid ?? 0;
    const ended = endOf(launched).then((how) => {
      child = undefined;
      events.ended(spec.role, pid);
      if (Date.now() - startedAt > STEADY_AFTER_MS) pauseMs = FIRST_PAUSE_MS;
      return how;
    });
    const silent = setTimeout(() => launched.kill('SIGKILL'), spec.answersWithinMs);
    const early = await Promise.race([ended, untilAnswers(launched)]);
    clearTimeout(silent);
    if (early !== undefined) throw new EarlyEnd(spec.role, early, spec.lastWords());
    void ended.then(keepAlive);
  }

  async function spawnChild(): Promise<ChildProcess> {
    const launched = await spec.start();
    const pid = await pidOf(launched);
    child = launched;
    events.started(spec.role, pid, spec.stopSignal);
    return launched;
  }

  async function untilAnswers(launched: ChildProcess): Promise<undefined> {
    while (child === launched && !(await spec.answers(launched).catch(() => false))) await delay(ASK_EVERY_MS);
    if (child !== launched) await new Promise(() => undefined);
  }

  async function keepAlive(how: string): Promise<void> {
    let reason = how;
    while (!stopping) {
      events.died(spec.role, reason, spec.lastWords(), pauseMs);
      await delay(pauseMs, undefined, { signal: wake.signal }).catch(() => undefined);
      pauseMs = Math.min(pauseMs * 2, MAX_PAUSE_MS);
      if (stopping) return;
      try {
        await launch();
        events.restarted(spec.role);
        return;
      } catch (error) {
        reason = error instanceof EarlyEnd ? error.how : `before it began: ${messageOf(error)}`;
      }
    }
  }

  async function stop(): Promise<void> {
    stopping = true;
    wake.abort();
    await spawning?.catch(() => undefined);
    const running = child;
    if (running === undefined) return;
    const ended = endOf(running);
    running.kill(spec.stopSignal);
    const timer = setTimeout(() => running.kill('SIGKILL'), spec.stopWithinMs);
    await ended;
    clearTimeout(timer);
  }

  return { role: spec.role, pid: () => child?.pid, start: launch, stop };
}

async function pidOf(child: ChildProcess): Promise<number> {
  if (child.pid !== undefined) return child.pid;
  const [error] = (await once(child, 'error')) as [Error];
  throw error;
}

async function endOf(child: ChildProcess): Promise<string> {
  if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
  return child.signalCode === null ? `with code ${child.exitCode}` : `by signal ${child.signalCode}`;
}

/**
 * A Node process of the stack as the supervisor starts it: what it needs comes in its environment, and it says when it
 * listens.
 */
export interface NodeProcessOptions {
  layout: Layout;
  /** The bundled program. */
  program: string;
  /** Of Node itself, before the program. */
  flags?: readonly string[];
  /** Added to the environment. */
  environment: Record<string, string>;
  requested: Request;
  stopWithinMs: number;
  /** Gets what the process tells besides that it listens. */
  heard?: (message: { kind: string }) => void;
}

/** How a process is asked whether it answers: by a URL that gives 200 without sign-in, or for its certificate on a port. */
export type Request = {
  /** The CA that signed the certificate of the process, if it shows one. */
  caFile: string;
} & ({ pingUrl: string } | { tlsPort: number });

/** A Node process of the stack whose output goes to DIR/logs/<role>.log. */
export function nodeProcess(role: string, options: NodeProcessOptions): ProcessSpec {
  const { layout, program, flags = [], environment, requested, stopWithinMs, heard } = options;
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
    return listening.has(child) && (await answersTo(requested));
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
export async function answersTo(request: Request): Promise<boolean> {
  if ('pingUrl' in request) return (await statusOf(request.pingUrl, request.caFile)) === 200;
  return showsCertificate(request.tlsPort, request.caFile);
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

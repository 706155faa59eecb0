// Starts, watches, restarts and stops one process of the supervisor. The pause between restarts
// grows.

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
  /** True if exactly this process answers, not another one on its port. Polled until it does. */
  answers(child: ChildProcess): Promise<boolean>;
  /** Killed if it doesn't answer within this. */
  answersWithinMs: number;
  stopSignal: NodeJS.Signals;
  /** Killed if it doesn't stop within this. */
  stopWithinMs: number;
  /** The last error in its output; undefined if there is none. */
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
  /** Starts the process and waits until it answers. Rejects if it ends before. */
  start(): Promise<void>;
  /** Stops the process and its restarts. */
  stop(): Promise<void>;
}

const FIRST_PAUSE_MS = 500;
/** What a process died of may be over at any time: a full disk, a database that restarts. */
const MAX_PAUSE_MS = 8_000;
const STEADY_AFTER_MS = 60_000;
const ASK_EVERY_MS = 25;

/** Before the restart after this one. */
export function longerPauseMs(pauseMs: number): number {
  return Math.min(pauseMs * 2, MAX_PAUSE_MS);
}

/** A process that ended before it answered. */
export class EarlyEnd extends Error {
  readonly how: string;
  readonly words: string | undefined;

  constructor(role: string, how: string, words: string | undefined) {
    super(`${role} exited ${how}${words === undefined ? '' : `: ${words}`}`);
    this.name = 'EarlyEnd';
    this.how = how;
    this.words = words;
  }
}

/** Explains the end of a process during its first start, with its own remedy if it gave one. */
export function explainEarlyEnd(error: EarlyEnd, logFile: string): StackError {
  if (/No space left on device/.test(error.words ?? ''))
    return new StackError(
      `The disk of ${logFile} is full: ${error.message}.`,
      'free some space, then start again. No data was lost',
      error,
    );
  const [, reported = error.message, remedy] = /^([^]+?)\.? Remedy: ([^]+?)\.?$/.exec(error.message) ?? [];
  return new StackError(`${reported}.`, remedy ?? `read the end of ${logFile}`, error);
}

/** Supervises a process, which isn't started yet. Reports its events in order. */
export function supervise(spec: ProcessSpec, events: ProcessEvents): SupervisedProcess {
  let child: ChildProcess | undefined;
  let stopping = false;
  let pauseMs = FIRST_PAUSE_MS;
  let spawning: Promise<ChildProcess> | undefined;
  const wake = new AbortController();

  async function launch(): Promise<void> {
    const startedMs = performance.now();
    spawning = spawnChild();
    const launched = await spawning;
    const pid = launched.pid ?? 0;
    const ended = endOf(launched).then((how) => {
      child = undefined;
      events.ended(spec.role, pid);
      if (performance.now() - startedMs > STEADY_AFTER_MS) pauseMs = FIRST_PAUSE_MS;
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
      pauseMs = longerPauseMs(pauseMs);
      if (stopping) return;
      try {
        await launch();
        events.restarted(spec.role);
        return;
      } catch (error) {
        reason = error instanceof EarlyEnd ? error.how : `before it started: ${messageOf(error)}`;
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
 * Options of a Node process. It gets its configuration in its environment, and sends a message when
 * it listens.
 */
export interface NodeProcessOptions {
  layout: Layout;
  /** The bundled program. */
  program: string;
  /** Node's own flags, before the program. */
  flags?: readonly string[];
  /** Added to the environment. */
  environment: Record<string, string>;
  requested: Request;
  stopWithinMs: number;
  /** Receives the other messages of the process. */
  onMessage?: (message: { kind: string }) => void;
}

/** How to check that a process answers: a URL that returns 200 without sign-in, or a TLS port. */
export type Request = {
  /** The CA of the process's certificate, if it has one. */
  caFile: string;
} & ({ pingUrl: string } | { tlsPort: number });

/** A Node process of the stack whose output goes to DIR/logs/<role>.log. */
export function nodeProcess(role: string, options: NodeProcessOptions): ProcessSpec {
  const { layout, program, flags = [], environment, requested, stopWithinMs, onMessage } = options;
  const log = processLog(join(layout.logs, `${role}.log`));
  const listening = new WeakSet<ChildProcess>();
  const shared = {
    NODE_COMPILE_CACHE: process.env['NODE_COMPILE_CACHE'] ?? join(layout.run, 'cache'),
    // Hanging name lookups, password hashes and file systems must not use up all threads.
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
      else onMessage?.(message);
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

/** True if the process answers. Rejects if nothing listens there. */
export async function answersTo(request: Request): Promise<boolean> {
  if ('pingUrl' in request) return (await statusOf(request.pingUrl, request.caFile)) === 200;
  return showsCertificate(request.tlsPort, request.caFile);
}

/** Rejects if nothing listens there, or with a certificate of another CA. */
async function showsCertificate(port: number, caFile: string): Promise<boolean> {
  const socket = connect({ host: '127.0.0.1', port, ca: readFileSync(caFile) });
  try {
    await once(socket, 'secureConnect', { signal: AbortSignal.timeout(2000) });
  } catch (error) {
    socket.destroy();
    throw error;
  }
  // Destroying the socket at once would be a failed handshake for the server.
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

/** Management also reports the first measurement of every health module. */
export interface ManagementProcess extends ProcessSpec {
  /** Resolves once every health module was measured. */
  measured: Promise<MeasuredModule[]>;
}

/** Sending a pending mail may take 15 seconds during an orderly stop. */
const STOP_WITHIN_MS = 18_000;

export function managementProcess(options: Omit<NodeProcessOptions, 'onMessage' | 'stopWithinMs'>): ManagementProcess {
  const { promise: measured, resolve: hasMeasured } = Promise.withResolvers<MeasuredModule[]>();
  const spec = nodeProcess('management', {
    ...options,
    stopWithinMs: STOP_WITHIN_MS,
    onMessage: (message) => hasMeasured((message as MeasuredMessage).modules),
  });
  return { ...spec, measured };
}

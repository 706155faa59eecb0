// Runs and watches the programs of a TAK Server release. If one dies, doesn't appear or hangs
// during the start, ends all of them, so that the container engine restarts the container.

import { type ChildProcess, spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { codeOf, StackError } from '@holdfast/kit/app-error';
import type { Log } from '@holdfast/kit/log';
import { commandLine, isAlive, type ProcessIdentity, processesOf } from '@holdfast/stack/process/ownership';
import { rotateLogs } from '@holdfast/stack/process/process-log';
import { endedForMemory } from './memory.ts';
import {
  type Awaited,
  type CorePhase,
  follow,
  linesOf,
  noteFailedStart,
  noteGoodStart,
  outputFile,
  pauseBeforeStart,
  phaseIn,
  type StartFault,
  StartWatch,
  waitForAll,
} from './start.ts';

/** Programs without a Spring profile, by file name. */
const JARS: Record<string, string> = { 'takserver-pm.jar': 'plugins', 'takserver-retention.jar': 'retention' };
const PROFILE = /^-Dspring\.profiles\.active=["']?([a-z]+)["']?$/;
const ASK_EVERY_MS = 100;

/** The programs that the release's script starts, in order. */
export function programsIn(script: string): string[] {
  const starts = script
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => /^(?:\S*\/)?java\s/.test(line));
  const names = starts.map((line) => programOf(line.split(/\s+/))).filter((name) => name !== undefined);
  return [...new Set(names)];
}

/** The release program with these arguments; undefined if it isn't one. */
export function programOf(args: readonly string[]): string | undefined {
  for (const arg of args) {
    const profile = PROFILE.exec(arg)?.[1];
    const name = profile ?? JARS[basename(arg)];
    if (name !== undefined) return name;
  }
  return undefined;
}

/**
 * The running programs of a session, by name. Everything that the script started is in it, whatever
 * its parent.
 */
export function livingPrograms(session: number): Map<string, ProcessIdentity> {
  const named = processesOf(session).map((each) => [programOf(commandLine(each.pid)), each] as const);
  return new Map(named.filter((each): each is [string, ProcessIdentity] => each[0] !== undefined));
}

/** Terminates everything in the session, and kills what still runs after `withinMs`. */
export async function endSession(session: number, withinMs: number): Promise<void> {
  const until = performance.now() + withinMs;
  const requested = new Map<number, ProcessIdentity>();
  for (let living = processesOf(session); living.length > 0; living = processesOf(session)) {
    const late = performance.now() >= until;
    // Includes processes that were started meanwhile.
    for (const each of living) if (late || !requested.has(each.pid)) signal(each, late ? 'SIGKILL' : 'SIGTERM');
    for (const each of living) requested.set(each.pid, each);
    await delay(ASK_EVERY_MS);
  }
}

function signal(identity: ProcessIdentity, name: NodeJS.Signals): void {
  try {
    if (isAlive(identity)) process.kill(identity.pid, name);
  } catch {
    // It has ended meanwhile.
  }
}

export interface ReleaseCoreOptions {
  /** Directory of the release: /opt/tak. */
  home: string;
  /** Of the programs. */
  environment: NodeJS.ProcessEnv;
  /** What to wait for before starting anything. */
  awaited: readonly Awaited[];
  log: Log;
  /** Called once for each phase. */
  reached?: (phase: CorePhase) => void;
  appearWithinMs?: number;
  /** Time limit for reaching the next phase. */
  phaseWithinMs?: number;
  endWithinMs?: number;
  lookEveryMs?: number;
  sayEveryMs?: number;
}

const SCRIPT = 'configureInDocker.sh';
const FOLLOWED = ['config', 'messaging', 'api', 'retention', 'plugins'];
const LARGEST_LOG_BYTES = 32 * 1024 ** 2;
const KEPT_LOGS = 5;
const ROTATE_EVERY_MS = 30_000;
const PHASE_WITHIN_MS = 600_000;

/** Runs the programs of a release once. */
export class ReleaseCore {
  readonly #options: ReleaseCoreOptions;
  readonly #log: Log;
  readonly #logs: string;
  readonly #stopping = new AbortController();
  #start: StartWatch;

  constructor(options: ReleaseCoreOptions) {
    this.#options = options;
    this.#log = options.log;
    this.#logs = join(options.home, 'logs');
    this.#start = new StartWatch(options.phaseWithinMs ?? PHASE_WITHIN_MS);
  }

  stop(): void {
    this.#stopping.abort(new Error('the core is stopping'));
  }

  /** Resolves with the exit code when every program has ended. */
  async run(): Promise<number> {
    const { home, awaited, sayEveryMs } = this.#options;
    const { signal } = this.#stopping;
    const programs = expected(home);
    try {
      await this.#pause();
      await waitForAll(awaited, { log: this.#log, signal, ...(sayEveryMs === undefined ? {} : { sayEveryMs }) });
    } catch (error) {
      if (signal.aborted) return 0;
      throw error;
    }
    return this.#watch(programs);
  }

  /** Repeatedly failing starts must not keep the machine busy. */
  async #pause(): Promise<void> {
    const { failed, pauseMs } = pauseBeforeStart(this.#options.home);
    if (pauseMs === 0) return;
    this.#log.warn('core.pause', { seconds: pauseMs / 1000, failed_starts: failed });
    await delay(pauseMs, undefined, { signal: this.#stopping.signal });
  }

  async #watch(programs: readonly string[]): Promise<number> {
    const { home, environment, phaseWithinMs = PHASE_WITHIN_MS } = this.#options;
    const output = outputFile(join(this.#logs, 'takserver.log'), (error) =>
      this.#log.error('core.log_not_written', { error: codeOf(error) ?? 'unknown' }),
    );
    const followed = FOLLOWED.map((name) => follow(join(this.#logs, `takserver-${name}.log`), this.#hearFrom(name)));
    const look = (): void => {
      if (!this.#start.isOver) for (const each of followed) each();
    };
    const killsBefore = endedForMemory();
    const child = started(home, environment);
    this.#start = new StartWatch(phaseWithinMs);
    const ended = endOf(child);
    const heard = this.#hearFrom('core');
    for (const stream of [child.stdout, child.stderr])
      stream?.on('data', (chunk: Buffer) => {
        output.write(chunk);
        heard(chunk);
      });
    this.#log.info('core.phase', { phase: 'starting', programs });
    const rotating = setInterval(() => rotate(this.#logs, this.#log), ROTATE_EVERY_MS);
    try {
      if (child.pid !== undefined) return await this.#untilFault(child.pid, ended, programs, look, killsBefore);
      await ended;
      return 1;
    } finally {
      clearInterval(rotating);
      output.close();
    }
  }

  async #untilFault(
    session: number,
    ended: Promise<string>,
    programs: readonly string[],
    look: () => void,
    killsBefore: number,
  ): Promise<number> {
    const { home, endWithinMs = 20_000 } = this.#options;
    const { signal } = this.#stopping;
    const over = new AbortController();
    const fault = await Promise.race([
      ended.then((how) => ({ program: SCRIPT, reason: `it exited ${how}` })),
      this.#firstFault(session, programs, look, AbortSignal.any([signal, over.signal])),
    ]);
    over.abort();
    if (fault !== undefined && !signal.aborted) {
      if (!this.#start.isReady) noteFailedStart(home);
      this.#tell(fault, killsBefore);
    } else this.#log.info('core.stops');
    await endSession(session, endWithinMs);
    return fault === undefined || signal.aborted ? 0 : 1;
  }

  #hearFrom(program: string): (chunk: Buffer) => void {
    return linesOf((line) => {
      this.#start.readLine(line, program);
      const phase = phaseIn(line);
      if (phase === undefined || !this.#start.reach(phase)) return;
      this.#log.info('core.phase', { phase });
      this.#options.reached?.(phase);
      if (!this.#start.isReady) return;
      this.#log.info('core.ready');
      noteGoodStart(this.#options.home);
    });
  }

  /** The first program that dies, doesn't appear or hangs; undefined if everything is stopping. */
  async #firstFault(
    session: number,
    programs: readonly string[],
    look: () => void,
    until: AbortSignal,
  ): Promise<StartFault | undefined> {
    const { appearWithinMs = 120_000, lookEveryMs = 250 } = this.#options;
    const seen = new Map<string, ProcessIdentity>();
    const late = performance.now() + appearWithinMs;
    while (!until.aborted) {
      look();
      const hung = this.#start.fault();
      if (hung !== undefined) return hung;
      const living = livingPrograms(session);
      for (const program of programs) {
        const known = seen.get(program);
        // A process has no arguments while it becomes another program: its number shows that it is
        // alive.
        if (known !== undefined && isAlive(known)) continue;
        const found = living.get(program);
        if (found !== undefined) seen.set(program, found);
        else if (known !== undefined) return { program, reason: 'it has ended' };
        else if (performance.now() > late)
          return { program, reason: `it did not start within ${Math.round(appearWithinMs / 1000)} s` };
      }
      await delay(lookEveryMs, undefined, { signal: until }).catch(() => undefined);
    }
    return undefined;
  }

  #tell(fault: StartFault, killsBefore: number): void {
    const forMemory = endedForMemory() > killsBefore;
    this.#log.error('core.program_ended', {
      ...fault,
      out_of_memory: forMemory,
      remedy: forMemory
        ? 'its container reached its memory limit: raise CORE_MEMORY in .env, then start again'
        : `read the end of ${join(this.#logs, 'takserver.log')}. The container restarts by itself`,
    });
  }
}

function expected(home: string): string[] {
  const path = join(home, SCRIPT);
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (error) {
    throw new StackError(
      `Couldn't read ${path}: ${codeOf(error)}.`,
      'run docker compose up release, which copies the files of the release to the volume',
      error,
    );
  }
  const programs = programsIn(text);
  if (programs.length > 0) return programs;
  throw new StackError(
    `${path} starts no program that Holdfast knows, so their state can't be watched.`,
    'restore that file from the release archive with ./scripts/setup.sh ARCHIVE',
  );
}

/** Starts the script in a new session, which identifies all of its processes. */
function started(home: string, environment: NodeJS.ProcessEnv): ChildProcess {
  return spawn('bash', [join(home, SCRIPT), 'init'], {
    cwd: home,
    env: environment,
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
}

function endOf(child: ChildProcess): Promise<string> {
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('exit', (code, signal) => resolve(signal === null ? `with code ${code}` : `by signal ${signal}`));
  });
}

function rotate(logs: string, log: Log): void {
  try {
    rotateLogs(logs, LARGEST_LOG_BYTES, KEPT_LOGS);
  } catch (error) {
    log.warn('core.logs_not_rotated', { error: codeOf(error) ?? 'unknown' });
  }
}

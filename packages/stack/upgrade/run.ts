// Carries an upgrade through its steps, and goes back by itself when the new version fails. Every
// step can be repeated, so that the next call continues where a crash ended this one.

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { messageOf, StackError } from '@holdfast/kit/app-error';
import { failureText, say } from '@holdfast/kit/command';
import { type UpgradeRecord } from '../../../shared/host/port.ts';
import { readUpgradeRecord, writeUpgradeRecord } from '../../../shared/host/upgrades.ts';
import { PARTIAL } from '../parts.ts';
import { type Layout, layoutOf } from '../process/layout.ts';
import { whileStopped } from '../process/ownership.ts';
import { stopProgram } from '../stop.ts';
import { endJournal, type Journal, type Step, stepsOf, UPGRADES, versionDirectory, writeJournal } from './journal.ts';
import { discardCopies, moveIn, moveOut, takeSnapshot } from './snapshot.ts';
import { discardVersions } from './versions.ts';

export interface Places {
  /** The installation that is upgraded. */
  home: string;
  /** This program, its scripts and its Node.js, which no step moves. */
  tools: string;
}

export const EXIT = { done: 0, returned: 4, stuck: 5 } as const;
const STEP_NAMES: Record<Step, string> = {
  stop: 'Stopping the stack',
  snapshot: 'Copying the data',
  'move-out': 'Putting the current data aside',
  'move-in': 'Putting the copy of the data back',
  switch: 'Changing the programs',
  start: 'Starting and checking',
};

/**
 * Runs the steps that are left. Resolves with the exit code. `stopFirst`: a start of the
 * interrupted run may still be under way.
 */
export async function continueUpgrade(places: Places, journal: Journal, stopFirst: boolean): Promise<number> {
  return new UpgradeRun(places, journal).run(stopFirst);
}

class UpgradeRun {
  readonly #places: Places;
  readonly #layout: Layout;
  readonly #interrupted = new AbortController();
  #journal: Journal;

  constructor(places: Places, journal: Journal) {
    this.#places = places;
    this.#journal = journal;
    this.#layout = layoutOf(journal.data);
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const)
      process.on(signal, () => {
        say(`\nInterrupted by ${signal}. Going back to version ${journal.from}...\n`);
        this.#interrupted.abort();
      });
  }

  async run(stopFirst: boolean): Promise<number> {
    try {
      if (stopFirst) await this.#endEarlier();
      await this.#steps();
    } catch (error) {
      if (this.#journal.direction === 'return' || this.#journal.step.startsWith('move')) return this.#stuck(error);
      say(`\n${failureText(error)}`);
      try {
        this.#turnBack(messageOf(error));
        await this.#steps();
      } catch (failure) {
        return this.#stuck(failure);
      }
    }
    return this.#end();
  }

  async #steps(): Promise<void> {
    for (;;) {
      const { step, direction } = this.#journal;
      if (direction === 'forward') this.#interrupted.signal.throwIfAborted();
      say(`${STEP_NAMES[step]}${step === 'start' ? ` version ${this.#wanted()}` : ''}...\n`);
      await this.#step(step);
      const steps = stepsOf(this.#journal);
      const next = steps[steps.indexOf(step) + 1];
      if (next === undefined) return;
      this.#change({ step: next });
    }
  }

  /** The version that runs at the end of this direction. */
  #wanted(): string {
    return this.#journal.direction === 'forward' ? this.#journal.to : this.#journal.from;
  }

  #change(change: Partial<Journal>): void {
    this.#journal = { ...this.#journal, ...change };
    writeJournal(this.#places.home, this.#journal);
  }

  /** Only what was done is undone. */
  #turnBack(reason: string): void {
    const { step, kind } = this.#journal;
    const isEarly = step === 'stop' || step === 'snapshot';
    const hasNewData = step === 'start' || kind === 'back-to-snapshot';
    this.#change({ direction: 'return', reason, step: isEarly ? 'start' : hasNewData ? 'stop' : 'switch' });
    say(`\nGoing back to version ${this.#journal.from}.\n`);
  }

  async #step(step: Step): Promise<void> {
    const { kind, direction, snapshot, set_aside: aside, data } = this.#journal;
    const undoesBack = kind === 'back-to-snapshot' && direction === 'return';
    const [out, into] = undoesBack ? [snapshot ?? aside, aside] : [aside, snapshot];
    switch (step) {
      case 'stop':
        return this.#stop();
      case 'snapshot':
        return this.#whileStopped(() => takeSnapshot(this.#layout, snapshot ?? `${data}${PARTIAL}`));
      case 'move-out':
        return this.#whileStopped(() => moveOut(this.#layout, out));
      case 'move-in':
        return this.#whileStopped(() => moveIn(this.#layout, into ?? aside));
      case 'switch':
        return this.#switch();
      case 'start':
        return this.#start();
    }
  }

  async #stop(): Promise<void> {
    if (!existsSync(this.#layout.root)) return;
    const { tools: home } = this.#places;
    const code = await stopProgram({ home, argv: ['--data', this.#layout.root], cwd: '/', environment: {} });
    if (code !== 0) throw new StackError(`The stack in ${this.#layout.root} did not stop.`, 'read the message above');
  }

  /** Waits for a program that a killed run started. */
  async #endEarlier(): Promise<void> {
    const seconds = String(this.#journal.within_seconds);
    const waiting = spawn('flock', ['--wait', seconds, this.#programLock, 'true'], { stdio: 'ignore' });
    const [code] = (await once(waiting, 'close')) as [number | null];
    if (code !== 0)
      throw new StackError(
        `A start of the interrupted upgrade still runs after ${seconds} s.`,
        `end it: fuser -k ${this.#programLock}`,
      );
    await this.#stop();
  }

  /** Held by every program that this runs, so that the next run sees one that outlived it. */
  get #programLock(): string {
    return join(this.#places.home, UPGRADES, 'program.lock');
  }

  async #whileStopped(work: () => void | Promise<void>): Promise<void> {
    await whileStopped(this.#places.tools, this.#layout, say, work);
  }

  async #switch(): Promise<void> {
    const { home, tools } = this.#places;
    const { from, to, direction } = this.#journal;
    const versions = direction === 'forward' ? [from, to] : [to, from];
    const child = spawn('bash', [join(tools, 'scripts/versions.sh'), 'switch', home, ...versions], {
      detached: true,
      stdio: ['ignore', 'inherit', 'inherit'],
    });
    const [code] = (await once(child, 'close')) as [number | null];
    if (code !== 0) throw new StackError(`Couldn't change the programs in ${home}.`, 'read the message above');
  }

  /** Starts the version and checks it as a device would. */
  async #start(): Promise<void> {
    const { direction, was_running: wasRunning, reason, data } = this.#journal;
    if (direction === 'return') {
      rmSync(`${this.#journal.snapshot}${PARTIAL}`, { recursive: true, force: true });
      if (reason !== null) await this.#record('returned');
      else if (!wasRunning) return;
    }
    const deadline = performance.now() + this.#journal.within_seconds * 1000;
    const left = (): number => Math.max(1, Math.floor((deadline - performance.now()) / 1000));
    const { home } = this.#places;
    await this.#program(join(home, 'scripts/start.sh'), this.#startArguments(), left());
    const node = join(home, `node_modules/node-linux-${process.arch}/bin/node`);
    const seconds = left();
    await this.#program(node, [join(home, 'dist/prove.js'), '--data', data, '--within', `${seconds}`], seconds + 60);
    if (!wasRunning) await this.#stop();
  }

  #startArguments(): string[] {
    return ['--embedded', '--data', this.#journal.data, ...this.#journal.arguments, '--detach'];
  }

  /** Throws its last message when it fails or takes too long. */
  async #program(program: string, args: string[], withinSeconds: number): Promise<void> {
    const child = spawn('flock', ['--close', this.#programLock, program, ...args], {
      cwd: this.#places.home,
      detached: true,
      env: { ...process.env, HOLDFAST_UPGRADE: '1' },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    const end = (): void => endGroup(child);
    const late = setTimeout(end, withinSeconds * 1000);
    const { signal } = this.#interrupted;
    if (this.#journal.direction === 'forward') signal.addEventListener('abort', end);
    let text = '';
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding('utf8').on('data', (chunk: string) => {
        text = (text + chunk).slice(-8000);
        say(chunk);
      });
    const begun = performance.now();
    const [code] = (await once(child, 'close')) as [number | null];
    clearTimeout(late);
    signal.removeEventListener('abort', end);
    if (code === 0) return;
    const isLate = performance.now() - begun >= withinSeconds * 1000;
    const version = this.#wanted();
    throw new StackError(
      isLate
        ? `Version ${version} did not start and pass the connection check within ${this.#journal.within_seconds} s.`
        : `Version ${version} does not work: ${lastMessage(text)}`,
      `read the logs in ${this.#layout.logs}`,
    );
  }

  /** After the way back, the record in the restored data tells of the upgrade before. */
  async #record(outcome: UpgradeRecord['outcome']): Promise<void> {
    const { from, to, kind, reason, snapshot, set_aside: aside, schema_changed } = this.#journal;
    const { management } = this.#layout;
    if (!existsSync(management)) return;
    const at = new Date().toISOString();
    const earlier = await readUpgradeRecord(management).catch(() => undefined);
    const isForward = outcome === 'upgraded' || outcome === 'back';
    const wayBack = { version: from, at, snapshot, schema_changed };
    writeUpgradeRecord(management, {
      outcome,
      from,
      to,
      at,
      reason: isForward ? null : reason,
      cleared: false,
      set_aside: existsSync(aside) ? aside : null,
      way_back: isForward ? (kind === 'apply' ? wayBack : null) : (earlier?.way_back ?? null),
    });
  }

  async #end(): Promise<number> {
    const { direction, kind, from, to, snapshot, set_aside: aside, reason, was_running: wasRunning } = this.#journal;
    const { home } = this.#places;
    const runs = wasRunning ? 'runs and passed the connection check' : 'passed the connection check and was stopped';
    if (direction === 'return') {
      // A version that failed is fetched again next time.
      if (reason !== null && kind === 'apply') rmSync(versionDirectory(home, to), { recursive: true, force: true });
      endJournal(home);
      if (reason === null)
        say(`The upgrade was interrupted before it changed anything. Version ${from} is in place.\n`);
      else say(`\nThe upgrade to ${to} failed. Version ${from} ${runs}.\n${keptData(aside)}`);
      return EXIT.returned;
    }
    await this.#record(kind === 'apply' ? 'upgraded' : 'back');
    discardCopies(this.#layout, kind === 'apply' ? [snapshot] : [aside]);
    discardVersions(home, [from, to]);
    endJournal(home);
    say(
      `\nVersion ${to} ${runs}. To return to ${from}: ./scripts/upgrade.sh back\n${kind === 'apply' ? '' : keptData(aside)}`,
    );
    return EXIT.done;
  }

  /** The journal stays, so that the next call tries again. */
  async #stuck(error: unknown): Promise<number> {
    const { from, to } = this.#journal;
    try {
      this.#change({ reason: this.#journal.reason ?? messageOf(error) });
      await this.#record('stuck');
    } catch {
      // A full disk: the message below is what is left.
    }
    say(
      `\n${failureText(error)}\nThe upgrade from ${from} to ${to} is stuck. Nothing was deleted.\n  Remedy: repair what the message names, then ./scripts/upgrade.sh recover continues. See docs/upgrade.md\n`,
    );
    return EXIT.stuck;
  }
}

function keptData(aside: string): string {
  if (!existsSync(aside)) return '';
  return `The data that was replaced is kept in ${aside}. To delete it: ./scripts/upgrade.sh check --clear\n`;
}

/** The supervisor that a start launched stops by itself. */
function endGroup(child: ChildProcess): void {
  try {
    if (child.pid !== undefined) process.kill(-child.pid, 'SIGTERM');
  } catch {
    // It has ended meanwhile.
  }
}

/** The message above the remedy, else the last line. */
function lastMessage(text: string): string {
  const lines = text.split('\n').filter((line) => line.trim() !== '');
  const remedy = lines.findLastIndex((line) => line.startsWith('  Remedy: '));
  const failed = lines.find((line) => line.startsWith('The connection check failed.'));
  return (failed ?? lines[remedy > 0 ? remedy - 1 : lines.length - 1] ?? 'no message').trim();
}

// Tracks who owns a data directory and which processes belong to its stack, across crashes.

import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { codeOf, explainFileError, StackError } from '@holdfast/kit/app-error';
import { writeFileAtomically } from '@holdfast/kit/files';
import { type Guard, guardScript, takeLock } from './guard.ts';
import type { Layout } from './layout.ts';
import type { Report } from './report.ts';

const ASK_EVERY_MS = 50;

/**
 * Identifies a process. Its number may be reused, so the start time is part of it (Linux, /proc).
 */
export interface ProcessIdentity {
  pid: number;
  /** Clock ticks from boot to the start of the process. */
  startTicks: number;
}

/**
 * The identity of a running process; undefined if there is none with that number, or only a zombie.
 */
export function identify(pid: number): ProcessIdentity | undefined {
  const { startTicks } = living(pid) ?? {};
  return startTicks === undefined ? undefined : { pid, startTicks };
}

/** All running processes of a session. */
export function processesOf(session: number): ProcessIdentity[] {
  return readdirSync('/proc')
    .filter((entry) => /^\d+$/.test(entry))
    .flatMap((entry) => {
      const found = living(Number(entry));
      return found?.session === session ? [{ pid: Number(entry), startTicks: found.startTicks }] : [];
    });
}

function living(pid: number): { session: number; startTicks: number } | undefined {
  const stat = readOrUndefined(`/proc/${pid}/stat`);
  if (stat === undefined) return undefined;
  // Skips the program name, which may contain spaces.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  if (fields[0] === 'Z' || fields[0] === 'X') return undefined;
  return { session: Number(fields[3]), startTicks: Number(fields[19]) };
}

/** True while exactly this process runs. */
export function isAlive(identity: ProcessIdentity): boolean {
  return identify(identity.pid)?.startTicks === identity.startTicks;
}

/** Program and arguments of a process; empty if there is none. */
export function commandLine(pid: number): string[] {
  return (readOrUndefined(`/proc/${pid}/cmdline`) ?? '').split('\0').slice(0, -1);
}

/**
 * Sends the signals in order, waiting `eachMs` after each, until exactly this process has ended.
 */
export async function endProcess(
  identity: ProcessIdentity,
  signals: readonly NodeJS.Signals[],
  eachMs: number,
): Promise<void> {
  for (const signal of signals) {
    if (!isAlive(identity)) return;
    try {
      process.kill(identity.pid, signal);
    } catch (error) {
      if (!isAlive(identity)) return;
      throw new StackError(
        `Couldn't stop process ${identity.pid}, which a crash left behind: permission denied.`,
        'stop it as its owner or as root, then start again',
        error,
      );
    }
    for (let waited = 0; waited < eachMs && isAlive(identity); waited += ASK_EVERY_MS) await delay(ASK_EVERY_MS);
  }
}

/** Name and number of the process that listens on a TCP port, if this user may see it. */
export function listenerOn(port: number): { pid: number; name: string } | undefined {
  const inodes = new Set(listeningInodes(port));
  if (inodes.size === 0) return undefined;
  for (const entry of readdirSync('/proc')) {
    if (!/^\d+$/.test(entry) || !openSockets(entry).some((inode) => inodes.has(inode))) continue;
    return { pid: Number(entry), name: (readOrUndefined(`/proc/${entry}/comm`) ?? '').trim() };
  }
  return undefined;
}

function listeningInodes(port: number): string[] {
  const wanted = port.toString(16).toUpperCase().padStart(4, '0');
  return ['/proc/net/tcp', '/proc/net/tcp6'].flatMap((file) =>
    (readOrUndefined(file) ?? '')
      .split('\n')
      .map((line) => line.trim().split(/\s+/))
      .filter((fields) => fields[3] === '0A' && fields[1]?.endsWith(`:${wanted}`))
      .map((fields) => fields[9] ?? ''),
  );
}

function openSockets(pid: string): string[] {
  try {
    return readdirSync(`/proc/${pid}/fd`).map(
      (fd) => /^socket:\[(\d+)\]$/.exec(linkOf(`/proc/${pid}/fd/${fd}`))?.[1] ?? '',
    );
  } catch {
    return [];
  }
}

function linkOf(path: string): string {
  try {
    return readlinkSync(path);
  } catch {
    return '';
  }
}

function readOrUndefined(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return undefined;
  }
}

const DYING_STACK_MS = 15_000;
const ASK_AGAIN_MS = 250;

interface Listed extends ProcessIdentity {
  role: string;
}

/**
 * Locks the directory. Throws a StackError if a stack runs there. Waits for a stack whose
 * supervisor is dead, and ends what it left behind.
 */
export async function lockDirectory(
  guardScript: string,
  layout: Layout,
  report: Report,
  lost: () => void,
  aborted: AbortSignal,
): Promise<Guard> {
  const deadline = performance.now() + DYING_STACK_MS;
  let isReported = false;
  for (;;) {
    const guard = await takeLock(guardScript, layout.lock, lost);
    if (guard !== undefined) {
      await endLeftovers(layout, (text) => report.warn(text));
      return guard;
    }
    const supervisor = runningSupervisor(layout);
    if (supervisor !== undefined || performance.now() > deadline) throw alreadyRuns(layout, supervisor);
    if (!isReported) {
      isReported = true;
      report.warn('Another stack in this directory is starting or stopping. Waiting for it.');
    }
    await delay(ASK_AGAIN_MS);
    aborted.throwIfAborted();
  }
}

function alreadyRuns(layout: Layout, supervisor: Listed | undefined): StackError {
  const who = supervisor === undefined ? 'Another start' : `A Holdfast stack (process ${supervisor.pid})`;
  return new StackError(
    `${who} already uses ${layout.root}. It was not changed.`,
    `use it (its addresses are in ${layout.stack}), stop it with ./scripts/stop.sh --data ${layout.root}, or start a second stack with another --data and --offset`,
  );
}

/** The supervisor of the stack in this directory; undefined if it isn't running. */
export function runningSupervisor(layout: Layout): Listed | undefined {
  return readProcesses(layout).find((listed) => listed.role === 'supervisor' && isAlive(listed));
}

/**
 * Ends the listed processes that are still running; true if there were any. The caller must hold
 * the lock.
 */
export async function endLeftovers(layout: Layout, say: (text: string) => void): Promise<boolean> {
  const left = readProcesses(layout).filter((listed) => listed.pid !== process.pid && isAlive(listed));
  if (left.length === 0) return false;
  say(`Stopping processes left over from a crash: ${left.map(({ role, pid }) => `${role} (${pid})`).join(', ')}.`);
  const first = (role: string): NodeJS.Signals => (role === 'database' ? 'SIGINT' : 'SIGTERM');
  await Promise.all(left.map((listed) => endProcess(listed, [first(listed.role), 'SIGKILL'], 6000)));
  return true;
}

function readProcesses(layout: Layout): Listed[] {
  let text: string;
  try {
    text = readFileSync(layout.processes, 'utf8');
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return [];
    throw explainFileError(error, layout.processes);
  }
  try {
    const list: unknown = JSON.parse(text);
    return Array.isArray(list) ? list.filter(isListed) : [];
  } catch {
    return [];
  }
}

function isListed(entry: unknown): entry is Listed {
  if (typeof entry !== 'object' || entry === null) return false;
  return (
    'pid' in entry &&
    typeof entry.pid === 'number' &&
    'startTicks' in entry &&
    'role' in entry &&
    typeof entry.role === 'string'
  );
}

/**
 * Keeps the list of processes in DIR/run/processes.json, and passes it to `publish` on each change.
 */
export class Roster {
  readonly #file: string;
  readonly #publish: (pids: { role: string; pid: number }[]) => void;
  readonly #listed = new Map<string, Listed>();

  constructor({ processes }: Layout, publish: (pids: { role: string; pid: number }[]) => void) {
    this.#file = processes;
    this.#publish = publish;
  }

  add(role: string, pid: number): void {
    const identity = identify(pid);
    if (identity !== undefined) this.#listed.set(role, { role, ...identity });
    this.#write();
  }

  remove(role: string): void {
    this.#listed.delete(role);
    this.#write();
  }

  clear(): void {
    this.#listed.clear();
    this.#write();
  }

  #write(): void {
    const all = [...this.#listed.values()];
    writeFileAtomically(this.#file, `${JSON.stringify(all)}\n`);
    this.#publish(all.map(({ role, pid }) => ({ role, pid })));
  }
}

/**
 * Runs `work` on the data directory of a stopped stack, which can't be started meanwhile. Rejects
 * with a StackError if a stack is running. Ends this process if another one takes the lock.
 */
export async function whileStopped<T>(
  home: string,
  layout: Layout,
  say: (text: string) => void,
  work: () => T | Promise<T>,
): Promise<T> {
  const report: Report = { step: () => () => undefined, warn: (text) => say(`${text}\n`), event: () => undefined };
  const lost = (): never => {
    say(
      `Another stack has started in ${layout.root}.\n  Remedy: stop it, then try again. The next start finishes what was interrupted\n`,
    );
    process.exit(1);
  };
  const guard = await lockDirectory(guardScript(home), layout, report, lost, new AbortController().signal);
  try {
    return await work();
  } finally {
    await guard.release();
  }
}

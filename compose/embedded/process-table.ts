// Who a process is, beyond its number: numbers are used again, start times are not (Linux, /proc).

import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { StackError } from './stack-error.ts';

const ASK_EVERY_MS = 50;

export interface ProcessIdentity {
  pid: number;
  /** Clock ticks from boot to the start of the process. */
  startTicks: number;
}

/** The identity of a living process; undefined when there is none of that number, or only its zombie. */
export function identify(pid: number): ProcessIdentity | undefined {
  const stat = readOrUndefined(`/proc/${pid}/stat`);
  if (stat === undefined) return undefined;
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  if (fields[0] === 'Z' || fields[0] === 'X') return undefined;
  return { pid, startTicks: Number(fields[19]) };
}

/** True while exactly this process lives. */
export function isAlive(identity: ProcessIdentity): boolean {
  return identify(identity.pid)?.startTicks === identity.startTicks;
}

/** Program and arguments of a process; empty when there is none. */
export function commandLine(pid: number): string[] {
  return (readOrUndefined(`/proc/${pid}/cmdline`) ?? '').split('\0').slice(0, -1);
}

/** Sends the signals one after the other, each with `eachMs` to work, until exactly this process is gone. */
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
        `Process ${identity.pid} was left behind and may not be ended by this user.`,
        'end it as its owner or as root, then start again',
        error,
      );
    }
    for (let waited = 0; waited < eachMs && isAlive(identity); waited += ASK_EVERY_MS) await delay(ASK_EVERY_MS);
  }
}

/** Name and number of the process that listens on a TCP port, if it may be seen by this user. */
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

// Who a process is, beyond its number: numbers are used again, start times are not (Linux, /proc).

import { readdirSync, readFileSync, readlinkSync } from 'node:fs';

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

/** The working directory of a process, if it may be seen. */
export function workingDirectory(pid: number): string | undefined {
  try {
    return readlinkSync(`/proc/${pid}/cwd`);
  } catch {
    return undefined;
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

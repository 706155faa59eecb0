// What the processes that a process has started have open.

import { readdirSync, readFileSync, readlinkSync } from 'node:fs';

/** The processes that this one has started. */
export function childrenOf(pid: number): number[] {
  const text = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim();
  return text === '' ? [] : text.split(' ').map(Number);
}

/** Ports on which the children of a process listen. */
export function listeningPorts(pid: number): number[] {
  const sockets = new Set(
    childrenOf(pid).flatMap((child) =>
      readdirSync(`/proc/${child}/fd`).flatMap(
        (descriptor) => /^socket:\[(\d+)\]$/.exec(linkOf(child, descriptor))?.[1] ?? [],
      ),
    ),
  );
  const lines = readFileSync('/proc/net/tcp', 'utf8').trim().split('\n').slice(1);
  return lines.flatMap((line) => {
    const [, local = '', , state, , , , , , inode = ''] = line.trim().split(/\s+/);
    return state === '0A' && sockets.has(inode) ? [Number.parseInt(local.split(':')[1] ?? '', 16)] : [];
  });
}

function linkOf(pid: number, descriptor: string): string {
  try {
    return readlinkSync(`/proc/${pid}/fd/${descriptor}`);
  } catch {
    return '';
  }
}

// What must be true before anything is touched: ports free, enough disk, nothing left of a crash.

import { existsSync, statfsSync } from 'node:fs';
import { createServer } from 'node:net';
import { explainFileError, StackError } from '@holdfast/kit/app-error';
import { checkMajor, clearStaleServer } from './database/cluster.ts';
import type { StackPlan } from './plan.ts';
import { listenerOn } from './process/ownership.ts';
import type { Report } from './process/report.ts';

export interface WantedPort {
  address: string;
  port: number;
  purpose: string;
}

const MIB = 1024 ** 2;
const NEEDED_FOR_NEW_BYTES = 256 * MIB;
const NEEDED_FOR_EXISTING_BYTES = 48 * MIB;

/** Ends what a crash has left behind; refuses what stands against a start. */
export async function preflight({ layout, ports, addresses, flows }: StackPlan, report: Report): Promise<void> {
  const done = report.step('preflight');
  checkMajor(layout.pgdata);
  const leftBehind = await clearStaleServer(layout.pgdata);
  if (leftBehind === 'server ended') report.warn('A database server left behind by a crash was ended.');
  if (leftBehind === 'stale file') report.warn('A stale postmaster.pid of a crash was removed.');
  checkDiskSpace(layout.root, !existsSync(layout.pgdata));
  const everywhere = addresses.flatMap((address) => [
    { address, port: ports.api, purpose: 'API and console' },
    { address, port: ports.portal, purpose: 'portal' },
    { address, port: ports.core, purpose: 'API of the core' },
    { address, port: ports.enrollment, purpose: 'enrollment' },
    { address, port: ports.streaming, purpose: 'streaming' },
  ]);
  const onLoopback = (port: number, purpose: string): WantedPort => ({ address: '127.0.0.1', port, purpose });
  await checkPorts([
    ...everywhere,
    onLoopback(ports.database, 'PostgreSQL'),
    onLoopback(ports.identity, 'identity provider'),
    onLoopback(ports.ldap, 'LDAP'),
    ...(flows === undefined ? [] : [onLoopback(ports.flows, 'flow engine')]),
  ]);
  done('ports free, disk has room');
}

/** Refuses with every taken port at once, naming the program that holds it where it may be seen. */
export async function checkPorts(wanted: readonly WantedPort[]): Promise<void> {
  const taken: string[] = [];
  let missingAddress = false;
  for (const { address, port, purpose } of wanted) {
    const code = await tryPort(address, port);
    if (code === undefined) continue;
    missingAddress ||= code === 'EADDRNOTAVAIL';
    taken.push(`${address}:${port} (${purpose}) ${reason(code, port)}`);
  }
  if (taken.length === 0) return;
  throw new StackError(
    `Not available: ${taken.join('; ')}.`,
    missingAddress
      ? 'give --listen an address of this machine, or 0.0.0.0 for all of them'
      : 'stop what holds it (another Holdfast: ./scripts/stop.sh --data ITS_DIRECTORY), or shift every port with --offset 1000',
  );
}

function reason(code: string, port: number): string {
  if (code === 'EADDRINUSE') {
    const holder = listenerOn(port);
    return holder === undefined ? 'is in use' : `is in use by ${holder.name} (process ${holder.pid})`;
  }
  if (code === 'EADDRNOTAVAIL') return 'is not an address of this machine';
  return code === 'EACCES' ? 'may not be used by this user' : `fails with ${code}`;
}

/** The system's error code for listening there, or undefined when it works. */
async function tryPort(address: string, port: number): Promise<string | undefined> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message));
    server.listen({ host: address, port, exclusive: true }, () => server.close(() => resolve(undefined)));
  });
}

/** Refuses when the disk of `directory` has too little room to start, with both figures. */
export function checkDiskSpace(directory: string, isNew: boolean): void {
  const needed = isNew ? NEEDED_FOR_NEW_BYTES : NEEDED_FOR_EXISTING_BYTES;
  let free: number;
  try {
    const { bavail, bsize } = statfsSync(directory);
    free = bavail * bsize;
  } catch (error) {
    throw explainFileError(error, directory);
  }
  if (free >= needed) return;
  throw new StackError(
    `The disk of ${directory} is full: ${Math.floor(free / MIB)} MB free, ${needed / MIB} MB are needed to start. No data was changed.`,
    'free some space, or choose another place with --data DIR',
  );
}

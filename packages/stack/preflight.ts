// Checks what a start needs: free ports, enough disk space, no leftovers of a crash.

import { existsSync, statfsSync } from 'node:fs';
import { createServer } from 'node:net';
import { explainFileError, StackError } from '@holdfast/kit/app-error';
import { natsProgram } from './cluster.ts';
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

/** Ends leftovers of a crash. Throws a StackError if something prevents the start. */
export async function preflight(
  { layout, ports, addresses, cluster, flows, backup }: StackPlan,
  report: Report,
): Promise<void> {
  const done = report.step('preflight');
  if (cluster !== undefined) natsProgram();
  checkMajor(layout.pgdata);
  const leftBehind = await clearStaleServer(layout.pgdata);
  if (leftBehind === 'server ended') report.warn('Stopped a database server left over from a crash.');
  if (leftBehind === 'stale file') report.warn('Removed a postmaster.pid left over from a crash.');
  checkDiskSpace(layout.root, !existsSync(layout.pgdata));
  const everywhere = addresses.flatMap((address) => [
    { address, port: ports.api, purpose: 'API and console' },
    { address, port: ports.portal, purpose: 'portal' },
    { address, port: ports.core, purpose: 'API of the core' },
    { address, port: ports.enrollment, purpose: 'enrollment' },
    { address, port: ports.streaming, purpose: 'streaming' },
    ...(cluster?.nodes.slice(1) ?? []).flatMap((node) => [
      { address, port: node.ports.core, purpose: `API of ${node.role}` },
      { address, port: node.ports.enrollment, purpose: `enrollment of ${node.role}` },
      { address, port: node.ports.streaming, purpose: `streaming of ${node.role}` },
    ]),
  ]);
  const onLoopback = (port: number, purpose: string): WantedPort => ({ address: '127.0.0.1', port, purpose });
  await checkPorts([
    ...everywhere,
    onLoopback(ports.database, 'PostgreSQL'),
    onLoopback(ports.identity, 'identity provider'),
    onLoopback(ports.ldap, 'LDAP'),
    ...(cluster === undefined ? [] : [onLoopback(ports.nats, 'messages between core nodes')]),
    ...(flows === undefined ? [] : [onLoopback(ports.flows, 'flow engine')]),
    ...(backup === undefined ? [] : [onLoopback(ports.backup, 'backup service')]),
  ]);
  done('ports are free, enough disk space');
}

/**
 * Throws a StackError that lists every unavailable port and, if visible, the program that uses it.
 */
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
    `Couldn't use these ports: ${taken.join(', ')}.`,
    missingAddress
      ? 'give --listen an address of this machine, or 0.0.0.0 for all addresses'
      : 'stop the program that uses the port (another Holdfast: ./scripts/stop.sh --data ITS_DIRECTORY), or use other ports with --offset 1000',
  );
}

function reason(code: string, port: number): string {
  if (code === 'EADDRINUSE') {
    const holder = listenerOn(port);
    return holder === undefined ? 'is in use' : `is in use by ${holder.name} (process ${holder.pid})`;
  }
  if (code === 'EADDRNOTAVAIL') return 'is not an address of this machine';
  return code === 'EACCES' ? 'is not allowed for this user' : `fails with ${code}`;
}

/** Tries to listen there; the system's error code, or undefined if it works. */
async function tryPort(address: string, port: number): Promise<string | undefined> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message));
    server.listen({ host: address, port, exclusive: true }, () => server.close(() => resolve(undefined)));
  });
}

/**
 * Throws a StackError with both sizes if the disk of `directory` has too little free space to
 * start.
 */
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
    `The disk of ${directory} is full: ${Math.floor(free / MIB)} MB free, ${needed / MIB} MB needed to start. No data was changed.`,
    'free some space, or choose another directory with --data DIR',
  );
}

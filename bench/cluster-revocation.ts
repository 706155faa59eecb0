// How soon a revoked device is off every node of a real stack of three.

import { X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect, type TLSSocket } from 'node:tls';
import { coreApi } from './core-api.ts';
import { streamOf } from './cot-storage.ts';
import { report, reportAim, sampleOf, show } from './measure.ts';
import { benchStack } from './stack.ts';

const NODES = 3;
const PORT_STEP = 10;
const WITHIN_MS = 10_000;
/** For what the core does after a connection. */
const CALM_MS = 1_000;

export async function revocation(rounds: number): Promise<void> {
  const directory = mkdtempSync(join(tmpdir(), 'holdfast-bench-revocation-'));
  const stack = await benchStack({}, ['--cluster', String(NODES)]);
  const api = coreApi(stack);
  const answered: number[] = [];
  const gone: number[] = [];
  try {
    for (let round = 0; round < rounds; round++) {
      const { port, files } = await streamOf(stack, directory, `bench-revoked-${round}`);
      const certificate = readFileSync(files.certificate);
      const sockets = await Promise.all(
        Array.from({ length: NODES }, (_, index) => opened(port + index * PORT_STEP, files.ca, certificate, files.key)),
      );
      await new Promise((resolve) => setTimeout(resolve, CALM_MS));
      const hash = new X509Certificate(certificate).fingerprint256;
      const begun = performance.now();
      const closed = Promise.all(
        sockets.map((socket) => once(socket, 'close', { signal: AbortSignal.timeout(WITHIN_MS) })),
      );
      await api.ask('DELETE', `/Marti/api/certadmin/cert/${hash}`);
      answered.push(performance.now() - begun);
      await closed;
      gone.push(performance.now() - begun);
    }
  } finally {
    api.close();
    stack.stop();
    rmSync(directory, { recursive: true, force: true });
  }
  report('cluster: revocation, answer of the node', show(sampleOf(answered), 'ms'));
  report('cluster: revocation, off three nodes', show(sampleOf(gone), 'ms'));
  reportAim('cluster: revocation, off three nodes, the slowest', sampleOf(gone).most, 1_000, 'ms', { digits: 0 });
}

async function opened(port: number, ca: string, cert: Buffer, key: string): Promise<TLSSocket> {
  const files = { ca: readFileSync(ca), cert, key: readFileSync(key) };
  const socket = connect({ host: '127.0.0.1', port, ...files });
  await once(socket, 'secureConnect');
  socket.on('error', () => undefined).resume();
  return socket;
}

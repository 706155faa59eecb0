// Memory of one open connection: 10,000 clients of 8089 over mutual TLS, against a bare Node TLS
// server with the same certificates that holds as many and does nothing.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type BothFiles, madeFiles, startBare, startCrowd, startStream, type OwnServer } from './cot-servers.ts';
import { cpuSecondsOf, report, reportAim, residentMb } from './measure.ts';

const CLIENTS = Number(process.env['HOLDFAST_BENCH_CLIENTS'] ?? 10_000);
/** So many of one address need more places. */
const PLACES = CLIENTS * 2;
/** For garbage of the handshakes. */
const CALM_MS = 10_000;

export async function run(): Promise<void> {
  const place = mkdtempSync(join(tmpdir(), 'holdfast-bench-'));
  try {
    const files = await madeFiles(place);
    const bare = await held('bare', () => startBare(files));
    const core = await held('core', () => startedStream(files));
    reportAim('connections: memory of one, ratio to bare', core / bare, 1.6, '');
  } finally {
    rmSync(place, { recursive: true, force: true });
  }
}

const startedStream = (files: BothFiles): Promise<OwnServer> => startStream(files, { maxConnections: PLACES });

/** Kilobytes of one connection. */
async function held(name: string, start: () => Promise<OwnServer>): Promise<number> {
  const server = await start();
  const [before, cpu] = [residentMb(server.pid), cpuSecondsOf(server.pid)];
  const crowd = await startCrowd(server, { connections: CLIENTS });
  try {
    const used = cpuSecondsOf(server.pid) - cpu;
    await new Promise((done) => setTimeout(done, CALM_MS));
    const { ended } = await crowd.state();
    if (ended > 0) throw new Error(`${ended} of ${CLIENTS} connections ended`);
    const kilobytes = ((residentMb(server.pid) - before) * 1000) / CLIENTS;
    report(
      `connections: ${CLIENTS} held, ${name}`,
      `${kilobytes.toFixed(1)} kB each, ${(CLIENTS / used).toFixed(0)} accepted for each CPU-second`,
    );
    return kilobytes;
  } finally {
    crowd.end();
    await server.end();
  }
}

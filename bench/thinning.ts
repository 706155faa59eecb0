// What 1,000 clients of one group cost that send their position every 5 s, without thinning and
// with it: deliveries, bytes and CPU time of the stream a second.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { AUTO_THINNING, thinningSeconds } from '../packages/core/stream/thinning.ts';
import { type BothFiles, madeFiles, startCrowd, startStream } from './cot-servers.ts';
import { cpuSecondsOf, report } from './measure.ts';

const CLIENTS = Number(process.env['HOLDFAST_BENCH_CLIENTS'] ?? 1_000);
const EVERY_MS = 5_000;
const WARM_MS = 15_000;
const MEASURED_MS = Number(process.env['HOLDFAST_BENCH_THINNING_MS'] ?? 36_000);

export async function run(): Promise<void> {
  const place = mkdtempSync(join(tmpdir(), 'holdfast-bench-'));
  try {
    const files = await madeFiles(place);
    const off = await measured(files, []);
    const seconds = thinningSeconds(AUTO_THINNING, CLIENTS);
    const auto = await measured(files, AUTO_THINNING);
    for (const what of ['deliveries', 'dropped', 'megabytes', 'cpu'] as const) {
      const unit = {
        deliveries: 'a second',
        dropped: 'a second',
        megabytes: 'MB a second',
        cpu: 'CPU-seconds a second',
      }[what];
      const [from, to] = [off[what].toFixed(2), auto[what].toFixed(2)];
      report(`thinning: ${what}, off and auto (${seconds} s)`, `${from} and ${to} ${unit}`);
    }
  } finally {
    rmSync(place, { recursive: true, force: true });
  }
}

interface Cost {
  deliveries: number;
  /** For readers on the same machine that were too slow. */
  dropped: number;
  megabytes: number;
  cpu: number;
}

async function measured(files: BothFiles, thinning: typeof AUTO_THINNING): Promise<Cost> {
  const server = await startStream(files, { thinning: [...thinning] });
  const crowd = await startCrowd(server, { connections: CLIENTS, everyMs: EVERY_MS });
  try {
    await pause(WARM_MS);
    const [before, cpu, begun] = [await server.counts(), cpuSecondsOf(server.pid), performance.now()];
    await pause(MEASURED_MS);
    const [after, used] = [await server.counts(), cpuSecondsOf(server.pid) - cpu];
    const seconds = (performance.now() - begun) / 1000;
    const { ended } = await crowd.state();
    if (ended > 0) throw new Error(`${ended} clients ended`);
    return {
      deliveries: (after.delivered - before.delivered) / seconds,
      dropped: (after.dropped - before.dropped) / seconds,
      megabytes: (after.bytesWritten - before.bytesWritten) / 1e6 / seconds,
      cpu: used / seconds,
    };
  } finally {
    crowd.end();
    await server.end();
  }
}

function pause(ms: number): Promise<void> {
  return new Promise((done) => setTimeout(done, ms));
}

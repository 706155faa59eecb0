// One of a hundred readers stops reading: what the others notice, and what it costs the core in
// memory. Then the memory of a core with many connections.

import { type CotServer, load, type StreamServer } from './cot-servers.ts';
import { report, reportAim } from './measure.ts';

const READERS = 100;
const EVENTS_PER_SECOND = 50;
const BEFORE_MS = 20_000;
const STALLED_MS = Number(process.env['HOLDFAST_BENCH_COT_STALL_MS'] ?? 60_000);
const CONNECTIONS = 500;
const HELD_MS = 15_000;

/**
 * Events of 450 bytes, which the buffers of the system hold for a minute; and larger ones, of which
 * far more comes than may wait for one reader.
 */
export async function slowReader(core: StreamServer): Promise<void> {
  for (const padding of [0, 8_192]) {
    const before = await core.counts();
    const result = await load(core, {
      connections: READERS + 1,
      publishing: 1,
      work: {
        kind: 'steady',
        perSecond: EVENTS_PER_SECOND,
        forMs: BEFORE_MS + STALLED_MS,
        stallAfterMs: BEFORE_MS,
        padding,
      },
    });
    const after = await core.counts();
    const [quiet, stalled] = [result.latency?.p99 ?? Number.NaN, result.stalled?.p99 ?? Number.NaN];
    const what = `cot: one of ${READERS} stops for ${STALLED_MS / 1000} s, events of ${450 + padding} bytes`;
    report(`${what}: p99 of the others`, `${stalled.toFixed(2)} ms, before ${quiet.toFixed(2)} ms`);
    report(
      `${what}: missing at the others; dropped`,
      `${result.expected - result.delivered}; ${after.dropped - before.dropped}`,
    );
    const [idle, quietMb, most] = [result.idleMb, result.quietMb, result.maxMb].map((mb) => mb.toFixed(0));
    report(`${what}: memory`, `${idle} MB idle, ${quietMb} MB before, ${most} MB at the most`);
    reportAim(`${what}: p99, ratio to before`, stalled / quiet, 1.5, '');
    reportAim(`${what}: memory growth`, result.maxMb - result.quietMb, 32, 'MB');
  }
}

/** Of a process of the real stack, with its database. */
export async function manyConnections(core: CotServer): Promise<void> {
  const result = await load(core, {
    connections: CONNECTIONS,
    publishing: CONNECTIONS,
    work: { kind: 'steady', perSecond: EVENTS_PER_SECOND, forMs: HELD_MS },
  });
  const what = `cot: ${CONNECTIONS} connections, the core with its database`;
  report(`${what}: missing; ended`, `${result.expected - result.delivered}; ${result.ended}`);
  reportAim(`${what}: resident memory`, result.maxMb, 250, 'MB', { digits: 0 });
}

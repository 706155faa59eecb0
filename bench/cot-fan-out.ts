// How fast events go from those who send to those who read: the core against the bare broadcaster,
// in alternating rounds.

import type { CotShape } from './cot-order.ts';
import { type CotServer, load } from './cot-servers.ts';
import { cpuSecondsOf, report, reportAim, sampleOf, show } from './measure.ts';

const ROUNDS = 5;
const FLOOD_MS = 4_000;
const STEADY_MS = 8_000;
/** Events on their way at once: less than what the core lets wait for one reader. */
const WINDOW = 1_000;

export interface FanOut extends CotShape {
  called: string;
  /** Of the throughput, as a ratio to bare. */
  aim: number;
}

export const ONE_TO_HUNDRED: FanOut = { called: '1 x 100', connections: 101, publishing: 1, aim: 0.35 };
export const TEN_BY_TEN: FanOut = { called: '10 x 10', connections: 10, publishing: 10, aim: 0.25 };

const rounds = Number(process.env['HOLDFAST_BENCH_COT_ROUNDS'] ?? ROUNDS);

/**
 * A core, and what the report calls it. `idle` resolves when it has done what a round has left to
 * it: that counts too.
 */
export interface MeasuredCore extends CotServer {
  which: string;
  idle?: () => Promise<void>;
}

export async function throughput(
  bare: CotServer,
  core: MeasuredCore,
  { called, aim, connections, publishing }: FanOut,
): Promise<void> {
  const { which } = core;
  const order = { connections, publishing, work: { kind: 'flood', window: WINDOW, forMs: FLOOD_MS } } as const;
  const figures = { bare: [] as number[], core: [] as number[] };
  await load(core, order);
  await core.idle?.();
  let [missing, delivered, seconds, maxMb] = [0, 0, 0, 0];
  for (let round = 0; round < rounds; round++) {
    for (const [name, server] of [
      ['bare', bare],
      ['core', core],
    ] as const) {
      const result = await load(server, order);
      let afterwards = 0;
      if (server === core) {
        await core.idle?.();
        if (core.idle !== undefined) afterwards = cpuSecondsOf(core.pid) - result.cpuAtEnd;
        missing += result.expected - result.delivered;
        delivered += result.delivered;
        seconds += result.seconds;
        maxMb = Math.max(maxMb, result.maxMb);
      }
      figures[name].push(result.delivered / (result.cpuSeconds + afterwards) / 1000);
    }
  }
  const what = `cot: ${called}, flood`;
  const unit = 'k/CPU-s';
  report(`${what}, ${which}`, show(sampleOf(figures.core), unit));
  report(`${what}, bare broadcaster`, show(sampleOf(figures.bare), unit));
  report(`${what}, ${which}: deliveries a second; missing`, `${(delivered / seconds).toFixed(0)}; ${missing}`);
  report(`${what}, ${which}: resident memory at the most`, `${maxMb.toFixed(0)} MB`);
  reportAim(
    `${what}, ${which}: ratio to bare`,
    sampleOf(figures.core).median / sampleOf(figures.bare).median,
    aim,
    '',
    {
      least: true,
    },
  );
}

/** So many events a second in all. */
export async function latency(
  bare: CotServer,
  core: MeasuredCore,
  { called, connections, publishing }: FanOut,
  perSecond: number,
): Promise<void> {
  const figures = {
    bareP50: [] as number[],
    bareP99: [] as number[],
    coreP50: [] as number[],
    coreP99: [] as number[],
  };
  const { which } = core;
  let missing = 0;
  for (let round = 0; round < rounds; round++) {
    for (const [name, server] of [
      ['bare', bare],
      ['core', core],
    ] as const) {
      const result = await load(server, {
        connections,
        publishing,
        work: { kind: 'steady', perSecond, forMs: STEADY_MS },
      });
      if (name === 'core') missing += result.expected - result.delivered;
      figures[`${name}P50`].push(result.latency?.p50 ?? Number.NaN);
      figures[`${name}P99`].push(result.latency?.p99 ?? Number.NaN);
    }
  }
  const what = `cot: ${called}, ${perSecond} events a second`;
  const median = (values: number[]): number => sampleOf(values).median;
  report(`${what}, ${which}: p50`, show(sampleOf(figures.coreP50), 'ms', 2));
  report(`${what}, bare broadcaster: p50`, show(sampleOf(figures.bareP50), 'ms', 2));
  report(`${what}, ${which}: p99`, show(sampleOf(figures.coreP99), 'ms', 2));
  report(`${what}, bare broadcaster: p99`, show(sampleOf(figures.bareP99), 'ms', 2));
  report(`${what}, ${which}: missing`, String(missing));
  reportAim(`${what}: p50, ratio to bare`, median(figures.coreP50) / median(figures.bareP50), 1.5, '');
  reportAim(`${what}: p99, ratio to bare`, median(figures.coreP99) / median(figures.bareP99), 2, '');
}

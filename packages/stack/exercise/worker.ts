// The simulated clients of a simulation that management has started: one order on standard input,
// a report in JSON on each line of standard output. Ends when standard input does.

import { createInterface } from 'node:readline';
import { messageOf } from '@holdfast/kit/app-error';
import { SECOND_MS } from '@holdfast/kit/time';
import { type SimulationOrder, simulationOrderSchema, type SimulationReport } from '../../../shared/simulation/port.ts';
import { Crowd } from './crowd.ts';

export const WORKER_ARGUMENT = '--worker';

/** After the end of standard input. */
const GRACE_MS = 3_000;
const REPORT_EVERY_MS = 1_000;
const CENTER = { lat: 46.8, lon: 8.2 };

/** Resolves with the exit code. */
export async function simulateForManagement(): Promise<number> {
  const stop = new AbortController();
  const end = (): void => stop.abort();
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, end);
  process.stdout.on('error', end);
  const lines = createInterface(process.stdin);
  lines.once('close', () => {
    end();
    setTimeout(() => process.exit(1), GRACE_MS).unref();
  });
  const order = await new Promise<string>((resolve) => {
    lines.once('line', resolve);
    lines.once('close', () => resolve(''));
  });
  return order === '' ? 1 : run(simulationOrderSchema.parse(JSON.parse(order)), stop.signal);
}

async function run(order: SimulationOrder, stop: AbortSignal): Promise<number> {
  const { places, pem, clients, seconds, ramp, every } = order;
  const timing = { rampMs: ramp * SECOND_MS, everyMs: every * SECOND_MS };
  const crowd = new Crowd({ places, pem, clients, center: CENTER, ...timing });
  let phase: SimulationReport['phase'] = 'connecting';
  let error: string | null = null;
  const say = (): void => void process.stdout.write(`${JSON.stringify(reportOf(crowd, phase, error))}\n`);
  const timer = setInterval(say, REPORT_EVERY_MS);
  try {
    await crowd.arrive(stop);
    phase = 'sending';
    await crowd.work(seconds * SECOND_MS, stop);
    await crowd.settle();
    phase = 'done';
  } catch (thrown) {
    phase = 'failed';
    error = messageOf(thrown);
  }
  clearInterval(timer);
  const last = JSON.stringify(reportOf(crowd, phase, error));
  await crowd.leave();
  await new Promise((written) => process.stdout.write(`${last}\n`, written));
  return phase === 'done' ? 0 : 1;
}

/** Of what the crowd has done until now. */
export function reportOf(crowd: Crowd, phase: SimulationReport['phase'], error: string | null): SimulationReport {
  const { sent, expected, delivered, expectedUrgent, deliveredUrgent, ended, latencies } = crowd.counts();
  const at = (share: number): number | null =>
    latencies[Math.min(latencies.length - 1, Math.floor(latencies.length * share))] ?? null;
  return {
    phase,
    connected: crowd.connected,
    ended,
    sent,
    expected,
    delivered,
    expected_urgent: expectedUrgent,
    delivered_urgent: deliveredUrgent,
    p50_ms: at(0.5),
    p99_ms: at(0.99),
    error,
  };
}

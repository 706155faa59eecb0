// A simulator in memory: a test says what it reports.

import { AppError } from '@holdfast/kit/app-error';
import type { SimulationOrder, SimulationReport, Simulator } from '../../shared/simulation/port.ts';

export const SENDING: SimulationReport = {
  phase: 'sending',
  connected: 4,
  ended: 0,
  sent: 40,
  expected: 120,
  delivered: 118,
  expected_urgent: 12,
  delivered_urgent: 12,
  p50_ms: 2,
  p99_ms: 9,
  error: null,
};

export interface FakeSimulator extends Simulator {
  isInstalled: boolean;
  started: Map<string, SimulationOrder>;
  stopped: string[];
  /** Of the job that was started last; undefined: another process has it. */
  reports: SimulationReport | undefined;
}

export function fakeSimulator(): FakeSimulator {
  const fake: FakeSimulator = {
    isInstalled: true,
    started: new Map(),
    stopped: [],
    reports: undefined,
    async room() {
      if (!fake.isInstalled) throw new AppError('not_supported', 'dist/simulate.js is not installed.');
      return { cpus: 2, freeBytes: 2e9 };
    },
    async start(id, order) {
      fake.started.set(id, order);
      fake.reports = { ...SENDING, phase: 'connecting' };
    },
    async report(id) {
      return fake.started.has(id) ? fake.reports : undefined;
    },
    async stop(id) {
      fake.stopped.push(id);
    },
    async forget(id) {
      fake.started.delete(id);
    },
  };
  return fake;
}

// Runs the program of simulate.sh as a process of its own, of low priority. It ends with the
// process that has started it.

import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { availableParallelism, setPriority } from 'node:os';
import { createInterface } from 'node:readline';
import { AppError } from '@holdfast/kit/app-error';
import type { SimulationOrder, SimulationReport, Simulator, SimulatorRoom } from './port.ts';
import { simulationReportSchema } from './port.ts';

const PRIORITY = 10;
const MAX_WORDS = 300;
const NONE: SimulationReport = {
  phase: 'connecting',
  connected: 0,
  ended: 0,
  sent: 0,
  expected: 0,
  delivered: 0,
  expected_urgent: 0,
  delivered_urgent: 0,
  p50_ms: null,
  p99_ms: null,
  error: null,
};

interface Running {
  child: ChildProcess;
  report: SimulationReport;
}

export class SimulatorProcess implements Simulator {
  readonly #program: string;
  readonly #running = new Map<string, Running>();

  /** `program`: dist/simulate.js. */
  constructor(program: string) {
    this.#program = program;
  }

  async room(): Promise<SimulatorRoom> {
    if (!existsSync(this.#program))
      throw new AppError('not_supported', `${this.#program} is not installed. Remedy: run ./scripts/simulate.sh.`);
    return { cpus: availableParallelism(), freeBytes: process.availableMemory() };
  }

  async start(id: string, order: SimulationOrder): Promise<void> {
    const child = spawn(process.execPath, [this.#program, '--worker'], {
      env: { PATH: process.env['PATH'] ?? '' },
      stdio: ['pipe', 'pipe', 'pipe'],
    });
    const running: Running = { child, report: NONE };
    this.#running.set(id, running);
    let words = '';
    child.stderr.on('data', (chunk: Buffer) => (words = `${words}${chunk.toString()}`.slice(-MAX_WORDS)));
    createInterface(child.stdout).on('line', (line) => (running.report = reportOf(line) ?? running.report));
    const failed = (why: string): void => {
      if (running.report.phase === 'done' || running.report.phase === 'failed') return;
      running.report = { ...running.report, phase: 'failed', error: why };
    };
    child.once('error', ({ message }) => failed(`The simulator can't be started: ${message}`));
    child.once('close', (code, signal) =>
      failed(`The simulator ended with ${signal ?? String(code)}: ${words.trim() || 'no reason given'}`),
    );
    if (child.pid !== undefined) setPriority(child.pid, PRIORITY);
    child.stdin.on('error', () => undefined);
    // Stays open: its end tells the child that this process has gone.
    child.stdin.write(`${JSON.stringify(order)}\n`);
  }

  async report(id: string): Promise<SimulationReport | undefined> {
    return this.#running.get(id)?.report;
  }

  async stop(id: string): Promise<void> {
    this.#running.get(id)?.child.kill('SIGTERM');
  }

  async forget(id: string): Promise<void> {
    this.#running.get(id)?.child.kill('SIGKILL');
    this.#running.delete(id);
  }
}

function reportOf(line: string): SimulationReport | undefined {
  try {
    return simulationReportSchema.safeParse(JSON.parse(line)).data;
  } catch {
    return undefined;
  }
}

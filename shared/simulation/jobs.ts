// Defines the data of a job of kind `simulation`: its input, what it remembers, its result, and the
// audit intent that it answers.

import { z } from 'zod';
import type { Conclusion } from '../audit/port.ts';
import { finishFromJob, textOf } from '../jobs/ordered-jobs.ts';
import type { OpsJob } from '../jobs/port.ts';
import { missingOf, simulationReportSchema } from './port.ts';

export const SIMULATION_JOB = 'simulation';
export const SIMULATION_RUN = 'simulation.run';
/** Begins the line of the log that asks for the end. */
const STOP = 'Stop requested by ';

const inputSchema = z.object({
  clients: z.int(),
  minutes: z.int(),
  /** Seconds. */
  ramp: z.int(),
  every: z.int(),
  /** `seq` of the intent in the audit log. */
  intent: z.int(),
});
export type SimulationJobInput = z.infer<typeof inputSchema>;

/** CPU-seconds of the core at a time, and its share of one processor since. */
const cpuSchema = z.object({ at: z.iso.datetime(), seconds: z.number(), share: z.number().nullable() });

const memorySchema = z.object({
  stage: z.enum(['preparing', 'running', 'removing']),
  /** When a process of management last saw the simulator. */
  seen_at: z.iso.datetime(),
  /** That it has made. */
  channel_id: z.string().nullable(),
  report: simulationReportSchema.nullable(),
  cpu: cpuSchema.nullable(),
  memory_bytes: z.number().nullable(),
  thinning_seconds: z.number(),
  /** Why it ends, once it does. */
  outcome: z.enum(['done', 'stopped', 'lost', 'failed']).nullable(),
  error: z.string().nullable(),
});
export type SimulationMemory = z.infer<typeof memorySchema>;

const resultSchema = z.object({
  clients: z.int(),
  sent: z.int(),
  expected: z.int(),
  delivered: z.int(),
  lost: z.int(),
  /** Of chat and marks, which are never thinned. */
  lost_urgent: z.int(),
  ended: z.int(),
  p50_ms: z.number().nullable(),
  p99_ms: z.number().nullable(),
  /** Of one processor. */
  core_cpu_share: z.number().nullable(),
  core_memory_bytes: z.number().nullable(),
  thinning_seconds: z.number(),
  /** Members for whom the channel stays. */
  members_left: z.array(z.string()),
});
export type SimulationResult = z.infer<typeof resultSchema>;

/** Undefined if the row holds something else. */
export function readSimulationJob({
  input,
  memory,
}: Pick<OpsJob, 'input' | 'memory'>): { input: SimulationJobInput; memory: SimulationMemory | undefined } | undefined {
  const order = inputSchema.safeParse(input);
  const kept = memorySchema.nullable().safeParse(memory ?? null);
  return order.success && kept.success ? { input: order.data, memory: kept.data ?? undefined } : undefined;
}

/** Undefined if the job has no valid result. */
export function readResult({ result }: Pick<OpsJob, 'result'>): SimulationResult | undefined {
  return resultSchema.safeParse(result).data;
}

export function resultOf(memory: SimulationMemory, membersLeft: string[]): SimulationResult | null {
  const { report, cpu, memory_bytes, thinning_seconds } = memory;
  if (report === null) return null;
  const { connected, sent, expected, delivered, ended, p50_ms, p99_ms } = report;
  return {
    clients: connected,
    sent,
    expected,
    delivered,
    ...missingOf(report),
    ended,
    p50_ms,
    p99_ms,
    core_cpu_share: cpu?.share ?? null,
    core_memory_bytes: memory_bytes,
    thinning_seconds,
    members_left: membersLeft,
  };
}

export function stopLine(username: string): string {
  return `${STOP}${username}.`;
}

export function isToStop({ log }: Pick<OpsJob, 'log'>): boolean {
  return log.some((line) => textOf(line).startsWith(STOP));
}

/** The audit conclusion of a finished job. */
export function conclusionOf(job: Pick<OpsJob, 'state' | 'result' | 'error'>): Conclusion {
  const { state, error } = job;
  const { sent, delivered, lost } = readResult(job) ?? {};
  const counts = sent === undefined ? {} : { sent, delivered: delivered ?? 0, lost: lost ?? 0 };
  const detail = { state, ...counts, ...(error === null ? {} : { error }) };
  if (state === 'succeeded') return { result: 'ok', detail };
  return { result: state === 'interrupted' ? 'unknown' : 'failed', detail };
}

/** The job continues by itself; if its process died after the end, the job row has the result. */
export const INTERRUPTED_SIMULATION = { actions: [SIMULATION_RUN], finish: finishFromJob(conclusionOf) };

// Defines simulations: simulated clients in a channel of their own, run by a process beside
// management. What that process is told, and what it reports.

import { CHANNEL_PREFIX, SERVICE_PREFIX } from '@holdfast/kit/names';
import { z } from 'zod';

export const SIMULATION_CHANNEL = 'EXERCISE';
export const SIMULATION_GROUP = CHANNEL_PREFIX + SIMULATION_CHANNEL;
export const SIMULATION_ACCOUNT = 'exercise';
export const SIMULATION_USERNAME = SERVICE_PREFIX + SIMULATION_ACCOUNT;
/** Attribute of the account: the job that has made it. */
export const SIMULATION_MARK = 'holdfast_simulation';

const count = z.int().nonnegative();

export const simulationOrderSchema = z.object({
  /** Of the stream; clients go round them. */
  places: z.array(z.object({ host: z.string(), port: z.int() })).min(1),
  /** With key, certificate and CA. */
  pem: z.string(),
  clients: count,
  seconds: count,
  ramp: count,
  every: count,
});
export type SimulationOrder = z.infer<typeof simulationOrderSchema>;

export const simulationReportSchema = z.object({
  phase: z.enum(['connecting', 'sending', 'done', 'failed']),
  connected: count,
  /** Connections that ended before the end. */
  ended: count,
  sent: count,
  /** Deliveries that there should be, and that there were. */
  expected: count,
  delivered: count,
  /** Of chat and marks, which are never thinned. */
  expected_urgent: count,
  delivered_urgent: count,
  /** Null before the first delivery. */
  p50_ms: z.number().nullable(),
  p99_ms: z.number().nullable(),
  /** Of `failed`. */
  error: z.string().nullable(),
});
export type SimulationReport = z.infer<typeof simulationReportSchema>;

/** `lost_urgent`: of chat and marks, which are never thinned. */
export function missingOf(report: SimulationReport): { lost: number; lost_urgent: number } {
  const { expected, delivered, expected_urgent, delivered_urgent } = report;
  return {
    lost: Math.max(0, expected - delivered),
    lost_urgent: Math.max(0, expected_urgent - delivered_urgent),
  };
}

/** Thinning leaves positions out; chat and marks never. */
export function isComplete({
  sent,
  lost,
  lost_urgent,
  ended,
  thinning_seconds,
}: {
  sent: number;
  lost: number;
  lost_urgent: number;
  ended: number;
  thinning_seconds: number;
}): boolean {
  return sent > 0 && ended === 0 && (thinning_seconds > 0 ? lost_urgent : lost) === 0;
}

/** What the machine of management has for the simulated clients. */
export interface SimulatorRoom {
  cpus: number;
  freeBytes: number;
}

/** Simulated clients of this process of management, by the job that they belong to. */
export interface Simulator {
  /** Rejects with `not_supported` where the program is not installed. */
  room(): Promise<SimulatorRoom>;
  /** Resolves once the process is started. */
  start(id: string, order: SimulationOrder): Promise<void>;
  /** The last report; undefined for a job of another process, or before the first report. */
  report(id: string): Promise<SimulationReport | undefined>;
  /** It disconnects everyone, then reports `done`. An unknown one is no error. */
  stop(id: string): Promise<void>;
  /** Drops the last report. */
  forget(id: string): Promise<void>;
}

/** The ports that this feature needs, by their names in Deps. */
export interface SimulationPorts {
  simulator: Simulator;
}

// Defines the data of a job of kind `vacuum`: its tables, the progress of each, and the audit
// intent that it answers.

import { z } from 'zod';
import type { Conclusion } from '../../audit/port.ts';
import { finishFromJob, openJob } from '../../jobs/ordered-jobs.ts';
import type { OpsJob, OpsJobs } from '../../jobs/port.ts';
import { VACUUM_MODES } from '../port.ts';

export const VACUUM_JOB = 'vacuum';
export const VACUUM_RUN = 'database.vacuum';

const time = z.iso.datetime();

const orderedSchema = z.object({
  schema: z.string(),
  table: z.string(),
  /** Values at the time of the request. */
  bytes: z.number(),
  dead_tuples: z.number(),
  lock_seconds: z.number(),
});

const inputSchema = z.object({
  mode: z.enum(VACUUM_MODES),
  /** In processing order. */
  tables: z.array(orderedSchema),
  /** `seq` of the intent in the audit log. */
  intent: z.int(),
});
export type VacuumJobInput = z.infer<typeof inputSchema>;

const tableSchema = z.object({
  schema: z.string(),
  table: z.string(),
  /** `not_begun` until it has ended; `skipped`: nothing was started that could have changed it. */
  state: z.enum(['not_begun', 'done', 'skipped', 'failed', 'interrupted']),
  bytes_before: z.number(),
  bytes_after: z.number().nullable(),
  seconds: z.number().nullable(),
  dead_tuples_before: z.number(),
  error: z.string().nullable(),
});
export type VacuumedTable = z.infer<typeof tableSchema>;

const marksSchema = z.object({
  oid: z.number(),
  filenode: z.number(),
  vacuums: z.number(),
  bytes: z.number(),
  dead_tuples: z.number(),
});

const statementSchema = z.object({
  /** Marks of the table before the statement. */
  marks: marksSchema,
  begun_at: time,
  /** Why it is unknown if it was started; null if known. */
  doubt: z.string().nullable(),
  /** SQLSTATE of its error, once known. */
  error: z.string().nullable(),
});
export type BegunStatement = z.infer<typeof statementSchema>;

const turnSchema = z.object({
  tries: z.int(),
  next_try_at: time.nullable(),
  /** Why it waits, as last logged. */
  said: z.string().nullable(),
  /** Stored before the statement starts. */
  statement: statementSchema.nullable(),
});
export type VacuumTurn = z.infer<typeof turnSchema>;

const memorySchema = z.object({
  /** When the job last ran a step. */
  looked_at: time,
  /** Since when the core's database is unavailable. */
  away_since: time.nullable(),
  /** Since when it waits for lock holders; null again after each finished table. */
  waits_since: time.nullable(),
  /** True after a gap that was too long: nothing more is started. */
  was_alone: z.boolean(),
  /** The last notice to clients; `silent`: the first one could not be sent. */
  notice: z.enum(['none', 'silent', 'begun', 'over']),
  tables: z.array(tableSchema),
  /** The turn of the first table that is not finished; null until it was checked. */
  turn: turnSchema.nullable(),
});
export type VacuumMemory = z.infer<typeof memorySchema>;

export interface ReadVacuumJob {
  input: VacuumJobInput;
  memory: VacuumMemory;
}

/** Undefined if the row holds something else. */
export function readVacuumJob({ input, memory, createdAt }: OpsJob): ReadVacuumJob | undefined {
  const order = inputSchema.safeParse(input);
  if (!order.success) return undefined;
  if (memory === null) return { input: order.data, memory: firstMemory(order.data, createdAt) };
  const read = memorySchema.safeParse(memory);
  const isWhole = read.success && read.data.tables.length === order.data.tables.length;
  return isWhole ? { input: order.data, memory: read.data } : undefined;
}

function firstMemory({ tables }: VacuumJobInput, createdAt: string): VacuumMemory {
  return {
    looked_at: createdAt,
    away_since: null,
    waits_since: null,
    was_alone: false,
    notice: 'none',
    tables: tables.map(({ schema, table, bytes, dead_tuples }) => ({
      schema,
      table,
      state: 'not_begun',
      bytes_before: bytes,
      bytes_after: null,
      seconds: null,
      dead_tuples_before: dead_tuples,
      error: null,
    })),
    turn: null,
  };
}

const resultSchema = z.object({
  mode: z.enum(VACUUM_MODES),
  tables: z.array(tableSchema),
  bytes_before: z.number(),
  bytes_after: z.number(),
  bytes_given_back: z.number(),
  seconds: z.number(),
});
export type VacuumResult = z.infer<typeof resultSchema>;

/** The result with sizes of all tables; a table without a later size counts as unchanged. */
export function resultOf({ mode }: VacuumJobInput, { tables }: VacuumMemory, seconds: number): VacuumResult {
  const before = tables.reduce((sum, each) => sum + each.bytes_before, 0);
  const after = tables.reduce((sum, each) => sum + (each.bytes_after ?? each.bytes_before), 0);
  const given = Math.max(0, before - after);
  return { mode, tables, bytes_before: before, bytes_after: after, bytes_given_back: given, seconds };
}

/** Undefined if the job has no valid result. */
export function readResult({ result }: Pick<OpsJob, 'result'>): VacuumResult | undefined {
  return resultSchema.safeParse(result).data;
}

/** The audit conclusion of a finished job. */
export function conclusionOf(job: Pick<OpsJob, 'state' | 'result' | 'error'>): Conclusion {
  const { state, error } = job;
  const result = readResult(job);
  const counts: Record<string, number> = {};
  for (const table of result?.tables ?? []) counts[table.state] = (counts[table.state] ?? 0) + 1;
  const figures = result === undefined ? {} : { tables: counts, bytes_given_back: result.bytes_given_back };
  const detail = { state, ...figures, ...(error === null ? {} : { error }) };
  if (state === 'succeeded') return { result: 'ok', detail };
  // Without a result its effect is unknown.
  return { result: result === undefined ? 'unknown' : 'failed', detail };
}

/** The job continues by itself; if its process died after the end, the job row has the result. */
export const INTERRUPTED_VACUUM = { actions: [VACUUM_RUN], finish: finishFromJob(conclusionOf) };

export function openVacuumJob(opsJobs: Pick<OpsJobs, 'open'>): Promise<OpsJob | undefined> {
  return openJob(opsJobs, VACUUM_JOB);
}

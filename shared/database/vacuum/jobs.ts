// What a job of the kind `vacuum` holds: which tables are to be vacuumed, how far it is with each, and the intent of the audit log
// that it answers.

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
  /** As they were when it was ordered. */
  bytes: z.number(),
  dead_tuples: z.number(),
  lock_seconds: z.number(),
});

const inputSchema = z.object({
  mode: z.enum(VACUUM_MODES),
  /** In the order in which they come. */
  tables: z.array(orderedSchema),
  /** `seq` of the intent in the audit log. */
  intent: z.int(),
});
export type VacuumJobInput = z.infer<typeof inputSchema>;

const tableSchema = z.object({
  schema: z.string(),
  table: z.string(),
  /** `not_begun` until it has ended one way or the other; `skipped`: nothing was begun that could have changed it. */
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
  /** Of the table before it. */
  marks: marksSchema,
  begun_at: time,
  /** Why nobody knows whether it was begun. */
  doubt: z.string().nullable(),
  /** SQLSTATE of its error, once that was seen. */
  error: z.string().nullable(),
});
export type BegunStatement = z.infer<typeof statementSchema>;

const turnSchema = z.object({
  tries: z.int(),
  next_try_at: time.nullable(),
  /** What keeps it waiting, as the log has said it last. */
  said: z.string().nullable(),
  /** Written down before it is begun. */
  statement: statementSchema.nullable(),
});
export type VacuumTurn = z.infer<typeof turnSchema>;

const memorySchema = z.object({
  /** When somebody looked after the job last. */
  looked_at: time,
  /** Since when the core's database does not answer. */
  away_since: time.nullable(),
  /** Since when it waits for those who hold tables; null again after each table that was done. */
  waits_since: time.nullable(),
  /** There was nobody for too long: nothing more is begun. */
  was_alone: z.boolean(),
  /** What the clients were told; `silent`: they could not be told of the beginning. */
  notice: z.enum(['none', 'silent', 'begun', 'over']),
  tables: z.array(tableSchema),
  /** Of the first table that is not begun: they come one after the other. Null until it was looked at. */
  turn: turnSchema.nullable(),
});
export type VacuumMemory = z.infer<typeof memorySchema>;

export interface ReadVacuumJob {
  input: VacuumJobInput;
  memory: VacuumMemory;
}

/** Undefined when the row holds something else. */
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

/** The sizes are of all its tables; one of which no later size is known counts as it was. */
export function resultOf({ mode }: VacuumJobInput, { tables }: VacuumMemory, seconds: number): VacuumResult {
  const before = tables.reduce((sum, each) => sum + each.bytes_before, 0);
  const after = tables.reduce((sum, each) => sum + (each.bytes_after ?? each.bytes_before), 0);
  const given = Math.max(0, before - after);
  return { mode, tables, bytes_before: before, bytes_after: after, bytes_given_back: given, seconds };
}

/** Undefined when a job has left none, or something else. */
export function readResult({ result }: Pick<OpsJob, 'result'>): VacuumResult | undefined {
  return resultSchema.safeParse(result).data;
}

/** What the audit log says of a job that has ended. */
export function conclusionOf(job: Pick<OpsJob, 'state' | 'result' | 'error'>): Conclusion {
  const { state, error } = job;
  const result = readResult(job);
  const counts: Record<string, number> = {};
  for (const table of result?.tables ?? []) counts[table.state] = (counts[table.state] ?? 0) + 1;
  const figures = result === undefined ? {} : { tables: counts, bytes_given_back: result.bytes_given_back };
  const detail = { state, ...figures, ...(error === null ? {} : { error }) };
  if (state === 'succeeded') return { result: 'ok', detail };
  // Without a result nobody knows what it has done.
  return { result: result === undefined ? 'unknown' : 'failed', detail };
}

/** The job carries it on; when its process died after the end, the job says what became of it. */
export const INTERRUPTED_VACUUM = { actions: [VACUUM_RUN], finish: finishFromJob(conclusionOf) };

export function openVacuumJob(opsJobs: Pick<OpsJobs, 'open'>): Promise<OpsJob | undefined> {
  return openJob(opsJobs, VACUUM_JOB);
}

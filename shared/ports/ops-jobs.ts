// Long work that somebody has asked for: a row in our own database, carried on step by step by a job, so that it survives restarts.

export const OPS_JOB_STATES = ['queued', 'running', 'succeeded', 'failed', 'interrupted'] as const;
export type OpsJobState = (typeof OPS_JOB_STATES)[number];

export interface OpsJob {
  /** A UUID. */
  id: string;
  /** `retention`, `vacuum`: one of a kind at a time. */
  kind: string;
  state: OpsJobState;
  /** 0 to 1. */
  progress: number;
  /** What it is at just now, in words; null when it does not say. */
  phase: string | null;
  /** 0 to 100 within the phase; null where nobody knows. */
  phasePercent: number | null;
  /** Times are ISO 8601. */
  createdAt: string;
  startedAt: string | null;
  finishedAt: string | null;
  eta: string | null;
  /** Lines for people, each with its time; the last 200. */
  log: string[];
  /** Plain data. */
  input: unknown;
  /** Plain data that the job itself needs to go on; shown to nobody. */
  memory: unknown;
  result: unknown;
  error: string | null;
  /** Who has asked for it. */
  actor: string;
}

export interface OpsJobChange {
  state?: OpsJobState;
  progress?: number;
  phase?: string | null;
  phasePercent?: number | null;
  startedAt?: string;
  finishedAt?: string;
  eta?: string | null;
  /** Lines that are added. */
  log?: string[];
  memory?: unknown;
  result?: unknown;
  error?: string;
}

/** Every call rejects with an AppError `unavailable` when our own database does not answer. */
export interface OpsJobs {
  /** `conflict` when one of that kind is queued or running. */
  add(job: { id: string; kind: string; actor: string; input: unknown; now: string }): Promise<OpsJob>;
  get(id: string): Promise<OpsJob | undefined>;
  /** Newest first. */
  list(
    filter: { kind?: string; state?: OpsJobState },
    offset: number,
    limit: number,
  ): Promise<{ results: OpsJob[]; count: number }>;
  /** Queued or running, oldest first. */
  open(): Promise<OpsJob[]>;
  /** False when it is neither queued nor running any more. */
  change(id: string, change: OpsJobChange): Promise<boolean>;
  /** Removes those that ended before; resolves with their number. */
  prune(before: string): Promise<number>;
}

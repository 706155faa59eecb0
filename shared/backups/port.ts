// The port of backups: what the backup service knows and does. Its HTTP answers have these shapes.

import { z } from 'zod';

/** How far a backup is proven, lowest first. Each level includes those before it. */
export const PROOF_LEVELS = ['exists', 'complete', 'decrypts', 'restores', 'serves'] as const;
export type ProofLevel = (typeof PROOF_LEVELS)[number];

const time = z.iso.datetime();

export const proofSchema = z.object({
  /** The highest level reached; null if not even the first. */
  level: z.enum(PROOF_LEVELS).nullable(),
  at: time,
  seconds: z.number(),
  /** Why the next level was not reached; null if all were, or if this stack can't go further. */
  error: z.string().nullable(),
  /** The highest level that this stack can reach, and why it is not `serves`. */
  limit: z.object({ level: z.enum(PROOF_LEVELS), reason: z.string() }).nullable(),
  checks: z.array(z.object({ name: z.string(), ok: z.boolean(), detail: z.string() })),
});
export type Proof = z.infer<typeof proofSchema>;

export const backupSchema = z.object({
  /** The file name: `holdfast-20260131T023000Z.tar.zst.age`. */
  name: z.string(),
  created_at: time,
  seconds: z.number(),
  /** Size of the archive. */
  bytes: z.number(),
  /** SHA-256 of the archive, in hex. */
  sha256: z.string(),
  stack: z.enum(['embedded', 'light', 'production']),
  /** Release of Holdfast that made it. */
  release: z.string(),
  /** False if the history of messages was left out. */
  history: z.boolean(),
  /** Rows of all tables. */
  rows: z.number(),
  /** SHA-256 fingerprint of the CA, in hex. */
  ca_fingerprint: z.string(),
  /** `schedule`, `script`, or the name of the person who ran it. */
  requested_by: z.string(),
  /** Never deleted by the keep rules. */
  permanent: z.boolean(),
  proof: proofSchema.nullable(),
});
export type Backup = z.infer<typeof backupSchema>;

export const backupRunSchema = z.object({
  kind: z.enum(['backup', 'proof']),
  /** The archive; null until a backup has a name. */
  name: z.string().nullable(),
  started_at: time,
  /** In plain words: `Copying cot_router`. */
  phase: z.string(),
  /** 0 to 100; null while unknown. */
  percent: z.number().nullable(),
  bytes_per_second: z.number().nullable(),
  seconds_left: z.number().nullable(),
});
export type BackupRun = z.infer<typeof backupRunSchema>;

export const backupStateSchema = z.object({
  /** Null while BACKUP_TARGET is unset. */
  target: z
    .object({
      kind: z.enum(['directory', 's3']),
      /** The directory or s3:// address, without secrets. */
      place: z.string(),
      /** Null if the storage doesn't say. */
      free_bytes: z.number().nullable(),
      /** Why it can't be read or written; null if it can. */
      error: z.string().nullable(),
    })
    .nullable(),
  encryption: z.enum(['passphrase', 'recipient']).nullable(),
  proof: z.enum(['always', 'weekly', 'off']),
  running: backupRunSchema.nullable(),
  /** The last failed run since the service started, unless a later one of its kind succeeded. */
  last_failure: z
    .object({ kind: z.enum(['backup', 'proof']), at: time, name: z.string().nullable(), error: z.string() })
    .nullable(),
  /** Newest first. */
  backups: z.array(backupSchema),
});
export type BackupState = z.infer<typeof backupStateSchema>;

/** Rejects with an AppError `unavailable` when the service does not answer. */
export interface Backups {
  state(): Promise<BackupState>;
  /** Starts a backup. Rejects with `conflict` while another run is under way. */
  start(request: { history?: boolean; requestedBy: string }): Promise<BackupRun>;
  /** Starts a proof of one archive. Rejects with `not_found` or `conflict`. */
  prove(name: string, request: { requestedBy: string }): Promise<BackupRun>;
  /** Rejects with `not_found`. */
  setPermanent(name: string, permanent: boolean): Promise<Backup>;
  /** The archive itself, as it is stored. Rejects with `not_found`. */
  read(name: string): Promise<{ body: ReadableStream<Uint8Array>; bytes: number }>;
}

/** The ports that this feature needs, by their names in Deps. */
export interface BackupPorts {
  backups: Backups;
}

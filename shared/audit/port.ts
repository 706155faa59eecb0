// Defines the audit log: who changed or tried what, and with which result. It is chained, so
// tampering is detected.

import type { Attributes, Page } from '@holdfast/kit/json';

/** The actor: a person by username, or a part of Holdfast by its own name. */
export interface Actor {
  username: string;
  /** The client's address; empty for a part of Holdfast. */
  address: string;
  /** The id of the HTTP request; empty without one. */
  requestId: string;
}

export interface AuditSubject {
  actor: Actor;
  /** Dotted, subject first: `user.create`. */
  action: string;
  /** The name of the changed item: a username, a group, an address. */
  target: string;
}

export const AUDIT_PHASES = ['intent', 'outcome'] as const;

/** `unknown`: it was begun, and its result could not be determined. */
export const AUDIT_RESULTS = ['ok', 'failed', 'denied', 'unknown'] as const;
export type AuditResult = (typeof AUDIT_RESULTS)[number];

export interface AuditRecord {
  /** From 1, without gaps. */
  seq: number;
  /** ISO 8601. */
  at: string;
  actor: string;
  address: string;
  action: string;
  target: string;
  phase: (typeof AUDIT_PHASES)[number];
  /** Null for an intent. */
  result: AuditResult | null;
  /** A JSON object as text; never a secret. */
  detail: string;
  /**
   * `seq` of the intent that an outcome belongs to; null for an intent, and when there was none.
   */
  intent: number | null;
  request_id: string;
  /** Hexadecimal. */
  hash: string;
}

export interface AuditFilter {
  actor?: string | undefined;
  /** Exact, or its first words: `user` and `user.` match `user.create`. */
  action?: string | undefined;
  target?: string | undefined;
  /** ISO 8601. */
  since?: string | undefined;
  until?: string | undefined;
}

export interface AuditVerdict {
  ok: boolean;
  /** Number of records checked. */
  records: number;
  /** `seq` of the first record that was changed or is missing; null when all are intact. */
  first_broken: number | null;
}

export interface Conclusion {
  result: AuditResult;
  detail?: Attributes;
  /** In the same transaction, every session and token of this person ends. */
  endsSignInsOf?: string;
}

/** An intent without an outcome. */
export interface OpenIntent extends AuditRecord {
  /**
   * Later intents, in order: for the same target, of the same kind (the first word of the action),
   * and not concluded as `failed`.
   */
  later: { action: string; detail: string }[];
}

export interface Audit {
  /**
   * Commits an intent and resolves with its `seq`. Rejects with `unavailable` when it can't be
   * committed: then the change must not run.
   */
  intend(subject: AuditSubject, detail?: Attributes): Promise<number>;
  /**
   * Appends the outcome of an intent. Never rejects: while our own database is unavailable, the
   * outcome stays in memory and is written as soon as possible. One that is lost with the process
   * is found as an unfinished intent.
   */
  conclude(intent: number, subject: AuditSubject, conclusion: Conclusion): Promise<void>;
  /**
   * Appends a record without an intent, such as a denied attempt. Never rejects, and does not wait
   * for the database; a flood is counted in one record a minute.
   */
  note(subject: AuditSubject, result: AuditResult, detail?: Attributes): void | Promise<void>;
  /** Newest first. Includes everything noted before the call. */
  list(filter: AuditFilter, offset: number, limit: number): Promise<Page<AuditRecord>>;
  verify(): Promise<AuditVerdict>;
  /** Intents without an outcome that are older than this (ISO 8601), oldest first. */
  unfinished(before: string, limit: number): Promise<OpenIntent[]>;
}

/** What this feature needs from outside, by the names in Deps. */
export interface AuditPorts {
  audit: Audit;
}

// The audit log: who did what, tried what, and what became of it; chained, so that a change of it is found.

import type { Attributes, Page } from '@holdfast/kit/json';

/** Who acts: a person by its username, or a part of Holdfast by its own name. */
export interface Actor {
  username: string;
  /** Of the client; empty for a part of Holdfast. */
  address: string;
  /** Of the HTTP request; empty without one. */
  requestId: string;
}

export interface AuditSubject {
  actor: Actor;
  /** Dotted, thing first: `user.create`. */
  action: string;
  /** The name of what it is done to: a username, a group, an address. */
  target: string;
}

export const AUDIT_PHASES = ['intent', 'outcome'] as const;

/** `unknown`: it was begun, and what became of it could not be found out. */
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
  /** `seq` of the intent that an outcome belongs to; null for an intent, and where there was none. */
  intent: number | null;
  request_id: string;
  /** Hexadecimal. */
  hash: string;
}

export interface AuditFilter {
  actor?: string | undefined;
  /** Exact, or its first words: `user` and `user.` find `user.create`. */
  action?: string | undefined;
  target?: string | undefined;
  /** ISO 8601. */
  since?: string | undefined;
  until?: string | undefined;
}

export interface AuditVerdict {
  ok: boolean;
  /** How many were looked at. */
  records: number;
  /** `seq` of the first that is not as it was written, or that is missing; null when all are right. */
  first_broken: number | null;
}

export interface Conclusion {
  result: AuditResult;
  detail?: Attributes;
  /** In the same transaction, everything that was signed for this person ends. */
  endsSignInsOf?: string;
}

/** An intent without an outcome. */
export interface OpenIntent extends AuditRecord {
  /**
   * What was intended later, in order: for the same target, of the same kind (the first word of the action), and not concluded
   * as `failed`.
   */
  later: { action: string; detail: string }[];
}

export interface Audit {
  /**
   * Commits an intent and resolves with its `seq`. Rejects with `unavailable` when it cannot be committed: then nothing may
   * be done.
   */
  intend(subject: AuditSubject, detail?: Attributes): Promise<number>;
  /**
   * Appends the outcome of an intent. Never rejects: while our own database is away it is kept in memory and written as
   * soon as possible, and what is lost with the process is found as an unfinished intent.
   */
  conclude(intent: number, subject: AuditSubject, conclusion: Conclusion): Promise<void>;
  /**
   * Appends what had no intent, such as a denied attempt. Never rejects, and does not wait for the database; a flood is
   * counted in one record a minute.
   */
  note(subject: AuditSubject, result: AuditResult, detail?: Attributes): void | Promise<void>;
  /** Newest first. What was noted before the call is in it. */
  list(filter: AuditFilter, offset: number, limit: number): Promise<Page<AuditRecord>>;
  verify(): Promise<AuditVerdict>;
  /** Intents without an outcome that are older than this (ISO 8601), oldest first. */
  unfinished(before: string, limit: number): Promise<OpenIntent[]>;
}

/** What this feature asks of the outside, by the names in Deps. */
export interface AuditPorts {
  audit: Audit;
}

// Holds the SQL of the audit log. Appending uses a role that can only insert and read.

import { AppError, codeOf } from '@holdfast/kit/app-error';
import type { Page } from '@holdfast/kit/json';
import type { Sql, TransactionSql } from '@holdfast/kit/postgres';
import { type AuditChain, type ChainedRecord, type Head, NO_RECORD, type SignedCheckpoint } from './chain.ts';
import type { AuditFilter, AuditRecord, OpenIntent } from './port.ts';

export type NewRecord = Omit<AuditRecord, 'seq' | 'hash'>;

interface RecordRow extends Omit<ChainedRecord, 'at'> {
  at: Date;
  hash: string;
}

interface CheckpointRow extends Omit<SignedCheckpoint, 'at'> {
  at: Date;
  signature: string;
}

/** Any number: the lock must be the same for every Holdfast process on this database. */
const LOCK = 4_805_727_012;
const MISSING_ROLE =
  "Our own database has no role holdfast_audit, which appends to the audit log, or its owner can't use that role. " +
  'Remedy: as a superuser of that server, CREATE ROLE holdfast_audit NOLOGIN; GRANT holdfast_audit TO holdfast;';

/** Waits for the lock among all processes; the lock ends with the transaction. */
export async function lockAudit(sql: TransactionSql): Promise<void> {
  await sql`SELECT pg_advisory_xact_lock(${LOCK})`;
}

/**
 * Throws `unavailable` with the remedy when the role is missing. Follow it with `leaveAuditRole`.
 */
export async function takeAuditRole(sql: TransactionSql): Promise<void> {
  try {
    await sql`SET LOCAL ROLE holdfast_audit`;
  } catch (error) {
    if (!['22023', '42501', '42704'].includes(codeOf(error) ?? '')) throw error;
    throw new AppError('unavailable', MISSING_ROLE, { cause: error });
  }
}

export async function leaveAuditRole(sql: TransactionSql): Promise<void> {
  await sql`RESET ROLE`;
}

/** The last record; when all were removed, the record that the last checkpoint names. */
export async function readHead(sql: Sql | TransactionSql): Promise<Head> {
  const [row] = await sql<{ seq: string; hash: string }[]>`
    (SELECT seq, hash FROM audit_record ORDER BY seq DESC LIMIT 1)
    UNION ALL (SELECT seq, hash FROM audit_checkpoint ORDER BY seq DESC LIMIT 1)
    ORDER BY seq DESC LIMIT 1`;
  return row === undefined ? NO_RECORD : { seq: Number(row.seq), hash: row.hash };
}

/** True while the record is unchanged, or was pruned. */
export async function holds(sql: Sql | TransactionSql, { seq, hash }: Head): Promise<boolean> {
  const [row] = await sql<{ kept: boolean; pruned: boolean }[]>`
    SELECT EXISTS (SELECT FROM audit_record WHERE seq = ${seq} AND hash = ${hash}) AS kept,
      EXISTS (SELECT FROM audit_checkpoint WHERE seq > ${seq} OR (seq = ${seq} AND hash = ${hash})) AS pruned`;
  return row !== undefined && (row.kept || row.pruned);
}

/** Appends to the chain after `head`; resolves with the new head. The caller holds the lock. */
export async function appendRecords(
  sql: TransactionSql,
  chain: AuditChain,
  head: Head,
  records: readonly NewRecord[],
): Promise<Head> {
  let { seq, hash } = head;
  const rows = records.map((record) => {
    seq += 1;
    hash = chain.hash(hash, textOf(record, seq));
    return { ...record, seq, hash };
  });
  await sql`
    INSERT INTO audit_record (seq, at, actor, address, action, target, phase, result, detail, intent, request_id, hash)
    SELECT seq, at, actor, address, action, target, phase, result, detail, intent, request_id, hash
    FROM json_to_recordset(${JSON.stringify(rows)}::text::json) AS r (seq bigint, at timestamptz, actor text, address text,
      action text, target text, phase text, result text, detail text, intent bigint, request_id text, hash text)`;
  return { seq, hash };
}

function textOf({ intent, ...record }: NewRecord, seq: number): ChainedRecord {
  return { ...record, seq: String(seq), intent: intent === null ? null : String(intent) };
}

/** The number of a record with exactly these values; undefined when there is none. */
export async function findRecord(sql: TransactionSql, record: NewRecord): Promise<number | undefined> {
  const { at, actor, action, target, phase, detail, intent, request_id } = record;
  const [row] = await sql<{ seq: string }[]>`
    SELECT seq FROM audit_record
    WHERE at = ${at} AND actor = ${actor} AND action = ${action} AND target = ${target} AND phase = ${phase}
      AND detail = ${detail} AND intent IS NOT DISTINCT FROM ${intent} AND request_id = ${request_id}
    ORDER BY seq DESC LIMIT 1`;
  return row && Number(row.seq);
}

/** The hash of that record; of a pruned one only when it was the last of them. */
export async function readHash(sql: Sql, seq: number): Promise<string | undefined> {
  const [row] = await sql<{ hash: string }[]>`
    SELECT hash FROM audit_record WHERE seq = ${seq} UNION ALL SELECT hash FROM audit_checkpoint WHERE seq = ${seq}`;
  return row?.hash;
}

/** The values as they were hashed. */
export interface StoredRecord extends ChainedRecord {
  hash: string;
}

/** In order, from after that number (a bigint as text) up to the last that is checked. */
export async function readChain(
  sql: Sql,
  after: string | undefined,
  upTo: string,
  most: number,
): Promise<StoredRecord[]> {
  const rows = await sql<RecordRow[]>`
    SELECT seq, at, actor, address, action, target, phase, result, detail, intent, request_id, hash
    FROM audit_record WHERE (${after ?? null}::bigint IS NULL OR seq > ${after ?? null}) AND seq <= ${upTo}
    ORDER BY seq LIMIT ${most}`;
  return rows.map((row) => ({ ...row, at: timeOf(row.at) }));
}

/** A tampered row may contain an invalid time. */
function timeOf(at: Date): string {
  return Number.isNaN(at.getTime()) ? 'no time' : at.toISOString();
}

export type StoredCheckpoint = SignedCheckpoint & { signature: string };

/** Newest first. */
export async function readCheckpoints(sql: Sql | TransactionSql): Promise<StoredCheckpoint[]> {
  const rows = await sql<CheckpointRow[]>`
    SELECT seq, at, hash, removed, signature FROM audit_checkpoint ORDER BY seq DESC`;
  return rows.map((row) => ({ ...row, at: timeOf(row.at) }));
}

/** Undefined while there is no record. A bigint as text. */
export async function readLastSeq(sql: Sql): Promise<string | undefined> {
  const [row] = await sql<{ seq: string | null }[]>`SELECT max(seq) AS seq FROM audit_record`;
  return row?.seq ?? undefined;
}

/** In the order in which people read it. */
function toRecordView(row: RecordRow): AuditRecord {
  return {
    seq: Number(row.seq),
    at: timeOf(row.at),
    actor: row.actor,
    address: row.address,
    action: row.action,
    target: row.target,
    phase: row.phase as AuditRecord['phase'],
    result: row.result as AuditRecord['result'],
    detail: row.detail,
    intent: row.intent === null ? null : Number(row.intent),
    request_id: row.request_id,
    hash: row.hash,
  };
}

/** Newest first. */
export async function listRecords(
  sql: Sql,
  { actor, action, target, since, until }: AuditFilter,
  offset: number,
  limit: number,
): Promise<Page<AuditRecord>> {
  const given = <T>(value: T | null | undefined): T | null => value ?? null;
  const prefix = given(action)?.replace(/\.?$/, '.') ?? null;
  const where = sql`
    (${given(actor)}::text IS NULL OR actor = ${given(actor)}) AND (${given(target)}::text IS NULL OR target = ${given(target)})
    AND (${given(action)}::text IS NULL OR action = ${given(action)} OR starts_with(action, ${prefix}))
    AND (${given(since)}::timestamptz IS NULL OR at >= ${given(since)})
    AND (${given(until)}::timestamptz IS NULL OR at < ${given(until)})`;
  const [rows, [total]] = await Promise.all([
    sql<RecordRow[]>`
      SELECT seq, at, actor, address, action, target, phase, result, detail, intent, request_id, hash
      FROM audit_record WHERE ${where} ORDER BY seq DESC OFFSET ${offset} LIMIT ${limit}`,
    sql<{ count: number }[]>`SELECT count(*)::int AS count FROM audit_record WHERE ${where}`,
  ]);
  return { results: rows.map(toRecordView), count: total?.count ?? 0 };
}

/** The oldest intent from `from` on that has no outcome; the next number when there is none. */
export async function firstOpen(sql: Sql, from: number): Promise<number> {
  const [row] = await sql<{ first: string }[]>`
    SELECT coalesce(
      (SELECT min(r.seq) FROM audit_record r WHERE r.seq >= ${from} AND r.phase = 'intent'
        AND NOT EXISTS (SELECT FROM audit_record o WHERE o.intent = r.seq)),
      (SELECT max(seq) + 1 FROM audit_record), 1) AS first`;
  return Number(row?.first ?? 1);
}

export async function openIntents(sql: Sql, from: number, before: string, limit: number): Promise<OpenIntent[]> {
  const rows = await sql<(RecordRow & Pick<OpenIntent, 'later'>)[]>`
    SELECT r.seq, r.at, r.actor, r.address, r.action, r.target, r.phase, r.result, r.detail, r.intent, r.request_id, r.hash,
      coalesce((SELECT json_agg(json_build_object('action', l.action, 'detail', l.detail) ORDER BY l.seq) FROM audit_record l
        WHERE l.phase = 'intent' AND l.target = r.target AND l.seq > r.seq
          AND split_part(l.action, '.', 1) = split_part(r.action, '.', 1)
          AND NOT EXISTS (SELECT FROM audit_record f WHERE f.intent = l.seq AND f.result = 'failed')), '[]') AS later
    FROM audit_record r
    WHERE r.seq >= ${from} AND r.phase = 'intent' AND r.at < ${before}
      AND NOT EXISTS (SELECT FROM audit_record o WHERE o.intent = r.seq)
    ORDER BY r.seq LIMIT ${limit}`;
  return rows.map((row) => ({ ...toRecordView(row), later: row.later }));
}

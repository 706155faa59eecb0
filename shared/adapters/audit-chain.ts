// What chains the audit log: each record is hashed, under a key that the database does not know, together with the hash
// before it. Nothing here touches the database.

import { createHmac, hkdfSync } from 'node:crypto';
import type { Secret } from '../domain/secret.ts';

/** A record as text, cell by cell: a bigint of the database has more digits than a number of ours. */
export interface ChainedRecord {
  seq: string;
  /** ISO 8601 with milliseconds. */
  at: string;
  actor: string;
  address: string;
  action: string;
  target: string;
  phase: string;
  result: string | null;
  detail: string;
  intent: string | null;
  request_id: string;
}

/** Where the chain begins after records were removed. */
export interface SignedCheckpoint {
  /** Of the last record that was removed. */
  seq: string;
  at: string;
  hash: string;
  /** How many were removed with it. */
  removed: string;
}

export interface AuditChain {
  /** Hexadecimal. `previous` is the hash of the record before; empty for the first. */
  hash(previous: string, record: ChainedRecord): string;
  signature(checkpoint: SignedCheckpoint): string;
}

/** The last record of a chain; `{ seq: 0, hash: '' }` before the first. */
export interface Head {
  seq: number;
  hash: string;
}

export const NO_RECORD: Head = { seq: 0, hash: '' };

/** One chain for each AUDIT_KEY. */
export function auditChain(key: Secret): AuditChain {
  const chainKey = derived(key, 'holdfast audit chain 1');
  const checkpointKey = derived(key, 'holdfast audit checkpoint 1');
  return {
    hash: (previous, record) => hmac(chainKey, previous, cellsOf(record)),
    signature: ({ seq, at, hash, removed }) => hmac(checkpointKey, hash, [seq, at, removed]),
  };
}

/** JSON keeps the cells apart, whatever stands in them. */
function hmac(key: Buffer, previous: string, cells: readonly (string | null)[]): string {
  return createHmac('sha256', key)
    .update(JSON.stringify([previous, ...cells]))
    .digest('hex');
}

function cellsOf(record: ChainedRecord): (string | null)[] {
  const { seq, at, actor, address, action, target, phase, result, detail, intent, request_id } = record;
  return [seq, at, actor, address, action, target, phase, result, detail, intent, request_id];
}

function derived(key: Secret, purpose: string): Buffer {
  return Buffer.from(hkdfSync('sha256', key.reveal(), '', purpose, 32));
}

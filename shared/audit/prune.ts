// Removes the oldest records of the audit log at a person's request, and leaves a signed checkpoint
// from which the chain continues. Nothing else in Holdfast removes records.

import type { RunSql } from '@holdfast/kit/kept-database';
import type { Sql, TransactionSql } from '@holdfast/kit/postgres';
import { DAY_MS } from '@holdfast/kit/time';
import { type AuditChain, NO_RECORD, type SignedCheckpoint } from './chain.ts';
import { appendRecords, lockAudit, readHead } from './table.ts';

export interface PruneOptions {
  /** As the owner of the table. A large log takes minutes. */
  run: RunSql;
  chain: AuditChain;
  /** ISO 8601. */
  before: string;
  now: Date;
  /** The person who prunes, for the record of it. */
  actor: string;
  detail?: Record<string, string>;
}

export interface Prunable {
  /** Number of records that would be removed. */
  records: number;
  /** ISO 8601; null when none would be removed. */
  oldest: string | null;
  newest: string | null;
  /**
   * An intent without an outcome that is younger than a day, before which pruning stops; null when
   * there is none.
   */
  stopsAt: number | null;
}

const OPEN_KEPT_MS = DAY_MS;

interface Range {
  first: string | null;
  last: string | null;
  records: number;
  oldest: Date | null;
  newest: Date | null;
  open: string | null;
  cut: string | null;
}

/** The records that `pruneAudit` would remove now; changes nothing. */
export async function prunable({ run, before, now }: Pick<PruneOptions, 'run' | 'before' | 'now'>): Promise<Prunable> {
  return shown(await run((sql) => rangeBefore(sql, before, now)));
}

/**
 * Removes older records, oldest first: up to the first one that is newer, or that is an intent
 * without outcome of the last day. Resolves with the removed range; writes nothing when it is
 * empty.
 */
export async function pruneAudit({ run, chain, before, now, actor, detail }: PruneOptions): Promise<Prunable> {
  return run((sql) =>
    sql.begin(async (transaction) => {
      await lockAudit(transaction);
      const range = await rangeBefore(transaction, before, now);
      if (range.last === null || range.records === 0) return shown(range);
      const head = await readHead(transaction);
      await writeCheckpoint(transaction, chain, range.last, range.records);
      await transaction`DELETE FROM audit_record WHERE seq <= ${range.last}`;
      const record = {
        at: now.toISOString(),
        actor,
        address: '',
        action: 'audit.prune',
        target: 'audit',
        phase: 'outcome',
        result: 'ok',
        detail: JSON.stringify({ before, removed: range.records, last_removed: Number(range.last), ...detail }),
        intent: null,
        request_id: '',
      } as const;
      await appendRecords(transaction, chain, head, [record]);
      return shown(range);
    }),
  );
}

/** The records before the first that must stay. */
async function rangeBefore(sql: Sql | TransactionSql, before: string, now: Date): Promise<Range> {
  const young = new Date(now.getTime() - OPEN_KEPT_MS).toISOString();
  const [row] = await sql<Range[]>`
    WITH stop AS (
      SELECT (SELECT min(seq) FROM audit_record WHERE at >= ${before}) AS late,
        (SELECT min(seq) FROM audit_record r WHERE phase = 'intent' AND at >= ${young} AND at < ${before}
          AND NOT EXISTS (SELECT FROM audit_record o WHERE o.intent = r.seq)) AS open
    ), cut AS (SELECT least(late, open) AS seq, open FROM stop)
    SELECT min(r.seq) AS first, max(r.seq) AS last, count(*)::int AS records, min(at) AS oldest, max(at) AS newest,
      (SELECT open FROM cut) AS open, (SELECT seq FROM cut) AS cut
    FROM audit_record r WHERE (SELECT seq FROM cut) IS NULL OR r.seq < (SELECT seq FROM cut)`;
  if (row === undefined) throw new Error('no range');
  return row;
}

function shown({ records, oldest, newest, open, cut }: Range): Prunable {
  return {
    records,
    oldest: oldest?.toISOString() ?? null,
    newest: newest?.toISOString() ?? null,
    stopsAt: open !== null && open === cut ? Number(open) : null,
  };
}

async function writeCheckpoint(sql: TransactionSql, chain: AuditChain, last: string, removed: number): Promise<void> {
  const [row = { at: new Date(0), hash: NO_RECORD.hash }] = await sql<{ at: Date; hash: string }[]>`
    SELECT at, hash FROM audit_record WHERE seq = ${last}`;
  const checkpoint: SignedCheckpoint = {
    seq: last,
    at: row.at.toISOString(),
    hash: row.hash,
    removed: String(removed),
  };
  // Only the newest checkpoint counts, and a forged one must not stay.
  await sql`DELETE FROM audit_checkpoint`;
  await sql`
    INSERT INTO audit_checkpoint (seq, at, hash, removed, signature)
    VALUES (${last}, ${checkpoint.at}, ${checkpoint.hash}, ${removed}, ${chain.signature(checkpoint)})`;
}

// Checks every record of the audit log, page by page, and finds the first that was changed or is
// missing.

import type { RunSql } from '@holdfast/kit/kept-database';
import type { AuditChain, Head } from './chain.ts';
import type { AuditVerdict } from './port.ts';
import { holds, readChain, readCheckpoints, readHash, readLastSeq, type StoredCheckpoint } from './table.ts';

export interface Verification {
  run: RunSql;
  chain: AuditChain;
  /**
   * From outside the database, read before the call; undefined: the end of the log isn't checked.
   */
  head: Head | undefined;
  /** Called after each page. */
  progress?: (records: number) => void;
}

const CONCURRENCY = 1_000;
/** Records may be pruned meanwhile. */
const ATTEMPTS = 3;
const HIGHEST_SEQ = '9223372036854775807';

/** Concurrent appends do no harm: only records up to the current last one are checked. */
export async function verifyChain(verification: Verification): Promise<AuditVerdict> {
  for (let attempt = 1; ; attempt += 1) {
    const checkpoints = await verification.run(readCheckpoints);
    const verdict = await verifyFrom(verification, checkpoints);
    if (verdict.ok || attempt === ATTEMPTS) return verdict;
    const [newest] = await verification.run(readCheckpoints);
    if (newest?.seq === checkpoints[0]?.seq) return verdict;
  }
}

async function verifyFrom(verification: Verification, checkpoints: StoredCheckpoint[]): Promise<AuditVerdict> {
  const { run, chain } = verification;
  const isGenuine = (each: StoredCheckpoint): boolean => chain.signature(each) === each.signature;
  const forged = checkpoints.filter((each) => !isGenuine(each)).map(({ seq }) => Number(seq));
  const start = checkpoints.find(isGenuine);
  const last = await run(readLastSeq);
  const walked = await walk(verification, start, last ?? HIGHEST_SEQ);
  const broken = [...forged, ...(walked.broken === undefined ? [] : [walked.broken])];
  if (broken.length === 0) return { ok: true, records: walked.records, first_broken: null };
  return { ok: false, records: walked.records, first_broken: Math.min(...broken) };
}

/**
 * The same from one record on, which need not be the first: undefined when it and all later ones
 * are intact.
 */
export async function firstBrokenFrom({ run, chain, head }: Verification, seq: number): Promise<number | undefined> {
  if (head !== undefined && !(await run((sql) => holds(sql, head)))) return seq;
  const last = await run(readLastSeq);
  const previous = seq === 1 ? '' : await run((sql) => readHash(sql, seq - 1));
  if (last === undefined || previous === undefined) return seq;
  const start = { seq: String(seq - 1), hash: previous };
  return (await walk({ run, chain, head: undefined }, start, last, start.seq)).broken;
}

interface Walk {
  records: number;
  broken: number | undefined;
}

async function walk(
  { run, chain, head, progress }: Verification,
  start: Pick<StoredCheckpoint, 'seq' | 'hash'> | undefined,
  last: string,
  after?: string,
): Promise<Walk> {
  let previous = start?.hash ?? '';
  let seq = Number(start?.seq ?? 0);
  let records = 0;
  const agrees = (): boolean => head === undefined || head.seq !== seq || head.hash === previous;
  if (!agrees()) return { records, broken: seq };
  for (;;) {
    const from = after;
    const rows = await run((sql) => readChain(sql, from, last, CONCURRENCY));
    for (const row of rows) {
      records += 1;
      if (row.seq !== String(seq + 1)) return { records, broken: Math.min(Number(row.seq), seq + 1) };
      if (chain.hash(previous, row) !== row.hash) return { records, broken: seq + 1 };
      seq += 1;
      previous = row.hash;
      if (!agrees()) return { records, broken: seq };
    }
    progress?.(records);
    after = rows.at(-1)?.seq;
    if (rows.length < CONCURRENCY) break;
  }
  return { records, broken: head !== undefined && head.seq > seq ? seq + 1 : undefined };
}

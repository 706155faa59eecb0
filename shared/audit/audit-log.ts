// The audit log in our own database, chained. Node only: it keeps what waits and the last known record in this process;
// workerd asks its host.

import { AppError } from '@holdfast/kit/app-error';
import type { RunSql } from '@holdfast/kit/kept-database';
import type { Log } from '@holdfast/kit/log';
import type { TransactionSql } from '@holdfast/kit/postgres';
import type { Secret } from '@holdfast/kit/secret';
import { oneLine, shortened } from '@holdfast/kit/text';
import { auditBacklog, auditThrottle, type Entry } from './backlog.ts';
import { type AuditChain, auditChain, auditHead } from './chain.ts';
import type { Audit, AuditResult, AuditSubject } from './port.ts';
import {
  appendRecords,
  findRecord,
  firstOpen,
  holds,
  leaveAuditRole,
  listRecords,
  lockAudit,
  type NewRecord,
  openIntents,
  readHead,
  takeAuditRole,
} from './table.ts';
import { firstBrokenFrom, verifyChain } from './verify.ts';

export interface AuditLogOptions {
  run: RunSql;
  key: Secret | undefined;
  /** Keeps the last record that is known, outside the database, so that a cut-off end is found. */
  headFile: string | undefined;
  log: Log;
  /** Ends everything that was signed for a person, within the transaction of the outcome. */
  endSignInsOf: (transaction: TransactionSql, username: string) => Promise<void>;
  /** Called after an outcome has ended everything that was signed for a person. */
  signInsEnded: (username: string) => void;
  /** How long the minute is in which a flood of notes is counted. */
  minuteMs?: number;
}

type Detail = Readonly<Record<string, unknown>>;

const NO_KEY =
  'AUDIT_KEY is not set, so nothing can be entered in the audit log, and nothing may be changed without. Remedy: set AUDIT_KEY to 32 random characters or more, keep it, and restart.';
const LONGEST_NAME = 150;
const LONGEST_TARGET = 300;
const MOST_DETAIL_BYTES = 4_096;
/** What a job needs to finish the work must not be shortened. */
const MOST_INTENT_BYTES = 16_384;
const SETTLED_WITHIN_MS = 2_000;

export function auditLog({
  run,
  key,
  headFile,
  log,
  endSignInsOf,
  signInsEnded,
  minuteMs = 60_000,
}: AuditLogOptions): Audit {
  const chain = key && auditChain(key);
  const head = auditHead(headFile, log);
  const throttle = auditThrottle(minuteMs);
  const backlog = auditBacklog({ write, log });
  if (chain === undefined) log.error('audit.off', { error: NO_KEY });
  let omittedTimer: NodeJS.Timeout | undefined;
  /** Every intent before this one has its outcome: none is ever taken away. */
  let concludedBefore = 0;

  function needed(): AuditChain {
    if (chain === undefined) throw new AppError('unavailable', NO_KEY);
    return chain;
  }

  /** Everything in one transaction, which is rolled back when the caller was told that it is too late. */
  async function write(entries: readonly Entry[]): Promise<number[]> {
    const known = await head.known();
    let gaveUp = false;
    let isCommitting = false;
    try {
      const done = await run((sql) =>
        sql.begin(async (transaction) => {
          await lockAudit(transaction);
          await takeAuditRole(transaction);
          const isWhole = known === undefined || (await holds(transaction, known));
          const appended = await appendEntries(transaction, needed(), entries);
          await leaveAuditRole(transaction);
          for (const { endsSignInsOf } of entries) if (endsSignInsOf) await endSignInsOf(transaction, endsSignInsOf);
          if (gaveUp) throw new Error('too late');
          isCommitting = true;
          return { ...appended, isWhole };
        }),
      );
      if (known !== undefined && !done.isWhole) head.isMissing(known);
      else if (done.head.seq > 0) head.grown(done.head);
      for (const { endsSignInsOf } of entries) if (endsSignInsOf) signInsEnded(endsSignInsOf);
      return done.seqs;
    } catch (error) {
      gaveUp = true;
      if (isCommitting) for (const entry of entries) entry.uncertain = true;
      throw error;
    }
  }

  function entryOf(
    kind: Entry['kind'],
    { actor, action, target }: AuditSubject,
    rest: Pick<NewRecord, 'phase' | 'result' | 'intent' | 'detail'>,
  ): Entry {
    const record = {
      at: new Date().toISOString(),
      actor: plain(actor.username, LONGEST_NAME),
      address: plain(actor.address, LONGEST_NAME),
      action,
      target: plain(target, LONGEST_TARGET),
      ...rest,
      request_id: plain(actor.requestId, LONGEST_NAME),
    };
    return { kind, record, uncertain: false };
  }

  function enter(subject: AuditSubject, result: AuditResult, detail: Detail | null | undefined): void {
    const rest = { phase: 'outcome', result, intent: null, detail: shortDetail(detail) } as const;
    backlog.append(entryOf('note', subject, rest)).catch(() => undefined);
  }

  /**
   * What is done again must be what somebody was allowed to do, and must not have been done already: an intent counts
   * when it and everything after it is as it was written.
   */
  async function asWritten<T extends { seq: number }>(intents: T[]): Promise<T[]> {
    const [first] = intents;
    if (first === undefined || chain === undefined) return [];
    const broken = await firstBrokenFrom({ run, chain, head: await head.known() }, first.seq);
    if (broken === undefined) return intents;
    log.error('audit.intents_left', { first_broken: broken, remedy: 'see "When verifying fails" in docs/audit.md' });
    return asWritten(intents.filter(({ seq }) => seq > broken));
  }

  function enterOmitted(): void {
    omittedTimer = undefined;
    const omitted = throttle.takeOmitted(performance.now());
    if (omitted !== undefined) {
      const actor = { username: 'holdfast', address: '', requestId: '' };
      enter({ actor, action: 'audit.omitted', target: '' }, 'denied', omitted);
    }
    if (throttle.hasOmitted()) countLater();
  }

  function countLater(): void {
    omittedTimer ??= setTimeout(enterOmitted, minuteMs).unref();
  }

  return {
    async intend(subject, detail) {
      needed();
      const text = JSON.stringify(detail ?? {});
      if (Buffer.byteLength(text) > MOST_INTENT_BYTES)
        throw new AppError(
          'invalid',
          `This changes too much at once: its record has more than ${MOST_INTENT_BYTES} bytes.`,
        );
      const rest = { phase: 'intent', result: null, intent: null, detail: text } as const;
      return backlog.append(entryOf('intent', subject, rest)).catch(refused);
    },

    async conclude(intent, subject, { result, detail, endsSignInsOf }) {
      if (chain === undefined) return;
      const rest = { phase: 'outcome', result, intent, detail: shortDetail(detail) } as const;
      const entry = { ...entryOf('outcome', subject, rest), endsSignInsOf };
      await backlog.append(entry).catch(() => undefined);
    },

    note(subject, result, detail) {
      if (chain === undefined) return;
      // Whoever needs no account and no guess for it must not be able to hide the guesses and the people behind a flood.
      const kind = subject.actor.username === '' ? `${subject.action} of nobody` : subject.action;
      if (throttle.lets(kind, performance.now())) enter(subject, result, detail);
      else countLater();
    },

    async list(filter, offset, limit) {
      await backlog.settled(SETTLED_WITHIN_MS);
      return run((sql) => listRecords(sql, filter, offset, limit));
    },

    async verify() {
      await backlog.settled(SETTLED_WITHIN_MS);
      return verifyChain({ run, chain: needed(), head: await head.inFile() });
    },

    async unfinished(before, limit) {
      const from = concludedBefore;
      const found = await run(async (sql) => {
        concludedBefore = Math.max(concludedBefore, await firstOpen(sql, from));
        return openIntents(sql, concludedBefore, before, limit);
      });
      return asWritten(found);
    },
  };
}

/** What is in the database already, because only the answer to its COMMIT was lost, is not appended again. */
async function appendEntries(sql: TransactionSql, chain: AuditChain, entries: readonly Entry[]) {
  const before = await readHead(sql);
  const records: NewRecord[] = [];
  const seqs: number[] = [];
  for (const { kind, record, uncertain } of entries) {
    const found = uncertain ? await findRecord(sql, record) : undefined;
    const isWithdrawal = kind === 'withdrawal';
    if (isWithdrawal === (found === undefined)) {
      seqs.push(found ?? 0);
      continue;
    }
    records.push(isWithdrawal && found !== undefined ? withdrawn(record, found) : record);
    seqs.push(before.seq + records.length);
  }
  const head = records.length === 0 ? before : await appendRecords(sql, chain, before, records);
  return { seqs, head };
}

function withdrawn(record: NewRecord, intent: number): NewRecord {
  const detail = JSON.stringify({ error: 'The database did not confirm the intent, so nothing was done.' });
  return { ...record, phase: 'outcome', result: 'failed', intent, detail };
}

/** The log has the reason. */
function refused(cause: unknown): never {
  if (cause instanceof AppError) throw cause;
  throw new AppError('unavailable', 'The audit log cannot be written; nothing was changed. Remedy: see the log.', {
    cause,
  });
}

function plain(text: string, most: number): string {
  return shortened(oneLine(text.slice(0, 4 * most)), most);
}

/** A JSON object of bounded size. */
function shortDetail(detail: Detail | null | undefined): string {
  const text = JSON.stringify(detail ?? {});
  if (Buffer.byteLength(text) <= MOST_DETAIL_BYTES) return text;
  return JSON.stringify({ shortened: shortened(text, MOST_DETAIL_BYTES / 8) });
}

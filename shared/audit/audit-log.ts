// Keeps the audit log in our own database, chained. Node only: the queue and the last known record
// are in this process; workerd calls its host.

import { AppError } from '@holdfast/kit/app-error';
import type { Page } from '@holdfast/kit/json';
import type { RunSql } from '@holdfast/kit/kept-database';
import type { Log } from '@holdfast/kit/log';
import type { TransactionSql } from '@holdfast/kit/postgres';
import type { Secret } from '@holdfast/kit/secret';
import { oneLine, shortened } from '@holdfast/kit/text';
import { AuditBacklog, AuditThrottle, type Entry } from './backlog.ts';
import { type AuditChain, auditChain, auditHead } from './chain.ts';
import type {
  Audit,
  AuditFilter,
  AuditRecord,
  AuditResult,
  AuditSubject,
  AuditVerdict,
  Conclusion,
  OpenIntent,
} from './port.ts';
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
  /** Remembers the last known record outside the database, so that a truncated log is detected. */
  headFile: string | undefined;
  log: Log;
  /** Ends every session and token of a person, within the transaction of the outcome. */
  endSignInsOf: (transaction: TransactionSql, username: string) => Promise<void>;
  /** Called after an outcome has ended every session and token of a person. */
  signInsEnded: (username: string) => void;
  /** The period in which a flood of notes is counted. */
  minuteMs?: number;
}

type Detail = Readonly<Record<string, unknown>>;

const NO_KEY =
  "AUDIT_KEY is not set, so the audit log can't be written and no change is allowed. Remedy: set AUDIT_KEY to 32 random characters or more, keep it, and restart.";
const MAX_NAME_LENGTH = 150;
const MAX_TARGET_LENGTH = 300;
const MAX_DETAIL_BYTES = 4_096;
/** A job needs this detail to finish the work, so it must not be shortened. */
const MAX_INTENT_BYTES = 16_384;
const SETTLED_WITHIN_MS = 2_000;

export class AuditLog implements Audit {
  readonly #run: AuditLogOptions['run'];
  readonly #log: AuditLogOptions['log'];
  readonly #endSignInsOf: AuditLogOptions['endSignInsOf'];
  readonly #signInsEnded: AuditLogOptions['signInsEnded'];
  readonly #minuteMs: NonNullable<AuditLogOptions['minuteMs']>;
  readonly #chain: AuditChain | undefined;
  readonly #head: ReturnType<typeof auditHead>;
  readonly #throttle: AuditThrottle;
  readonly #backlog: AuditBacklog;
  #isCounting = false;
  /** Every intent before this one has its outcome, and outcomes are never removed. */
  #concludedBefore = 0;

  constructor({ run, key, headFile, log, endSignInsOf, signInsEnded, minuteMs = 60_000 }: AuditLogOptions) {
    this.#run = run;
    this.#log = log;
    this.#endSignInsOf = endSignInsOf;
    this.#signInsEnded = signInsEnded;
    this.#minuteMs = minuteMs;
    this.#chain = key && auditChain(key);
    this.#head = auditHead(headFile, log);
    this.#throttle = new AuditThrottle(minuteMs);
    this.#backlog = new AuditBacklog({ write: (entries) => this.#write(entries), log });
    if (this.#chain === undefined) log.error('audit.off', { error: NO_KEY });
  }

  #needed(): AuditChain {
    if (this.#chain === undefined) throw new AppError('unavailable', NO_KEY);
    return this.#chain;
  }

  /** Everything in one transaction, which is rolled back when the caller has already timed out. */
  async #write(entries: readonly Entry[]): Promise<number[]> {
    const known = await this.#head.known();
    let gaveUp = false;
    let isCommitting = false;
    try {
      const done = await this.#run((sql) =>
        sql.begin(async (transaction) => {
          await lockAudit(transaction);
          await takeAuditRole(transaction);
          const isWhole = known === undefined || (await holds(transaction, known));
          const appended = await appendEntries(transaction, this.#needed(), entries);
          await leaveAuditRole(transaction);
          for (const { endsSignInsOf } of entries)
            if (endsSignInsOf) await this.#endSignInsOf(transaction, endsSignInsOf);
          if (gaveUp) throw new Error('timed out');
          isCommitting = true;
          return { ...appended, isWhole };
        }),
      );
      if (known !== undefined && !done.isWhole) this.#head.isMissing(known);
      else if (done.head.seq > 0) this.#head.grown(done.head);
      for (const { endsSignInsOf } of entries) if (endsSignInsOf) this.#signInsEnded(endsSignInsOf);
      return done.seqs;
    } catch (error) {
      gaveUp = true;
      if (isCommitting) for (const entry of entries) entry.uncertain = true;
      throw error;
    }
  }

  #entryOf(
    kind: Entry['kind'],
    { actor, action, target }: AuditSubject,
    rest: Pick<NewRecord, 'phase' | 'result' | 'intent' | 'detail'>,
  ): Entry {
    const record = {
      at: new Date().toISOString(),
      actor: plain(actor.username, MAX_NAME_LENGTH),
      address: plain(actor.address, MAX_NAME_LENGTH),
      action,
      target: plain(target, MAX_TARGET_LENGTH),
      ...rest,
      request_id: plain(actor.requestId, MAX_NAME_LENGTH),
    };
    return { kind, record, uncertain: false };
  }

  #enter(subject: AuditSubject, result: AuditResult, detail: Detail | null | undefined): void {
    const rest = { phase: 'outcome', result, intent: null, detail: shortDetail(detail) } as const;
    this.#backlog.append(this.#entryOf('note', subject, rest)).catch(() => undefined);
  }

  /**
   * Work is only repeated when an administrator really requested it and it isn't done already: an
   * intent counts when it and every later record are as they were written.
   */
  async #asWritten<T extends { seq: number }>(intents: T[]): Promise<T[]> {
    const [first] = intents;
    if (first === undefined || this.#chain === undefined) return [];
    const broken = await firstBrokenFrom(
      { run: this.#run, chain: this.#chain, head: await this.#head.known() },
      first.seq,
    );
    if (broken === undefined) return intents;
    this.#log.error('audit.intents_left', {
      first_broken: broken,
      remedy: 'see "When verifying fails" in docs/audit.md',
    });
    return this.#asWritten(intents.filter(({ seq }) => seq > broken));
  }

  #enterOmitted(): void {
    this.#isCounting = false;
    const omitted = this.#throttle.takeOmitted(performance.now());
    if (omitted !== undefined) {
      const actor = { username: 'holdfast', address: '', requestId: '' };
      this.#enter({ actor, action: 'audit.omitted', target: '' }, 'denied', omitted);
    }
    if (this.#throttle.hasOmitted()) this.#countLater();
  }

  #countLater(): void {
    if (this.#isCounting) return;
    this.#isCounting = true;
    setTimeout(() => this.#enterOmitted(), this.#minuteMs).unref();
  }

  async intend(subject: AuditSubject, detail?: Detail): Promise<number> {
    this.#needed();
    const text = JSON.stringify(detail ?? {});
    if (Buffer.byteLength(text) > MAX_INTENT_BYTES)
      throw new AppError(
        'invalid',
        `This change is too large: its record has more than ${MAX_INTENT_BYTES} bytes. Make several smaller changes.`,
      );
    const rest = { phase: 'intent', result: null, intent: null, detail: text } as const;
    return this.#backlog.append(this.#entryOf('intent', subject, rest)).catch(refused);
  }

  async conclude(intent: number, subject: AuditSubject, { result, detail, endsSignInsOf }: Conclusion): Promise<void> {
    if (this.#chain === undefined) return;
    const rest = { phase: 'outcome', result, intent, detail: shortDetail(detail) } as const;
    const entry = { ...this.#entryOf('outcome', subject, rest), endsSignInsOf };
    await this.#backlog.append(entry).catch(() => undefined);
  }

  note(subject: AuditSubject, result: AuditResult, detail?: Detail): void {
    if (this.#chain === undefined) return;
    // An unauthenticated client must not be able to hide guesses, or other people, behind a flood.
    const kind = subject.actor.username === '' ? `${subject.action} without an account` : subject.action;
    if (this.#throttle.lets(kind, performance.now())) this.#enter(subject, result, detail);
    else this.#countLater();
  }

  async list(filter: AuditFilter, offset: number, limit: number): Promise<Page<AuditRecord>> {
    await this.#backlog.settled(SETTLED_WITHIN_MS);
    return this.#run((sql) => listRecords(sql, filter, offset, limit));
  }

  async verify(): Promise<AuditVerdict> {
    await this.#backlog.settled(SETTLED_WITHIN_MS);
    return verifyChain({ run: this.#run, chain: this.#needed(), head: await this.#head.inFile() });
  }

  async unfinished(before: string, limit: number): Promise<OpenIntent[]> {
    const from = this.#concludedBefore;
    const found = await this.#run(async (sql) => {
      this.#concludedBefore = Math.max(this.#concludedBefore, await firstOpen(sql, from));
      return openIntents(sql, this.#concludedBefore, before, limit);
    });
    return this.#asWritten(found);
  }
}

/**
 * A record that is already in the database, because only the response to its COMMIT was lost, is
 * not appended again.
 */
async function appendEntries(sql: TransactionSql, chain: AuditChain, entries: readonly Entry[]) {
  const before = await readHead(sql);
  const records: NewRecord[] = [];
  const seqs: number[] = [];
  for (const { kind, record, uncertain } of entries) {
    const found = uncertain ? await findRecord(sql, record) : undefined;
    const isCancellation = kind === 'withdrawal';
    if (isCancellation === (found === undefined)) {
      seqs.push(found ?? 0);
      continue;
    }
    records.push(isCancellation && found !== undefined ? canceled(record, found) : record);
    seqs.push(before.seq + records.length);
  }
  const head = records.length === 0 ? before : await appendRecords(sql, chain, before, records);
  return { seqs, head };
}

function canceled(record: NewRecord, intent: number): NewRecord {
  const detail = JSON.stringify({ error: 'The database did not confirm the intent, so nothing was done.' });
  return { ...record, phase: 'outcome', result: 'failed', intent, detail };
}

/** The log has the reason. */
function refused(cause: unknown): never {
  if (cause instanceof AppError) throw cause;
  throw new AppError('unavailable', "The audit log can't be written, so nothing was changed. Remedy: see the log.", {
    cause,
  });
}

function plain(text: string, most: number): string {
  return shortened(oneLine(text.slice(0, 4 * most)), most);
}

/** A JSON object of bounded size. */
function shortDetail(detail: Detail | null | undefined): string {
  const text = JSON.stringify(detail ?? {});
  if (Buffer.byteLength(text) <= MAX_DETAIL_BYTES) return text;
  return JSON.stringify({ shortened: shortened(text, MAX_DETAIL_BYTES / 8) });
}

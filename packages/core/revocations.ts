// Keeps revocations in memory for handshakes, and in the table and revocation list for others.
// Never forgets one: what the table, the files or this process know counts.

import { X509Certificate } from 'node:crypto';
import { messageOf } from '@holdfast/kit/app-error';
import { serialize } from '@holdfast/kit/concurrency';
import type { Log } from '@holdfast/kit/log';
import { DAY_MS, HOUR_MS } from '@holdfast/kit/time';
import type { Authority, RevocationListTimes, RevokedEntry } from '@holdfast/pki/parts';
import { PageFault } from './http/answers.ts';
import type { CertificateRecord, CertificateStore, LiveConnections, Revocations } from './model/parts.ts';
import { serialOf } from './tls/admission.ts';

export interface RevocationsOptions {
  authority: Pick<Authority, 'revokedInFiles' | 'writeRevocationList'>;
  certificates: Pick<CertificateStore, 'list' | 'setRevoked'>;
  /** Another text as soon as the table knows another revocation. */
  tableMark: () => Promise<string>;
  live: LiveConnections;
  /** Makes the secrets of every listener anew, so that no ticket of before is taken. */
  rebuildContexts: () => void;
  log: Log;
  now: () => Date;
}

/** Less than the minute that is promised, because it is looked at every half minute. */
const RETRY_MS = 50_000;
const REMIND_MS = HOUR_MS;
const UNWRITTEN =
  "The certificate is revoked on this server, but couldn't be added to the revocation list. The core retries every minute. Its log has the reason.";

/**
 * Everybody who is refused is known, but the list of them could not be written. It is tried again
 * by itself.
 */
export class ListUnwritten extends Error {
  constructor(cause: unknown) {
    super(`Couldn't write the revocation list: ${messageOf(cause)}`, { cause });
    this.name = 'ListUnwritten';
  }
}

export class KeptRevocations implements Revocations {
  readonly #options: RevocationsOptions;
  readonly #refused = new Map<string, RevokedEntry>();
  readonly #unreadable = new Set<number>();
  #times: RevocationListTimes | undefined;
  #markSeen: string | undefined;
  #writtenAt = Number.NEGATIVE_INFINITY;
  #triedAt = Number.NEGATIVE_INFINITY;
  #remindedAt = Number.NEGATIVE_INFINITY;
  #unwritten = true;
  readonly #inTurn = serialize();

  constructor(options: RevocationsOptions) {
    this.#options = options;
  }

  isRevoked(serial: string): boolean {
    return this.#refused.has(serial);
  }

  revoke(record: CertificateRecord, { except }: { except?: object | undefined } = {}): Promise<CertificateRecord> {
    return this.#inTurn(() => this.#revoke(record, except));
  }

  refresh(): Promise<RevocationListTimes> {
    return this.#inTurn(() => this.#refresh());
  }

  /**
   * Takes in what another node has revoked. Every node writes the list then, so that the last one
   * to write has all. Rejects with an AppError when the database is away.
   */
  async reread(): Promise<void> {
    if ((await this.#options.tableMark()) === this.#markSeen) return;
    await this.#inTurn(async () => {
      this.#enforce(await this.#takeInTable());
      if (this.#unwritten) await this.#writeOrLog();
    });
  }

  /** Refuses what another node has revoked, without asking the table. */
  learn(entries: readonly RevokedEntry[]): void {
    this.#enforce(this.#takeIn(entries));
  }

  /** The entry of a certificate that is refused; none for another. */
  refused({ certificate }: Pick<CertificateRecord, 'certificate'>): RevokedEntry[] {
    const entry = this.#refused.get(serialIn(certificate) ?? '');
    return entry === undefined ? [] : [entry];
  }

  listTimes(): RevocationListTimes | undefined {
    return this.#unwritten ? undefined : this.#times;
  }

  /**
   * To be called every half minute: takes in what was revoked by hand in the table, writes the list
   * when a day has passed or the last try failed, says every hour that the list has expired. Never
   * rejects.
   */
  async look(): Promise<void> {
    try {
      if (await this.#isDue()) await this.#inTurn(() => this.#refresh());
    } catch (error) {
      this.#options.log.warn('crl.refresh_failed', {
        error: messageOf(error),
        next_update: this.#times?.nextUpdate ?? null,
      });
    }
    const at = this.#options.now().getTime();
    if (
      this.#times === undefined ||
      this.#times.nextUpdate.getTime() > at ||
      Math.abs(at - this.#remindedAt) < REMIND_MS
    )
      return;
    this.#remindedAt = at;
    this.#options.log.error('crl.expired', { next_update: this.#times.nextUpdate });
  }

  /** The serial numbers that were not refused before. */
  #takeIn(entries: readonly RevokedEntry[]): string[] {
    const added = entries.filter(({ serial }) => !this.#refused.has(serial));
    for (const entry of added) this.#refused.set(entry.serial, entry);
    if (added.length > 0) this.#unwritten = true;
    return added.map(({ serial }) => serial);
  }

  #entryOf(record: CertificateRecord): RevokedEntry | undefined {
    const serial = serialIn(record.certificate);
    if (serial === undefined) {
      if (!this.#unreadable.has(record.id)) {
        this.#options.log.error('crl.certificate_unreadable', { id: record.id, name: record.userDn });
      }
      this.#unreadable.add(record.id);
      return undefined;
    }
    const { revocationDate, expirationDate: expiresAt, subjectDn: subject } = record;
    // A date to come counts now: who is refused is in the list.
    const at = this.#options.now();
    return {
      serial,
      revokedAt: revocationDate === null || revocationDate > at ? at : revocationDate,
      expiresAt,
      subject,
    };
  }

  async #write(): Promise<RevocationListTimes> {
    const at = this.#options.now();
    this.#triedAt = at.getTime();
    this.#unwritten = true;
    this.#times = await this.#options.authority.writeRevocationList([...this.#refused.values()], at);
    this.#unwritten = false;
    this.#writtenAt = at.getTime();
    return this.#times;
  }

  /** Old tickets stop to count, open connections end. */
  #enforce(serials: readonly string[], except?: object): number {
    if (serials.length === 0) return 0;
    this.#options.rebuildContexts();
    return serials.reduce((ended, serial) => ended + this.#options.live.end(serial, except), 0);
  }

  async #revoke(record: CertificateRecord, except?: object): Promise<CertificateRecord> {
    const row = await this.#options.certificates.setRevoked(record.id, this.#options.now());
    const entry = this.#entryOf(row);
    if (entry === undefined) {
      throw new Error(`couldn't read the certificate of row ${record.id}: it has no serial number to revoke`);
    }
    this.#takeIn([entry]);
    const ended = this.#enforce([entry.serial], except);
    this.#options.log.info('certificate.revoked', {
      name: row.userDn,
      hash: row.hash,
      serial: entry.serial,
      connections_ended: ended,
    });
    const failure = await this.#writeOrLog();
    if (failure !== undefined) throw new PageFault(500, UNWRITTEN, { cause: failure });
    return row;
  }

  /** Resolves with the error that it has logged. */
  async #writeOrLog(): Promise<Error | undefined> {
    try {
      await this.#write();
      return undefined;
    } catch (error) {
      this.#options.log.error('crl.not_written', { error: messageOf(error) });
      return error instanceof Error ? error : new Error(messageOf(error));
    }
  }

  async #takeInTable(): Promise<string[]> {
    const mark = await this.#options.tableMark();
    const rows = await this.#options.certificates.list('revoked', this.#options.now());
    this.#markSeen = mark;
    return this.#takeIn(rows.flatMap((row) => this.#entryOf(row) ?? []));
  }

  /**
   * What the files say counts although the table does not answer, and the list is written either
   * way.
   */
  async #refresh(): Promise<RevocationListTimes> {
    const inFiles = this.#takeIn(this.#options.authority.revokedInFiles());
    const [table] = await Promise.allSettled([this.#takeInTable()]);
    this.#enforce([...inFiles, ...(table.status === 'fulfilled' ? table.value : [])]);
    const [written] = await Promise.allSettled([this.#write()]);
    if (table.status === 'rejected') throw table.reason;
    if (written.status === 'rejected') throw new ListUnwritten(written.reason);
    return written.value;
  }

  async #isDue(): Promise<boolean> {
    const at = this.#options.now().getTime();
    if (this.#unwritten || at < this.#writtenAt || at - this.#writtenAt >= DAY_MS)
      return at < this.#triedAt || at - this.#triedAt >= RETRY_MS;
    return (await this.#options.tableMark()) !== this.#markSeen;
  }
}

/** A negative one is none: our CA gives none out, and no list could hold it. */
function serialIn(pem: string): string | undefined {
  try {
    const serial = serialOf(new X509Certificate(pem));
    return /^[0-9a-f]+$/.test(serial) ? serial : undefined;
  } catch {
    return undefined;
  }
}

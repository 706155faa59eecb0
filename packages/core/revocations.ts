// Who is refused: kept in memory for the handshakes, in the table and in the revocation list for everybody else. Nobody who
// was ever revoked is forgotten: what the table, the files or this process know counts.

import { X509Certificate } from 'node:crypto';
import { messageOf } from '@holdfast/kit/app-error';
import { oneAfterTheOther } from '@holdfast/kit/limits';
import type { Log } from '@holdfast/kit/log';
import { DAY_MS, HOUR_MS } from '@holdfast/kit/time';
import type { Authority, RevocationListTimes, RevokedEntry } from '@holdfast/pki/parts';
import { PageFault } from './http/answers.ts';
import type { CertificateRecord, CertificateStore, LiveConnections, Revocations } from './model/parts.ts';
import { serialOf } from './tls/client-certificate.ts';

export interface RevocationsOptions {
  authority: Pick<Authority, 'revokedInFiles' | 'writeRevocationList'>;
  certificates: Pick<CertificateStore, 'list' | 'setRevoked'>;
  /** Another text as soon as the table knows another revocation. */
  tableMark: () => Promise<string>;
  live: LiveConnections;
  /** Makes the secrets of every listener anew, so that no ticket of before is taken. */
  contextsAnew: () => void;
  log: Log;
  now: () => Date;
}

export interface KeptRevocations extends Revocations {
  /**
   * To be called every half minute: takes in what was revoked by hand in the table, writes the list when a day has passed
   * or the last try failed, says every hour that the list has expired. Never rejects.
   */
  look(): Promise<void>;
}

/** Less than the minute that is promised, because it is looked at every half minute. */
const RETRY_MS = 50_000;
const REMIND_MS = HOUR_MS;
const UNWRITTEN =
  'The certificate is refused here from now on, but the revocation list could not be written. The core tries again each minute; its log says why.';

/** Everybody who is refused is known, but the list of them could not be written. It is tried again by itself. */
export class ListUnwritten extends Error {
  constructor(cause: unknown) {
    super(`The revocation list could not be written: ${messageOf(cause)}`, { cause });
    this.name = 'ListUnwritten';
  }
}

export function createRevocations(options: RevocationsOptions): KeptRevocations {
  const { authority, certificates, tableMark, live, contextsAnew, log, now } = options;
  const refused = new Map<string, RevokedEntry>();
  const unreadable = new Set<number>();
  let times: RevocationListTimes | undefined;
  let markSeen: string | undefined;
  let writtenAt = Number.NEGATIVE_INFINITY;
  let triedAt = Number.NEGATIVE_INFINITY;
  let remindedAt = Number.NEGATIVE_INFINITY;
  let unwritten = true;
  const inTurn = oneAfterTheOther();

  /** The serial numbers that were not refused before. */
  function takeIn(entries: readonly RevokedEntry[]): string[] {
    const added = entries.filter(({ serial }) => !refused.has(serial));
    for (const entry of added) refused.set(entry.serial, entry);
    if (added.length > 0) unwritten = true;
    return added.map(({ serial }) => serial);
  }

  function entryOf(record: CertificateRecord): RevokedEntry | undefined {
    const serial = serialIn(record.certificate);
    if (serial === undefined) {
      if (!unreadable.has(record.id)) {
        log.error('crl.certificate_unreadable', { id: record.id, name: record.userDn });
      }
      unreadable.add(record.id);
      return undefined;
    }
    const { revocationDate, expirationDate: expiresAt, subjectDn: subject } = record;
    // A date to come counts now: who is refused is in the list.
    const at = now();
    return {
      serial,
      revokedAt: revocationDate === null || revocationDate > at ? at : revocationDate,
      expiresAt,
      subject,
    };
  }

  async function write(): Promise<RevocationListTimes> {
    const at = now();
    triedAt = at.getTime();
    unwritten = true;
    times = await authority.writeRevocationList([...refused.values()], at);
    unwritten = false;
    writtenAt = at.getTime();
    return times;
  }

  /** Old tickets stop to count, open connections end. */
  function enforce(serials: readonly string[], except?: object): number {
    if (serials.length === 0) return 0;
    contextsAnew();
    return serials.reduce((ended, serial) => ended + live.end(serial, except), 0);
  }

  async function revoke(record: CertificateRecord, except?: object): Promise<CertificateRecord> {
    const row = await certificates.setRevoked(record.id, now());
    const entry = entryOf(row);
    if (entry === undefined) {
      throw new Error(`the certificate of row ${record.id} cannot be read: it has no serial number to be refused by`);
    }
    takeIn([entry]);
    const ended = enforce([entry.serial], except);
    log.info('certificate.revoked', {
      name: row.userDn,
      hash: row.hash,
      serial: entry.serial,
      connections_ended: ended,
    });
    try {
      await write();
    } catch (error) {
      log.error('crl.not_written', { error: messageOf(error) });
      throw new PageFault(500, UNWRITTEN, { cause: error });
    }
    return row;
  }

  async function takeInTable(): Promise<string[]> {
    const mark = await tableMark();
    const rows = await certificates.list('revoked', now());
    markSeen = mark;
    return takeIn(rows.flatMap((row) => entryOf(row) ?? []));
  }

  /** What the files say counts although the table does not answer, and the list is written either way. */
  async function refresh(): Promise<RevocationListTimes> {
    const inFiles = takeIn(authority.revokedInFiles());
    const [table] = await Promise.allSettled([takeInTable()]);
    enforce([...inFiles, ...(table.status === 'fulfilled' ? table.value : [])]);
    const [written] = await Promise.allSettled([write()]);
    if (table.status === 'rejected') throw table.reason;
    if (written.status === 'rejected') throw new ListUnwritten(written.reason);
    return written.value;
  }

  async function isDue(): Promise<boolean> {
    const at = now().getTime();
    if (unwritten || at < writtenAt || at - writtenAt >= DAY_MS) return at < triedAt || at - triedAt >= RETRY_MS;
    return (await tableMark()) !== markSeen;
  }

  async function look(): Promise<void> {
    try {
      if (await isDue()) await inTurn(refresh);
    } catch (error) {
      log.warn('crl.refresh_failed', { error: messageOf(error), next_update: times?.nextUpdate ?? null });
    }
    const at = now().getTime();
    if (times === undefined || times.nextUpdate.getTime() > at || Math.abs(at - remindedAt) < REMIND_MS) return;
    remindedAt = at;
    log.error('crl.expired', { next_update: times.nextUpdate });
  }

  return {
    isRevoked: (serial) => refused.has(serial),
    revoke: (record, { except } = {}) => inTurn(() => revoke(record, except)),
    refresh: () => inTurn(refresh),
    listTimes: () => (unwritten ? undefined : times),
    look,
  };
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

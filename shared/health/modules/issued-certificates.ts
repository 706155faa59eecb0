// Finds issued certificates of users, devices and programs that expire soon. Counts only those
// still in use: not revoked, not replaced by a newer one of the same device, not expired long ago.

import { messageOf } from '@holdfast/kit/app-error';
import { counted } from '@holdfast/kit/format';
import { API_ACCOUNT, CANARY_ACCOUNT, nameKey } from '@holdfast/kit/names';
import { DAY_MS } from '@holdfast/kit/time';
import type { Core, CoreCertificate } from '../../core/port.ts';
import type { CertificateStore, MadeCertificate } from '../../devices/port.ts';
import { certificateFile } from '../../devices/rules.ts';
import type { ModuleThresholds } from '../../settings/status.ts';
import { type Finding, limitsOf } from '../evaluate.ts';

export interface IssuedCertificate {
  file: string;
  username: string;
  expires_at: string;
  /** Whole days, rounded down; negative after it has expired. */
  days_left: number;
}

export interface IssuedCertificates {
  /** Usable certificates; null while the core is unavailable. */
  count: number | null;
  /** The first to expire come first; at most 200. */
  certificates: IssuedCertificate[];
  /** Why they could not be read; null if they were. */
  problem: string | null;
}

const MAX_SHOWN = 200;
/** A device that has not enrolled again by then is no longer in use. */
const LOOKED_AT_DAYS_AFTER_END = 7;

export async function readIssued(
  core: Pick<Core, 'certificates'>,
  store: Pick<CertificateStore, 'made'>,
  now: Date,
): Promise<IssuedCertificates> {
  try {
    const [all, made] = await Promise.all([core.certificates(), store.made()]);
    const names = new Map(made.map((each) => [each.hash, each]));
    const used = inUse(all, now).map((each) => shown(each, names.get(each.hash), now));
    const soonest = used.toSorted((a, b) => a.expires_at.localeCompare(b.expires_at));
    return { count: used.length, certificates: soonest.slice(0, MAX_SHOWN), problem: null };
  } catch (error) {
    return { count: null, certificates: [], problem: messageOf(error).replace(/\.$/, '') };
  }
}

export function judgeIssued({ certificates, problem }: IssuedCertificates, thresholds: ModuleThresholds): Finding[] {
  if (problem !== null)
    return [{ kind: 'fact', status: 'warning', says: `couldn't check issued certificates: ${problem}` }];
  return certificates.map(({ file, username, days_left: left, expires_at: end }) =>
    left < 0
      ? { kind: 'fact', status: 'critical', says: `${file} of ${username} expired on ${end.slice(0, 10)}` }
      : certificateEnds(`${file} of ${username}`, left, thresholds),
  );
}

function inUse(all: readonly CoreCertificate[], now: Date): CoreCertificate[] {
  const newest = new Map<string, CoreCertificate>();
  for (const each of all) {
    const device = JSON.stringify([nameKey(each.username), each.clientUid]);
    const before = newest.get(device);
    if (before === undefined || before.issuedAt <= each.issuedAt) newest.set(device, each);
  }
  return [...newest.values()].filter(
    ({ username, revokedAt, expiresAt }) =>
      // The file of svc_api is checked separately.
      ![API_ACCOUNT, CANARY_ACCOUNT].includes(username) &&
      revokedAt === null &&
      daysUntil(expiresAt, now) >= -LOOKED_AT_DAYS_AFTER_END,
  );
}

function shown(certificate: CoreCertificate, made: MadeCertificate | undefined, now: Date): IssuedCertificate {
  const { username, expiresAt } = certificate;
  return {
    file: certificateFile(certificate, made),
    username,
    expires_at: expiresAt,
    days_left: daysUntil(expiresAt, now),
  };
}

/** Whole days until an ISO 8601 time, rounded down. */
export function daysUntil(end: string, now: Date): number {
  return Math.floor((Date.parse(end) - now.getTime()) / DAY_MS);
}

/**
 * Judges the days left against the limits of the module; null counts as no figure, which is never
 * ok.
 */
export function certificateEnds(subject: string, daysLeft: number | null, thresholds: ModuleThresholds): Finding {
  return {
    kind: 'figure',
    subject,
    value: daysLeft ?? Number.NaN,
    limits: limitsOf(thresholds),
    lowerIsWorse: true,
    says: `the certificate expires in ${counted(daysLeft ?? 0, 'day')}`,
    format: (limit) => counted(limit, 'day'),
  };
}

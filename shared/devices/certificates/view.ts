// Displays a certificate from the core's record, Holdfast's record and the state of its revocation.
// Its owner is the name in the record, never the name of a file.

import { DAY_MS } from '@holdfast/kit/time';
import type { CoreCertificate } from '../../core/port.ts';
import type { MadeCertificate, Revocation, RevocationState } from '../port.ts';
import { certificateFile } from '../rules.ts';

export type CertificateState = 'active' | 'expired' | RevocationState;

/** A certificate as everybody sees it. Times are ISO 8601 in UTC. */
export interface CertificateView {
  file: string;
  username: string;
  /** Null for one that a device enrolled. */
  name: string | null;
  serial: string;
  /** SHA-256: `AA:BB:…`, the core's hash. */
  fingerprint: string;
  issued_at: string;
  expires_at: string;
  /**
   * When it stops to open anything: its end, that of its user, or its revocation, whichever is
   * first.
   */
  effective_until: string;
  /** Whole days until then, rounded down; never less than 0. */
  days_left: number;
  state: CertificateState;
  revoked_at: string | null;
  downloadable: boolean;
  client_uid: string;
}

export interface CertificateFacts {
  certificate: Omit<CoreCertificate, 'pem'>;
  made: MadeCertificate | undefined;
  revocation: Revocation | undefined;
  /** Its user expires then, in seconds of Unix time; null: never, or nobody knows. */
  userExpires: number | null;
  /** A key of it is kept. */
  kept: boolean;
}

export function toCertificateView(facts: CertificateFacts, now: Date): CertificateView {
  const { certificate, made, userExpires, kept } = facts;
  const { hash, username, serial, clientUid, issuedAt, expiresAt, revokedAt } = certificate;
  const state = certificateState(facts, now);
  const ends = [Date.parse(expiresAt)];
  if (userExpires !== null) ends.push(userExpires * 1000);
  if (revokedAt !== null) ends.push(Date.parse(revokedAt));
  const effectiveUntil = Math.min(...ends);
  return {
    file: certificateFile(certificate, made),
    username,
    name: made === undefined ? null : nameOf(made),
    serial,
    fingerprint: hash,
    issued_at: issuedAt,
    expires_at: expiresAt,
    effective_until: new Date(effectiveUntil).toISOString(),
    days_left: Math.max(0, Math.floor((effectiveUntil - now.getTime()) / DAY_MS)),
    state,
    revoked_at: revokedAt,
    downloadable: kept && state === 'active',
    client_uid: clientUid,
  };
}

/**
 * A date at the core is no proof: without one of ours, it is on its way. What has ended needs none.
 */
export function certificateState(
  { certificate, revocation }: Pick<CertificateFacts, 'certificate' | 'revocation'>,
  now: Date,
): CertificateState {
  const isOver = Date.parse(certificate.expiresAt) <= now.getTime();
  if (revocation !== undefined) return revocation.state;
  if (certificate.revokedAt !== null) return isOver ? 'revoked' : 'revoking';
  return isOver ? 'expired' : 'active';
}

function nameOf({ username, name }: MadeCertificate): string {
  return name === '' ? username : name;
}

// A certificate in words: what it is called, how it stands, and where its page is.

import type { Status } from '../../../shared/domain/status.ts';
import { isOwnCertificate } from '../../../shared/verbs/revocation.ts';
import type { CertificateState, ShownCertificate } from '../../../shared/verbs/shown-certificate.ts';
import { StatusBadge } from '../parts/status.tsx';

const STATES: Record<CertificateState, readonly [Status, string]> = {
  active: ['ok', 'In force'],
  expired: ['note', 'Ended'],
  revoking: ['warning', 'Being revoked'],
  revoked: ['note', 'Revoked'],
  revocation_failed: ['critical', 'Not shut out yet'],
};

export function CertificateBadge({ state }: { state: CertificateState }) {
  const [status, words] = STATES[state];
  return <StatusBadge status={status}>{words}</StatusBadge>;
}

/** The name that it was issued under, else what its device calls itself. */
export function certificateName({ name, client_uid: uid, file }: ShownCertificate): string {
  return name ?? (uid === '' ? file : uid);
}

/** By its hash: several can have one name. */
export function certificatePath({ fingerprint }: Pick<ShownCertificate, 'fingerprint'>): string {
  return `/certificates/${fingerprint.replaceAll(':', '').toLowerCase()}`;
}

/** Something may still change by itself. */
export function isOnItsWay({ state }: ShownCertificate): boolean {
  return state === 'revoking' || state === 'revocation_failed';
}

/** That by which Holdfast itself uses the core is replaced at the core alone. */
export function isRevocable({ state, username, client_uid: clientUid }: ShownCertificate): boolean {
  return state === 'active' && !isOwnCertificate({ username, clientUid });
}

/** For pages that one comes back to with `?done=` after a certificate was revoked. */
export const REVOCATION_SENTENCES = {
  revoked: 'The certificate is revoked: its device is shut out, and cannot come back.',
  revoking:
    'The certificate is being revoked. It counts as revoked when that is proven, which is tried every 5 seconds.',
} as const;

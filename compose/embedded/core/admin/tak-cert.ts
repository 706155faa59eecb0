// A certificate as the API shows it, and the PEM files that people take away.

import { X509Certificate } from 'node:crypto';
import { certificateDate } from '../http/answers.ts';
import type { CertificateRecord } from '../parts.ts';
import { serialOf } from '../tls/client-certificate.ts';

/** The members that clients read; what has no value is null. */
export function takCert(record: CertificateRecord) {
  return {
    id: record.id,
    creatorDn: record.creatorDn,
    subjectDn: record.subjectDn,
    userDn: record.userDn,
    certificate: record.certificate,
    hash: record.hash,
    clientUid: record.clientUid,
    issuanceDate: certificateDate(record.issuanceDate),
    effectiveDate: certificateDate(record.effectiveDate),
    expirationDate: certificateDate(record.expirationDate),
    revocationDate: record.revocationDate === null ? null : certificateDate(record.revocationDate),
    token: record.token,
    serialNumber: serialNumberOf(record.certificate),
  };
}

/** Lower-case hex without leading zeros; null for a row whose certificate cannot be read (rule `foreignRow`). */
function serialNumberOf(pem: string): string | null {
  try {
    return serialOf(new X509Certificate(pem));
  } catch {
    return null;
  }
}

const MOST_NAME = 64;

/** `1_ada_ClientCert.pem`: no character of a name leads out of a folder. */
export function pemFileName(position: number, { userDn }: Pick<CertificateRecord, 'userDn'>): string {
  const name = userDn.replaceAll(/[^A-Za-z0-9._-]/g, '_').slice(0, MOST_NAME);
  return `${position}_${name}_ClientCert.pem`;
}

// A certificate as the API shows it, and the PEM files that people take away.

import { X509Certificate } from 'node:crypto';
import { CONTEXT_0, derElements, INTEGER, onlyElement, SEQUENCE } from '../../../../shared/domain/der.ts';
import { certificateDate } from '../http/answers.ts';
import type { CertificateRecord } from '../parts.ts';
import { normalSerial } from '../pki/keys.ts';
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
export function serialNumberOf(pem: string): string | null {
  try {
    return quickSerial(pem) ?? serialOf(new X509Certificate(pem));
  } catch {
    return null;
  }
}

const ALONE = /^-----BEGIN CERTIFICATE-----([A-Za-z0-9+/=\s]+)-----END CERTIFICATE-----\s*$/;
const HIGHEST_BIT = 0x80;

/**
 * From where it stands in every certificate of version 3. A list may have 20,000 of them, and reading each as a whole takes ten
 * times as long. Undefined, or a DerError, for what is not so plain.
 */
function quickSerial(pem: string): string | undefined {
  const [, body] = ALONE.exec(pem) ?? [];
  if (body === undefined) return undefined;
  const signed = onlyElement(new Uint8Array(Buffer.from(body, 'base64')), SEQUENCE);
  const fields = derElements(derElements(signed.content).next(SEQUENCE).content);
  if (fields.next().tag !== CONTEXT_0) return undefined;
  const { tag, content } = fields.next();
  const isPlain = tag === INTEGER && (content[0] ?? HIGHEST_BIT) < HIGHEST_BIT;
  return isPlain ? normalSerial(Buffer.from(content).toString('hex')) : undefined;
}

const MOST_NAME = 64;

/** `1_ada_ClientCert.pem`: no character of a name leads out of a folder. */
export function pemFileName(position: number, { userDn }: Pick<CertificateRecord, 'userDn'>): string {
  const name = userDn.replaceAll(/[^A-Za-z0-9._-]/g, '_').slice(0, MOST_NAME);
  return `${position}_${name}_ClientCert.pem`;
}

// A revocation list in PEM or DER, held against the CA that should have signed it.

import { verify, type X509Certificate } from 'node:crypto';
import { CONTEXT_0, derElements, INTEGER, onlyElement, SEQUENCE } from '@holdfast/kit/tlv';
import { readRevocationList } from './revocation-list.ts';

export interface RevocationListHead {
  thisUpdate: Date;
  /** Undefined: the list does not say when the next one comes. */
  nextUpdate: Date | undefined;
  /** With header lines. */
  pem(): string;
  /** Of the revoked, lower-case hex without leading zeros. Throws an Error. */
  serials(): string[];
  /**
   * True when its issuer is the subject of that certificate, and its signature was made with that
   * certificate's key.
   */
  isSignedBy(ca: X509Certificate): boolean;
}

/** About 400,000 revoked certificates. */
export const LARGEST_LIST_BYTES = 16 * 1024 * 1024;
const PEM_LIST = /-----BEGIN X509 CRL-----([A-Za-z0-9+/=\s]+)-----END X509 CRL-----/;

/** The hash of each signature algorithm that is accepted: RSA and ECDSA. */
const HASHES: Readonly<Record<string, string>> = {
  '1.2.840.113549.1.1.11': 'sha256',
  '1.2.840.113549.1.1.12': 'sha384',
  '1.2.840.113549.1.1.13': 'sha512',
  '1.2.840.10045.4.3.2': 'sha256',
  '1.2.840.10045.4.3.3': 'sha384',
  '1.2.840.10045.4.3.4': 'sha512',
};

/** Throws an Error when the bytes are not exactly one whole list. */
export function revocationListHead(file: Buffer<ArrayBuffer>): RevocationListHead {
  const pem = PEM_LIST.exec(file.toString('latin1'))?.[1];
  const der = pem === undefined ? file : Buffer.from(pem, 'base64');
  const list = readRevocationList(der);
  return {
    thisUpdate: list.thisUpdate,
    nextUpdate: list.nextUpdate,
    pem() {
      const lines = der.toString('base64').match(/.{1,64}/g) ?? [];
      return ['-----BEGIN X509 CRL-----', ...lines, '-----END X509 CRL-----', ''].join('\n');
    },
    serials: () => list.revoked().map(({ serial }) => serial),
    isSignedBy(ca) {
      const hash = HASHES[list.algorithm];
      if (hash === undefined || !subjectOf(ca).equals(list.issuer)) return false;
      return verify(hash, list.signed, ca.publicKey, list.signature);
    },
  };
}

/**
 * RFC 5280, 4.1: version, serial number, algorithm, issuer and validity stand before the subject.
 */
function subjectOf({ raw }: X509Certificate): Buffer {
  const fields = derElements(derElements(onlyElement(Buffer.from(raw), SEQUENCE).content).next(SEQUENCE).content);
  const first = fields.next();
  if (first.tag === CONTEXT_0) fields.next(INTEGER);
  for (let passed = 0; passed < 3; passed++) fields.next(SEQUENCE);
  return Buffer.from(fields.next(SEQUENCE).whole);
}

// What the CA signs, revokes and lists, and serial numbers in the one spelling in which they are
// compared.

/** A certificate as the CA has just signed it. */
export interface SignedCertificate {
  /** With header lines. */
  pem: string;
  der: Uint8Array<ArrayBuffer>;
  /** Lower-case hex without separators or leading zeros. */
  serial: string;
  /** SHA-256 of the DER: `AA:BB:…`. */
  hash: string;
  /** `CN=ada,OU=CoT,O=Holdfast`, most specific first. */
  subject: string;
  commonName: string;
  notBefore: Date;
  notAfter: Date;
}

export interface ClientCertificateOrder {
  /** DER of the SubjectPublicKeyInfo that is certified. */
  publicKey: Uint8Array<ArrayBuffer>;
  commonName: string;
  /** Adds the extended key usage that says "supports channels". */
  channels: boolean;
}

/** One line of the revocation list. */
export interface RevokedEntry {
  /** Lower-case hex without leading zeros. */
  serial: string;
  revokedAt: Date;
  expiresAt: Date;
  subject: string;
}

export interface RevocationListTimes {
  thisUpdate: Date;
  nextUpdate: Date;
}

/**
 * The CA of the stack while the core runs. Signs one after the other; rejects with a StackError
 * that names the file.
 */
export interface Authority {
  /** The CA certificate first, then what stands above it; PEM. */
  readonly chain: readonly string[];
  issue(order: ClientCertificateOrder, now: Date): Promise<SignedCertificate>;
  /** Everybody who was ever revoked, as the files remember it (index and list). */
  revokedInFiles(): RevokedEntry[];
  /** Writes index and list, each whole or not at all; the numbers of lists only grow. */
  writeRevocationList(revoked: readonly RevokedEntry[], now: Date): Promise<RevocationListTimes>;
}

/**
 * Serial numbers in the one spelling in which they are compared.
 * Lower-case hex without separators and leading zeros; undefined for what is no number.
 */
export function serialIn(text: string | null | undefined): string | undefined {
  const hex = text?.toLowerCase().replaceAll(/^0x|[:\s-]/g, '') ?? '';
  return /^[0-9a-f]+$/.test(hex) ? hex.replace(/^0+(?=.)/, '') : undefined;
}

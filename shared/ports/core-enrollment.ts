// The core's enrollment port: a name and a password become a certificate. The key is made here (ECDSA P-384).

/** A certificate with its key, fresh from the core. Whoever gets it keeps the key, or forgets it. */
export interface EnrolledCertificate {
  /** SHA-256 of the DER: `AA:BB:…`. */
  hash: string;
  /** Lower-case hex without leading zeros. */
  serial: string;
  /** ISO 8601. */
  issuedAt: string;
  expiresAt: string;
  certificatePem: string;
  /** The issuer first. */
  chainPem: string[];
  /** PKCS#8, not encrypted. */
  keyPem: string;
}

export interface EnrollmentOrder {
  username: string;
  password: string;
  /** What the core records as the device. */
  clientUid: string;
}

/** Errors as of `Core`; besides `forbidden` when the core refuses name and password. */
export interface CoreEnrollment {
  /** Always with `version`, so that the certificate supports channels. */
  enroll(order: EnrollmentOrder): Promise<EnrolledCertificate>;
  /**
   * Asks for the rules of signing requests with name and password, as a phone does first: proves that it would be let in and
   * that signing is set up. Nothing is signed.
   */
  rules(credentials: Omit<EnrollmentOrder, 'clientUid'>): Promise<Record<string, string>>;
}

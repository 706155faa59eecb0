// Which app passwords were made for enrollment, and the CA they were made for. The passwords themselves are kept by the
// identity provider alone.

export interface EnrollmentToken {
  /** Of the app password. */
  identifier: string;
  accountId: number;
  username: string;
  /** SHA-256 of the CA certificate's DER when it was made: `AA:BB:…`. */
  caFingerprint: string;
  /** ISO 8601. */
  createdAt: string;
  expiresAt: string;
}

/** Every call rejects with `unavailable` when our database is away. */
export interface EnrollmentTokens {
  add(token: EnrollmentToken): Promise<void>;
  /** Newest first; expired ones too. */
  of(accountId: number): Promise<EnrollmentToken[]>;
  remove(identifier: string): Promise<void>;
}

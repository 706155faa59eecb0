// The CA of the core and its revocation list, as everybody may see them.

export interface AuthorityCertificate {
  /** Of `ca.pem`: the CA certificate first, then what stands above it. */
  chainPem: string[];
  /** SHA-256 of the CA certificate's DER: `AA:BB:…`. */
  fingerprint: string;
  /** ISO 8601. */
  expiresAt: string;
}

export interface RevocationListContent {
  pem: string;
  /** Of the revoked, lower-case hex without leading zeros. */
  serials: string[];
  /** ISO 8601. */
  thisUpdate: string;
  nextUpdate: string | null;
  /** Its signature verifies against the CA. */
  ours: boolean;
}

/** Rejects with `unavailable` when a file is missing or cannot be read, naming it and why. */
export interface CoreAuthority {
  certificate(): Promise<AuthorityCertificate>;
  revocationList(): Promise<RevocationListContent>;
}

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

export interface CoreTokenOrder {
  username: string;
  password: string;
  /** What else stands in the form, such as `scope`. */
  further: [name: string, value: string][];
}

/** What the core answers to that: a token, or that it refuses. */
export interface CoreTokenAnswer {
  /** 200, or 400 to 499. */
  status: number;
  /** Text that is JSON. */
  json: string;
  /** The headers that set its cookies `access_token_0`, `access_token_1` …. */
  cookies: string[];
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
  /** The bearer token that 8446 takes instead of name and password. A refusal of the core is an answer, no error. */
  token(order: CoreTokenOrder): Promise<CoreTokenAnswer>;
}

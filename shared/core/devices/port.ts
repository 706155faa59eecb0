// What somebody with a client certificate can do at the core, tried with the keys that we hold: what "revoked" means, and
// whether CoT really gets from one end to the other.

/** How the core met a certificate. Success of the TLS handshake proves nothing: only bytes of the application do. */
export type Met = { connection: string; milliseconds: number } | { refused: string };

/**
 * Certificates are named by their hash; `not_found` when no key is kept for it. `unavailable` when the port cannot be
 * reached at all, which says nothing of the certificate. A connection that nobody closes ends after two minutes.
 */
export interface CoreDevices {
  /** Asks 8443 for the roles; undefined when the core refuses the certificate. */
  roles(hash: string): Promise<string[] | undefined>;
  /** Connects to the stream and pings; met when the answer came. Refused when the core ends it or is silent for 5 s. */
  connect(hash: string): Promise<Met>;
  /** Pings again: true when the answer came within 3 s, false when the connection has ended or stays silent. */
  answers(connection: string): Promise<boolean>;
  /** Sends one CoT event (XML). `unavailable` when the connection has ended. */
  send(connection: string, event: string): Promise<void>;
  /** Milliseconds (from this call, or from connecting if it came before) until an event of that uid has come; undefined: not in time, or ended. */
  received(connection: string, uid: string, withinMs: number): Promise<number | undefined>;
  close(connection: string): Promise<void>;
}

/**
 * The core's enrollment port: a name and a password become a certificate. The key is made here (ECDSA P-384).
 * A certificate with its key, fresh from the core. Whoever gets it keeps the key, or forgets it.
 */
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

/**
 * The private keys of certificates that Holdfast made, by the hash of the certificate. Files of mode 0600; never a name of a
 * user in a path.
 */
export interface KeptKey {
  /** PKCS#8, not encrypted. */
  keyPem: string;
  certificatePem: string;
  /** The issuer first. */
  chainPem: string[];
}

export interface ClientKeys {
  /** On disk when it resolves. */
  keep(hash: string, key: KeptKey): Promise<void>;
  read(hash: string): Promise<KeptKey | undefined>;
  /** Which of these are kept. */
  kept(hashes: readonly string[]): Promise<string[]>;
  /** One that is gone already is no error. */
  remove(hash: string): Promise<void>;
}

/** What this feature asks of the outside, by the names in Deps. */
export interface CoreDevicePorts {
  coreEnrollment: CoreEnrollment;
  coreDevices: CoreDevices;
  clientKeys: ClientKeys;
}

// Defines how Holdfast uses the core with client certificates of its own: to prove that revoked
// certificates are refused, and that CoT gets through.

/**
 * How the core treated a certificate. A successful TLS handshake proves nothing: only application
 * bytes do.
 */
export type Met = { connection: string; milliseconds: number } | { refused: string };

/**
 * Certificates are named by their hash; `not_found` when there is no stored key for it.
 * `unavailable` when the port is unreachable, which proves nothing about the certificate. A
 * connection that no caller closes ends after two minutes.
 */
export interface CoreDevices {
  /** Asks 8443 for the roles; undefined when the core refuses the certificate. */
  roles(hash: string): Promise<string[] | undefined>;
  /**
   * Connects to the stream and pings; accepted when the reply arrives. Refused when the core closes
   * the connection or is silent for 5 s. `at` is the `tls:` URL of one of several nodes; default:
   * CORE_STREAMING_URL.
   */
  connect(hash: string, at?: string): Promise<Met>;
  /**
   * Pings again: true when the reply arrived within 3 s, false when the connection has closed or
   * stays silent.
   */
  answers(connection: string): Promise<boolean>;
  /** Sends one CoT event (XML). `unavailable` when the connection has closed. */
  send(connection: string, event: string): Promise<void>;
  /**
   * Milliseconds (from this call, or from connecting if it came before) until an event of that uid
   * arrives; undefined: not in time, or the connection closed.
   */
  received(connection: string, uid: string, withinMs: number): Promise<number | undefined>;
  close(connection: string): Promise<void>;
}

/**
 * A certificate with its key, fresh from the core's enrollment port. The key is made here (ECDSA
 * P-384). The caller stores the key or drops it.
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
  /** The device name that the core records. */
  clientUid: string;
}

export interface CoreTokenOrder {
  username: string;
  password: string;
  /** Further form fields, such as `scope`. */
  further: [name: string, value: string][];
}

/** The core's response: a token or a refusal. */
export interface CoreTokenAnswer {
  /** 200, or 400 to 499. */
  status: number;
  /** Text that is JSON. */
  json: string;
  /** The headers that set its cookies `access_token_0`, `access_token_1` …. */
  cookies: string[];
}

/** Errors as of `Core`; also `forbidden` when the core refuses name and password. */
export interface CoreEnrollment {
  /** Always with `version`, so that the certificate supports channels. */
  enroll(order: EnrollmentOrder): Promise<EnrolledCertificate>;
  /**
   * Requests the rules for signing requests with name and password, as a device does first: proves
   * that it would be accepted and that signing is set up. Nothing is signed.
   */
  rules(credentials: Omit<EnrollmentOrder, 'clientUid'>): Promise<Record<string, string>>;
  /**
   * The bearer token that 8446 accepts instead of name and password. A refusal of the core is a
   * result, not an error.
   */
  token(order: CoreTokenOrder): Promise<CoreTokenAnswer>;
}

/**
 * The private keys of certificates that Holdfast made, by the hash of the certificate. Files of
 * mode 0600; a username is never part of a path.
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
  /** Which of these are stored. */
  kept(hashes: readonly string[]): Promise<string[]>;
  /** A missing one is no error. */
  remove(hash: string): Promise<void>;
}

/** What this feature needs from outside, by the names in Deps. */
export interface CoreDevicePorts {
  coreEnrollment: CoreEnrollment;
  coreDevices: CoreDevices;
  clientKeys: ClientKeys;
}

// What a TLS endpoint shows to a client that connects to it now.

export interface TlsEndpoint {
  /** Shown to people: `https://cot.example.org`. */
  name: string;
  host: string;
  port: number;
  /** Where to connect to, when not to what the name leads to. */
  address?: string;
  /** Which authorities count: `public` those of the system, `own` these and the stack's own CA. */
  trust: 'public' | 'own';
}

export interface TlsState {
  /** False when no certificate was seen; `error` then says why. */
  reachable: boolean;
  /** True when the chain leads to an authority that counts, the certificate is valid now and is made out to the host. */
  trusted: boolean;
  /** Why it is not reachable or not trusted, in words. */
  error: string | undefined;
  /** ISO 8601; undefined when not reachable. */
  expires_at: string | undefined;
  subject: string | undefined;
  issuer: string | undefined;
  /** SHA-256 of the certificate, upper case with colons; undefined when not reachable. */
  fingerprint?: string | undefined;
}

export interface TlsEndpoints {
  /** Connects, looks at the certificate, and closes. Never rejects; gives up after a few seconds. */
  inspect(endpoint: TlsEndpoint): Promise<TlsState>;
}

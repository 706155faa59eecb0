// What a TLS endpoint shows to a client that connects to it now.

export interface TlsEndpoint {
  /** Shown to people: `https://cot.example.org`. */
  name: string;
  host: string;
  port: number;
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
}

export interface TlsEndpoints {
  /** Connects, looks at the certificate, and closes. Never rejects; gives up after a few seconds. */
  inspect(endpoint: TlsEndpoint): Promise<TlsState>;
}

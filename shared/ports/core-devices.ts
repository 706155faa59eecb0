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

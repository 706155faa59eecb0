// The right to use the core's admin API: it sits on a certificate. It is asked for in a spool directory that only management
// and the core's side see; a loop there checks the name and gives or takes the right.

export interface AdminGrants {
  /** Asks for the right for this certificate of a `svc_` account. Resolves when it is asked for, not when it is given. */
  give(username: string, certificatePem: string): Promise<void>;
  /** Asks to take the right away from that account. */
  take(username: string): Promise<void>;
}

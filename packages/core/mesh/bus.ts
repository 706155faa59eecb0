// Defines the message bus between the nodes of a cluster.

/** Messages of one sender arrive in the order in which it published them. */
export interface Bus {
  readonly isUp: boolean;
  /** While the bus is down, nothing is sent. Never throws. */
  publish(subject: string, payload: Uint8Array): void;
  /** Own messages don't come back. Returns the end of the subscription. */
  subscribe(subject: string, take: (payload: Buffer) => void): () => void;
  /**
   * Resolves once everything that the bus had for this node at the call has been taken in. Rejects
   * when the bus does not answer.
   */
  fence(): Promise<void>;
  /** Called each time the bus comes up or goes down. Subscriptions survive both. */
  onChange(then: (isUp: boolean) => void): void;
  close(): Promise<void>;
}

// Bounds the bytes of incomplete events of all connections. Ends the connection that holds most
// when exceeded.

export interface Holder {
  /** It gives back what it holds. */
  end(reason: string): void;
}

export class HalfEvents<T extends Holder> {
  readonly #maxBytes: number;
  readonly #held = new Map<T, number>();
  #total = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** What that connection holds now. */
  holds(connection: T, bytes: number): void {
    const before = this.#held.get(connection) ?? 0;
    if (bytes === before) return;
    this.#total += bytes - before;
    if (bytes === 0) this.#held.delete(connection);
    else this.#held.set(connection, bytes);
    while (this.#total > this.#maxBytes) this.#endLargest();
  }

  get bytes(): number {
    return this.#total;
  }

  #endLargest(): void {
    let largest: { connection: T; bytes: number } | undefined;
    for (const [connection, bytes] of this.#held) if (bytes > (largest?.bytes ?? 0)) largest = { connection, bytes };
    if (largest === undefined) return;
    this.holds(largest.connection, 0);
    largest.connection.end(
      `the events that are under way take more than ${this.#maxBytes} bytes together, and this one is the largest`,
    );
  }
}

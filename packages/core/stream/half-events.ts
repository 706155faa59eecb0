// The bytes of events that are not yet whole, or kept while missions are asked, of all connections together: beyond the bound the one that holds most ends.

export interface Holder {
  /** It gives back what it holds. */
  end(reason: string): void;
}

export interface HalfEvents<T> {
  /** What that connection holds now. */
  holds(connection: T, bytes: number): void;
  readonly bytes: number;
}

export function halfEvents<T extends Holder>(mostBytes: number): HalfEvents<T> {
  const held = new Map<T, number>();
  let total = 0;

  function endLargest(): void {
    let largest: { connection: T; bytes: number } | undefined;
    for (const [connection, bytes] of held) if (bytes > (largest?.bytes ?? 0)) largest = { connection, bytes };
    if (largest === undefined) return;
    holds(largest.connection, 0);
    largest.connection.end(
      `the events that are under way take more than ${mostBytes} bytes together, and this one is the largest`,
    );
  }

  function holds(connection: T, bytes: number): void {
    const before = held.get(connection) ?? 0;
    if (bytes === before) return;
    total += bytes - before;
    if (bytes === 0) held.delete(connection);
    else held.set(connection, bytes);
    while (total > mostBytes) endLargest();
  }

  return {
    holds,
    get bytes() {
      return total;
    },
  };
}

// One writer at a time, where the system that is written to has neither locks nor versions.

/**
 * Does `work` while nobody else who uses this key does theirs, in any process of this Holdfast. Settles as `work` does;
 * rejects with an AppError `unavailable`, with `work` never begun, when its turn does not come in time. Never nest it:
 * work that waits for another key may wait for itself.
 */
export type Exclusive = <T>(key: string, work: () => Promise<T>) => Promise<T>;

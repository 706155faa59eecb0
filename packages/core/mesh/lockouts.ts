// Counts wrong passwords on all nodes together.

import { createLockout, type Lockout } from '@holdfast/kit/lockout';
import { z } from 'zod';

/** What a node has counted of one address, as of now. */
export const countedSchema = z.object({
  address: z.string(),
  failedMsAgo: z.array(z.number().nonnegative()),
  lockedForMs: z.number().positive().optional(),
});
export type Counted = z.infer<typeof countedSchema>;

/** In one message: far below what NATS takes. */
const MAX_IN_MESSAGE = 1_000;

export class Lockouts {
  readonly #own = createLockout();
  readonly #steadyMs: () => number;
  /** `onFailed`: a password was wrong here. */
  readonly shared: Lockout;

  constructor(steadyMs: () => number, onFailed: (address: string) => void) {
    this.#steadyMs = steadyMs;
    this.shared = {
      ...this.#own,
      failed: (address, nowMs) => {
        onFailed(address);
        return this.#own.failed(address, nowMs);
      },
    };
  }

  failedElsewhere(address: string): void {
    this.#own.failed(address, this.#steadyMs());
  }

  /** All that counts now, for a node that may have missed something: in parts. */
  counted(): Counted[][] {
    const nowMs = this.#steadyMs();
    const all = this.#own.states(nowMs).map(({ key: address, failedMs, lockedUntilMs }) => ({
      address,
      failedMsAgo: failedMs.map((atMs) => nowMs - atMs),
      ...(lockedUntilMs === undefined ? {} : { lockedForMs: lockedUntilMs - nowMs }),
    }));
    return Array.from({ length: Math.ceil(all.length / MAX_IN_MESSAGE) }, (_, part) =>
      all.slice(part * MAX_IN_MESSAGE, (part + 1) * MAX_IN_MESSAGE),
    );
  }

  /** What another node has counted, where it is more: most of it is known here. */
  learn(counted: readonly Counted[]): void {
    const nowMs = this.#steadyMs();
    const known = new Map(this.#own.states(nowMs).map((each) => [each.key, each]));
    for (const { address, failedMsAgo, lockedForMs } of counted) {
      const own = known.get(address);
      const isMore =
        lockedForMs === undefined
          ? own?.lockedUntilMs === undefined && failedMsAgo.length > (own?.failedMs.length ?? 0)
          : nowMs + lockedForMs > (own?.lockedUntilMs ?? 0);
      if (!isMore) continue;
      const failedMs = failedMsAgo.map((ago) => nowMs - ago);
      this.#own.adopt(address, { failedMs, lockedUntilMs: lockedForMs && nowMs + lockedForMs }, nowMs);
    }
  }
}

// The order in which one door asks the directory about passwords: honest clients have a place of their own while others guess. Every
// door that takes passwords has one.

import { clientStanding } from './client-standing.ts';
import { FairLine } from './fair-line.ts';
import { nameKey } from './names.ts';
import { RefusalPace } from './refusal-pace.ts';

export interface PasswordQueueOptions {
  /** Milliseconds that never go back. */
  steadyMs: () => number;
  /** How long a refusal takes at least; 0 in tests. */
  leastRefusalMs?: number | undefined;
}

export interface Asker {
  /** What counts as one address. */
  address: string;
  username: string;
}

/** Questions to the directory at once; a machine with two cores checks two passwords at a time. */
const PLACES = 6;
/** Guesses go one by one. */
const SUSPECT_PLACES = 1;
/** Nobody waits longer for an answer. */
const WANTED_MS = 15_000;

export class PasswordQueue {
  readonly #line = new FairLine({ places: PLACES, suspectPlaces: SUSPECT_PLACES });
  readonly #clients;
  readonly #pace: RefusalPace;
  readonly #steadyMs: () => number;

  constructor({ steadyMs, leastRefusalMs }: PasswordQueueOptions) {
    this.#steadyMs = steadyMs;
    this.#clients = clientStanding(steadyMs);
    this.#pace = new RefusalPace(steadyMs, leastRefusalMs);
  }

  /**
   * Asks when the turn of this client comes: `check` resolves with undefined for a wrong password. Resolves with `busy` when so many
   * wait that the turn would come too late, else as `check` does, no sooner than its time may tell anything.
   */
  async ask<T>(
    { address, username }: Asker,
    check: () => Promise<T | undefined>,
  ): Promise<{ found: T | undefined } | 'busy'> {
    const name = nameKey(username);
    const client = `${address} ${name}`;
    const { standing, ended } = this.#clients.begin(address, client);
    const until = this.#steadyMs() + WANTED_MS;
    let tookMs = 0;
    const judged = await this.#line
      .run(
        { standing, key: name },
        async () => {
          const begunMs = this.#steadyMs();
          const found = await check();
          tookMs = this.#steadyMs() - begunMs;
          return { found };
        },
        () => this.#steadyMs() < until,
      )
      .finally(ended);
    if (judged === undefined) return 'busy';
    if (judged.found !== undefined) this.#clients.succeeded(client);
    else {
      this.#clients.failed(address);
      await this.#pace.hold(tookMs);
    }
    return judged;
  }
}

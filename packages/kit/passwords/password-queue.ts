// The order in which one door asks the directory about passwords: honest clients have a place of
// their own while others guess. Every door that takes passwords has one.

import { FairLine, type ClientStatus } from './fair-queue.ts';
import { nameKey } from '../names.ts';
import { RecentKeys } from '../rate-limit.ts';
import { MINUTE_MS } from '../time.ts';

/**
 * Judges clients that sign in: names that have signed in from an address go before strangers, and
 * one address cannot fill the line of strangers before its first failure is known.
 */
export interface ClientRank {
  /**
   * Of an attempt that begins now; `ended` has to be called when its verdict is there. `key` names
   * address and account.
   */
  begin(address: string, key: string): { status: Exclude<ClientStatus, 'own'>; ended: () => void };
  succeeded(key: string): void;
  failed(address: string): void;
}

const KEYS = 10_000;
const SUSPECT_MS = 5 * MINUTE_MS;
const PROVEN_MS = 60 * MINUTE_MS;
/**
 * Of one address. More than anybody's devices send at once; a start after which everybody comes
 * back is slower, not refused.
 */
const STRANGERS_AT_ONCE = 16;

export function clientStatus(now: () => number): ClientRank {
  const failures = new RecentKeys(KEYS);
  const successes = new RecentKeys(KEYS);
  const strangers = new Map<string, number>();

  function strangerLeaves(address: string): void {
    const others = (strangers.get(address) ?? 1) - 1;
    if (others === 0) strangers.delete(address);
    else strangers.set(address, others);
  }

  return {
    begin(address, key) {
      if (successes.within(key, PROVEN_MS, now())) return { status: 'proven', ended: () => undefined };
      const others = strangers.get(address) ?? 0;
      if (others >= STRANGERS_AT_ONCE || failures.within(address, SUSPECT_MS, now())) {
        return { status: 'suspect', ended: () => undefined };
      }
      strangers.set(address, others + 1);
      return { status: 'usual', ended: () => strangerLeaves(address) };
    },
    succeeded: (key) => successes.note(key, now()),
    failed: (address) => failures.note(address, now()),
  };
}

/** A check of an idle machine takes a third of it. */
const MIN_MS = 60;
/** So slow is a machine that is busy; nobody waits longer for a refusal. */
const MAX_MS = 1_000;
const HALF_LIFE_MS = 10 * MINUTE_MS;

/**
 * Holds refusals back for as long as a real check takes: a name that does not exist costs no check,
 * and the time of the answer must not tell which names exist.
 */
export class RefusalPace {
  readonly #steadyMs: () => number;
  readonly #minMs: number;
  #slowestMs = 0;
  #atMs: number;

  constructor(steadyMs: () => number, minMs = MIN_MS) {
    this.#steadyMs = steadyMs;
    this.#minMs = minMs;
    this.#atMs = steadyMs();
  }

  /** Notes how long a check took, and resolves when a refusal may be told. */
  async hold(tookMs: number): Promise<void> {
    const now = this.#steadyMs();
    const remembered = this.#slowestMs * 0.5 ** ((now - this.#atMs) / HALF_LIFE_MS);
    this.#slowestMs = Math.min(MAX_MS, Math.max(remembered, tookMs));
    this.#atMs = now;
    const leftMs = Math.max(this.#minMs, this.#slowestMs) - tookMs;
    if (this.#minMs > 0 && leftMs > 0) await new Promise((over) => setTimeout(over, leftMs));
  }
}

export interface PasswordQueueOptions {
  /** Milliseconds that never go back. */
  steadyMs: () => number;
  /** How long a refusal takes at least; 0 in tests. */
  minRefusalMs?: number | undefined;
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

  constructor({ steadyMs, minRefusalMs }: PasswordQueueOptions) {
    this.#steadyMs = steadyMs;
    this.#clients = clientStatus(steadyMs);
    this.#pace = new RefusalPace(steadyMs, minRefusalMs);
  }

  /**
   * Asks when the turn of this client comes: `check` resolves with undefined for a wrong password.
   * Resolves with `busy` when so many wait that the turn would come too late, else as `check` does,
   * no sooner than its time may tell anything.
   */
  async ask<T>(
    { address, username }: Asker,
    check: () => Promise<T | undefined>,
  ): Promise<{ found: T | undefined } | 'busy'> {
    const name = nameKey(username);
    const client = `${address} ${name}`;
    const { status, ended } = this.#clients.begin(address, client);
    const until = this.#steadyMs() + WANTED_MS;
    let tookMs = 0;
    const judged = await this.#line
      .run(
        { status, key: name },
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

// Decides whether what this node knows of revocations and groups is current. A node that was cut
// off reads it again before it admits anybody.

import { messageOf } from '@holdfast/kit/app-error';
import { serialize } from '@holdfast/kit/concurrency';
import type { Log } from '@holdfast/kit/log';
import type { Bus } from './bus.ts';

export interface FreshnessOptions {
  bus: Pick<Bus, 'isUp' | 'fence' | 'onChange'>;
  /** Resolves when what other nodes have told has been read. */
  settled: () => Promise<void>;
  /** Nothing that was read before counts any more. Once per cut, and again when it ends. */
  forget: () => void;
  /** Takes in which certificates are revoked now. Rejects when the database does not answer. */
  reread: () => Promise<void>;
  /** Also for those who are connected; after a cut. */
  rereadAll: () => Promise<void>;
  log: Log;
  /** Milliseconds that never go back. */
  steadyMs: () => number;
}

const PROVE_EVERY_MS = 400;
const FRESH_MS = 1_000;
const FENCE_WITHIN_MS = 500;

export class Freshness {
  readonly #options: FreshnessOptions;
  /** When the bus was asked that has answered last: what it had before that has been taken in. */
  #provenMs = Number.NEGATIVE_INFINITY;
  /** Messages may have been missed since the last time that everything was read. */
  #isCut = true;
  #cuts = 0;
  /** Of what was forgotten last: later questions are not asked again because of the same cut. */
  #forgotten = { cuts: 0, isProven: false };
  readonly #inTurn = serialize();
  #rereading: Promise<void> | undefined;
  /** Logged already: only the change is. */
  #isUnreadable = false;
  #timer: NodeJS.Timeout | undefined;

  constructor(options: FreshnessOptions) {
    this.#options = options;
    options.bus.onChange((isUp) => {
      this.cut();
      if (isUp) void this.look();
    });
  }

  /** Proves it several times a second from now on. `also` is called each time. */
  start(also: () => Promise<void> = () => Promise.resolve()): void {
    if (this.#options.bus.isUp) void this.look();
    this.#timer = setInterval(() => {
      void this.look();
      also().catch(() => undefined);
    }, PROVE_EVERY_MS).unref();
  }

  /** Something was told and not read. */
  cut(): void {
    this.#cuts++;
    this.#isCut = true;
  }

  /** Never rejects. */
  async look(): Promise<void> {
    try {
      if (!this.#isCut) await this.#prove();
      else await (this.#options.bus.isUp ? this.#recover() : this.#rereadOnce());
    } catch {
      // Rule `cutOffNode`: who wants in is asked for again in `admit`, which says why it refuses.
    }
  }

  /** Somebody may be admitted now, without waiting. */
  get isFresh(): boolean {
    return !this.#isCut && this.#options.steadyMs() - this.#provenMs <= FRESH_MS;
  }

  /** Resolves with false when nobody can be admitted: neither the bus nor the database answers. */
  async admit(): Promise<boolean> {
    if (this.isFresh) return true;
    try {
      if (!this.#isCut) await this.#prove().catch(() => undefined);
      if (!this.isFresh) await this.#rereadOnce();
      return true;
    } catch {
      return false;
    }
  }

  close(): void {
    clearInterval(this.#timer);
  }

  async #prove(): Promise<void> {
    const { bus, settled, steadyMs } = this.#options;
    const atMs = steadyMs();
    const late = new Promise<never>((_, reject) =>
      setTimeout(() => reject(new Error('the bus does not answer')), FENCE_WITHIN_MS).unref(),
    );
    await Promise.race([bus.fence().then(settled), late]);
    this.#provenMs = atMs;
  }

  #rereadOnce(): Promise<void> {
    return (this.#rereading ??= this.#told(this.#options.reread, false).finally(() => (this.#rereading = undefined)));
  }

  #forgetOnce(isProven: boolean): void {
    const { cuts, isProven: wasProven } = this.#forgotten;
    if (cuts === this.#cuts && (wasProven || !isProven)) return;
    this.#forgotten = { cuts: this.#cuts, isProven };
    this.#options.forget();
  }

  /** After the subscriptions stand again: what was told before that is read. */
  #recover(): Promise<void> {
    return this.#inTurn(async () => {
      if (!this.#isCut) return;
      const cuts = this.#cuts;
      await this.#prove();
      await this.#told(this.#options.rereadAll, true);
      if (cuts === this.#cuts) this.#isCut = false;
    });
  }

  async #told(read: () => Promise<void>, isProven: boolean): Promise<void> {
    const { log } = this.#options;
    try {
      this.#forgetOnce(isProven);
      await read();
      if (this.#isUnreadable) log.info('mesh.reread');
      this.#isUnreadable = false;
    } catch (error) {
      if (!this.#isUnreadable)
        log.warn('mesh.reread_failed', {
          error: messageOf(error),
          consequence: 'this node may have missed a revocation: it admits no device',
        });
      this.#isUnreadable = true;
      throw error;
    }
  }
}

// A thing that Holdfast does again and again by itself.

interface Repeated<D> {
  name: string;
  /** For hosts with minute granularity; held equal to wrangler.toml. */
  cron: string;
  /** Honoured to the second where the host ticks each second. */
  intervalSeconds(deps: D): number;
  /**
   * One run. The summary goes to the log and to the record of the run. `signal` aborts when the run has lost its claim or
   * reached its limit: nothing more may be changed then.
   */
  run(deps: D, now: Date, signal: AbortSignal): Promise<Record<string, unknown>>;
}

/** Every process runs it for itself, without a database, and runs may overlap. */
interface Unclaimed {
  claim: 'none';
}

/** One process at a time, claimed in our own database. */
interface Claimed<D> {
  claim: 'row';
  /** A run that takes longer has failed. */
  limitSeconds: number;
  /** Asked before a run is claimed, so that one that would find nothing to do leaves no trace; default: always. */
  isWanted?(deps: D): Promise<boolean>;
}

export type Job<D> = Repeated<D> & (Unclaimed | Claimed<D>);

/** What a change makes stale in health: measured again soon. */
export interface HealthMemory {
  /**
   * What was measured of a module before counts no more: it is due at once. With `begunBeforeMs` only a measurement that began
   * before that time.
   */
  forget(module: string, begunBeforeMs?: number): void | Promise<void>;
}

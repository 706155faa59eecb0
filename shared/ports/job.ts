// A thing that Holdfast does again and again by itself.

export interface Job<D> {
  name: string;
  /** For hosts with minute granularity; held equal to wrangler.toml. */
  cron: string;
  /**
   * `row`: one process at a time, claimed in our own database. `none`: every process runs it for itself, without a
   * database, and runs may overlap.
   */
  claim: 'row' | 'none';
  /** Honoured to the second where the host ticks each second. */
  intervalSeconds(deps: D): number;
  /** A claimed run that takes longer has failed. */
  limitSeconds: number;
  /**
   * One run. The summary goes to the log and to the record of the run. `signal` aborts when the run has lost its claim or
   * reached its limit: nothing more may be changed then.
   */
  run(deps: D, now: Date, signal: AbortSignal): Promise<Record<string, unknown>>;
}

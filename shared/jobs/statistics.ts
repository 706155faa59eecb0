// Counts job runs in memory since the start of the process.

import type { JobFigures, JobStatistics } from './port.ts';

export interface MemoryJobStatistics extends JobStatistics {
  figures(): JobFigures[];
}

/** A job of the table with its interval. */
export interface ExpectedJob {
  name: string;
  /** Called once, when the figures are first read. */
  intervalSeconds(): number;
}

/**
 * Lists all `jobs` from the start, so that a first failure shows as a change, and a job that never
 * runs shows at all.
 */
export function memoryJobStatistics(jobs: readonly ExpectedJob[]): MemoryJobStatistics {
  const figures = new Map(jobs.map(({ name }) => [name, neverRun(name)]));
  let intervals: Map<string, number> | undefined;

  function figuresOf(job: string): JobFigures {
    const of = figures.get(job) ?? neverRun(job);
    figures.set(job, of);
    return of;
  }

  return {
    ended({ job, failed, endedMs, seconds }) {
      const of = figuresOf(job);
      of.runs++;
      of.lastEndedMs = of.lastSeenMs = endedMs;
      of.lastSeconds = seconds;
      of.failuresInRow = failed ? of.failuresInRow + 1 : 0;
      if (failed) of.failures++;
      else of.lastSucceededMs = endedMs;
    },
    elsewhere(job, atMs) {
      figuresOf(job).lastSeenMs = atMs;
    },
    figures() {
      intervals ??= new Map(jobs.map((job) => [job.name, job.intervalSeconds()]));
      return [...figures.values()].map((of) => ({ ...of, intervalSeconds: intervals?.get(of.job) ?? null }));
    },
  };
}

function neverRun(job: string): JobFigures {
  const counts = { runs: 0, failures: 0, failuresInRow: 0 };
  const never = { lastEndedMs: null, lastSucceededMs: null, lastSeconds: null, lastSeenMs: null };
  return { job, intervalSeconds: null, ...counts, ...never };
}

// Figures of the jobs in memory, from the start of the process on.

import type { JobFigures, JobStatistics } from './port.ts';

export interface MemoryJobStatistics extends JobStatistics {
  figures(): JobFigures[];
}

/** A job of the table, with how often it is to run. */
export interface ExpectedJob {
  name: string;
  /** Asked once, when the figures are first read. */
  intervalSeconds(): number;
}

/** `jobs` are there from the beginning, so that a first failure is seen as a change, and one that never runs is seen at all. */
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

// Figures of the jobs in memory, from the start of the process on.

import type { JobFigures, JobStatistics } from '../ports/job-statistics.ts';

export interface MemoryJobStatistics extends JobStatistics {
  figures(): JobFigures[];
}

/** `jobs` are there from the beginning, so that a first failure is seen as a change. */
export function memoryJobStatistics(jobs: readonly string[]): MemoryJobStatistics {
  const figures = new Map(jobs.map((job) => [job, neverRun(job)]));
  return {
    ended({ job, failed, endedMs, seconds }) {
      const of = figures.get(job) ?? neverRun(job);
      figures.set(job, of);
      of.runs++;
      of.lastEndedMs = endedMs;
      of.lastSeconds = seconds;
      if (failed) of.failures++;
      else of.lastSucceededMs = endedMs;
    },
    figures: () => [...figures.values()],
  };
}

function neverRun(job: string): JobFigures {
  return { job, runs: 0, failures: 0, lastEndedMs: null, lastSucceededMs: null, lastSeconds: null };
}

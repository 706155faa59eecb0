// Long work in memory.

import { AppError } from '@holdfast/kit/app-error';
import type { OpsJob, OpsJobs } from '../../shared/jobs/port.ts';

const MAX_LINES = 200;

export function fakeOpsJobs(): OpsJobs {
  const jobs: OpsJob[] = [];
  const isOpen = ({ state }: OpsJob): boolean => state === 'queued' || state === 'running';
  const newestFirst = (): OpsJob[] =>
    jobs.toSorted((a, b) => b.createdAt.localeCompare(a.createdAt) || b.id.localeCompare(a.id));

  return {
    async add({ id, kind, actor, input, now }) {
      const other = jobs.find((job) => job.kind === kind && isOpen(job));
      if (other !== undefined)
        throw new AppError(
          'conflict',
          `One job of the kind ${kind} at a time. The job ${other.id} is ${other.state}.`,
          {
            figures: { job: other.id },
          },
        );
      const job: OpsJob = {
        id,
        kind,
        state: 'queued',
        progress: 0,
        phase: null,
        phasePercent: null,
        memory: null,
        createdAt: now,
        startedAt: null,
        finishedAt: null,
        eta: null,
        log: [],
        input: structuredClone(input),
        result: null,
        error: null,
        actor,
      };
      jobs.push(job);
      return structuredClone(job);
    },
    get: async (id) => structuredClone(jobs.find((job) => job.id === id)),
    async list({ kind, state }, offset, limit) {
      const all = newestFirst().filter(
        (job) => (kind === undefined || job.kind === kind) && (state === undefined || job.state === state),
      );
      return { results: structuredClone(all.slice(offset, offset + limit)), count: all.length };
    },
    open: async () => structuredClone(jobs.filter(isOpen).toSorted((a, b) => a.createdAt.localeCompare(b.createdAt))),
    async change(id, { log = [], ...change }) {
      const job = jobs.find((each) => each.id === id && isOpen(each));
      if (job === undefined) return false;
      const given = Object.fromEntries(Object.entries(change).filter(([, value]) => value !== undefined));
      Object.assign(job, structuredClone(given), { log: [...job.log, ...log].slice(-MAX_LINES) });
      return true;
    },
    async prune(before) {
      const gone = jobs.filter((job) => !isOpen(job) && (job.finishedAt ?? job.createdAt) < before);
      for (const job of gone) jobs.splice(jobs.indexOf(job), 1);
      return gone.length;
    },
  };
}

// Answers the intent of ordered work whose process died before it could: from the job, which knows what became of it.

import { MINUTE_MS } from '@holdfast/kit/time';
import type { Finish } from '../audit/interrupted-work.ts';
import type { Conclusion } from '../audit/port.ts';
import type { OpsJob, OpsJobs } from './port.ts';

/** Longer than a job that has ended takes to answer its intent itself. */
const ANSWERS_ITSELF_MS = 2 * MINUTE_MS;

/** `open`: the job goes on, or has only just ended and is answering. */
export function finishFromJob(
  conclusionOf: (job: OpsJob) => Conclusion,
): Finish<{ opsJobs: Pick<OpsJobs, 'get'>; now: () => Date }> {
  return async ({ opsJobs, now }, { target }) => {
    const job = await opsJobs.get(target);
    if (job === undefined) return { result: 'failed', detail: { error: 'not begun: there is no such job' } };
    if (job.finishedAt === null) return 'open';
    const endedMs = now().getTime() - Date.parse(job.finishedAt);
    return endedMs <= ANSWERS_ITSELF_MS ? 'open' : conclusionOf(job);
  };
}

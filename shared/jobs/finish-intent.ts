// Answers the intent of ordered work whose process died before it could: from the job, which knows what became of it.

import type { Audit, AuditResult, Conclusion, OpenIntent } from '../audit/port.ts';
import type { OpsJob, OpsJobs } from './port.ts';

const FINISHER = 'finish-intents';

/** `open`: its job goes on, or has only just ended and is answering it. */
export async function finishJobIntent(
  { audit, opsJobs }: { audit: Pick<Audit, 'conclude'>; opsJobs: Pick<OpsJobs, 'get'> },
  { seq, action, target, request_id: requestId }: OpenIntent,
  before: string,
  conclusionOf: (job: OpsJob) => Conclusion,
): Promise<AuditResult | 'open'> {
  const job = await opsJobs.get(target);
  if (job !== undefined && (job.finishedAt === null || job.finishedAt >= before)) return 'open';
  const conclusion: Conclusion = job === undefined ? NOT_BEGUN : conclusionOf(job);
  const actor = { username: FINISHER, address: '', requestId };
  const detail = { finished_later: true, ...conclusion.detail };
  await audit.conclude(seq, { actor, action, target }, { ...conclusion, detail });
  return conclusion.result;
}

const NOT_BEGUN: Conclusion = { result: 'failed', detail: { error: 'not begun: there is no such job' } };

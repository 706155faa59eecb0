// Jobs that a person orders: adding one under its intent, the lines of its log, and answering its intent when it has ended.

import { AppError } from '@holdfast/kit/app-error';
import type { Log } from '@holdfast/kit/log';
import type { Attributes } from '@holdfast/kit/json';
import { MINUTE_MS } from '@holdfast/kit/time';
import type { Finish } from '../audit/interrupted-work.ts';
import type { Actor, Audit, AuditSubject, Conclusion } from '../audit/port.ts';
import type { OpsJob, OpsJobs } from './port.ts';

interface Order {
  kind: string;
  /** Of the intent in the audit log. */
  action: string;
  actor: Actor;
  detail: Attributes;
  /** What the job holds, with `seq` of its intent. */
  inputOf: (intent: number) => unknown;
}

interface AddDeps {
  audit: Pick<Audit, 'intend' | 'conclude'>;
  opsJobs: Pick<OpsJobs, 'add'>;
  now: () => Date;
}

/** No intent, no job. What becomes of it is written when the job ends; without a job the job finish-intents does it. */
export async function addJob({ audit, opsJobs, now }: AddDeps, order: Order): Promise<OpsJob> {
  const { kind, action, actor, detail, inputOf } = order;
  const id = crypto.randomUUID();
  const subject = { actor, action, target: id };
  const intent = await audit.intend(subject, detail);
  try {
    const input = inputOf(intent);
    return await opsJobs.add({ id, kind, actor: actor.username, input, now: now().toISOString() });
  } catch (error) {
    if (error instanceof AppError && error.code === 'conflict')
      await audit.conclude(intent, subject, { result: 'failed', detail: { error: error.message } });
    throw error;
  }
}

export async function openJob({ open }: Pick<OpsJobs, 'open'>, kind: string): Promise<OpsJob | undefined> {
  return (await open()).find((job) => job.kind === kind);
}

/** The target is the job. */
export function jobSubject({ id, actor }: Pick<OpsJob, 'id' | 'actor'>, action: string): AuditSubject {
  return { actor: { username: actor, address: '', requestId: '' }, action, target: id };
}

/** For a job whose row holds what nobody can read; `left` says what that means. */
export async function endUnreadable(
  { opsJobs, log, now }: { opsJobs: Pick<OpsJobs, 'change'>; log: Log; now: () => Date },
  { id, kind }: OpsJob,
  left: string,
): Promise<void> {
  const error = `The row of this job cannot be read: ${left}.`;
  const at = now();
  await opsJobs.change(id, { state: 'failed', finishedAt: at.toISOString(), error, log: [stated(at, error)] });
  log.error(`${kind}.job`, { job: id, state: 'failed', error });
}

/** A line of the log of a job. */
export function stated(now: Date, text: string): string {
  return `${now.toISOString()} ${text}`;
}

/** What the last line says, without its time. */
export function lastReported({ log }: OpsJob): string {
  return textOf(log.at(-1) ?? '');
}

export function textOf(line: string): string {
  return line.replace(/^\S+ /, '');
}

export function timeOf(line: string): Date {
  return new Date(line.slice(0, line.indexOf(' ')));
}

/** Longer than a job that has ended takes to answer its intent itself. */
const ANSWERS_ITSELF_MS = 2 * MINUTE_MS;

/**
 * Answers the intent of ordered work whose process died before it could: from the job, which knows what became of it.
 * `open`: the job goes on, or has only just ended and is answering.
 */
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

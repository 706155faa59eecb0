// Adds jobs that people request, formats their log lines, and answers their audit intents.

import { AppError } from '@holdfast/kit/app-error';
import type { Log } from '@holdfast/kit/log';
import type { Attributes } from '@holdfast/kit/json';
import { MINUTE_MS } from '@holdfast/kit/time';
import type { Finish } from '../audit/interrupted-work.ts';
import type { Actor, Audit, AuditSubject, Conclusion } from '../audit/port.ts';
import type { OpsJob, OpsJobs } from './port.ts';

interface Order {
  kind: string;
  /** Action of the audit intent. */
  action: string;
  actor: Actor;
  detail: Attributes;
  /** The job's input, with `seq` of its intent. */
  inputOf: (intent: number) => unknown;
}

interface AddDeps {
  audit: Pick<Audit, 'intend' | 'conclude'>;
  opsJobs: Pick<OpsJobs, 'add'>;
  now: () => Date;
}

/**
 * Adds a job after its intent. The job concludes the intent when it ends; without a job,
 * finish-intents does.
 */
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

/** Ends a job whose row is unreadable; `left` names the consequence. */
export async function endUnreadable(
  { opsJobs, log, now }: { opsJobs: Pick<OpsJobs, 'change'>; log: Log; now: () => Date },
  { id, kind }: OpsJob,
  left: string,
): Promise<void> {
  const error = `Couldn't read the row of this job: ${left}.`;
  const at = now();
  await opsJobs.change(id, { state: 'failed', finishedAt: at.toISOString(), error, log: [stated(at, error)] });
  log.error(`${kind}.job`, { job: id, state: 'failed', error });
}

/** Formats a log line of a job. */
export function stated(now: Date, text: string): string {
  return `${now.toISOString()} ${text}`;
}

/** The text of the last line, without its time. */
export function lastLogText({ log }: OpsJob): string {
  return textOf(log.at(-1) ?? '');
}

export function textOf(line: string): string {
  return line.replace(/^\S+ /, '');
}

export function timeOf(line: string): Date {
  return new Date(line.slice(0, line.indexOf(' ')));
}

/** Longer than an ended job needs to answer its intent itself. */
const ANSWERS_ITSELF_MS = 2 * MINUTE_MS;

/**
 * Answers the intent of a job whose process died before it could, from the job's row. `open`: the
 * job continues, or has just ended and is answering itself.
 */
export function finishFromJob(
  conclusionOf: (job: OpsJob) => Conclusion,
): Finish<{ opsJobs: Pick<OpsJobs, 'get'>; now: () => Date }> {
  return async ({ opsJobs, now }, { target }) => {
    const job = await opsJobs.get(target);
    if (job === undefined) return { result: 'failed', detail: { error: 'not started: there is no such job' } };
    if (job.finishedAt === null) return 'open';
    const endedMs = now().getTime() - Date.parse(job.finishedAt);
    return endedMs <= ANSWERS_ITSELF_MS ? 'open' : conclusionOf(job);
  };
}

// Does a thing with its intent in the audit log before it and its outcome after it: no intent, no deed.

import { AppError, messageOf } from '@holdfast/kit/app-error';
import type { Attributes } from '@holdfast/kit/json';
import type { Audit, AuditSubject, Conclusion } from './port.ts';

export interface AuditedAction extends AuditSubject {
  /** What is to be done, without secrets; what a job needs to finish it when this process dies in the middle. */
  detail?: Attributes;
  /** With the deed, everything that was signed for this person ends. */
  endsSignInsOf?: string | undefined;
}

/** Told to the work, so that it can say how far it has come. */
export interface Progress {
  /**
   * Something has been changed, or may have been: from here on a failure leaves the intent open, and a job finishes it. `means`
   * says in a sentence what that is for whoever asked; the default is for steps that are all done again.
   */
  begun(means?: string): void;
}

/** For work whose answer need not wait for all of it. */
export interface DeferrableProgress extends Progress {
  /** The rest is left to the job that finishes open intents: the work resolves, and nothing is concluded yet. */
  leaveRest(): void;
}

const UNCERTAIN = new Set(['unavailable', 'upstream', 'internal']);

/**
 * Resolves as `work` does. What it rejects with is concluded as `failed`, or as `unknown` where the outside system may have
 * done it all the same. After `begun` nothing is concluded: the error says what that means.
 */
export async function audited<T>(
  { audit }: { audit: Pick<Audit, 'intend' | 'conclude'> },
  { detail, endsSignInsOf, ...subject }: AuditedAction,
  work: (progress: DeferrableProgress) => Promise<T>,
): Promise<T> {
  const intent = await audit.intend(subject, detail);
  const ends = endsSignInsOf === undefined ? {} : { endsSignInsOf };
  let begun: string | undefined;
  let isLeft = false;
  let outcome: T;
  try {
    outcome = await work({ begun: (means = DONE_AGAIN) => (begun = means), leaveRest: () => (isLeft = true) });
  } catch (error) {
    if (begun !== undefined) throw unfinished(error, begun);
    await audit.conclude(intent, subject, { ...failure(error), ...(isUncertain(error) ? ends : {}) });
    throw error;
  }
  if (!isLeft) await audit.conclude(intent, subject, { result: 'ok', ...ends });
  return outcome;
}

function isUncertain(error: unknown): boolean {
  return !(error instanceof AppError) || UNCERTAIN.has(error.code);
}

function failure(error: unknown): Conclusion {
  return { result: isUncertain(error) ? 'unknown' : 'failed', detail: { error: messageOf(error) } };
}

const DONE_AGAIN =
  'It may be done in part. What is missing is tried again every minute for a day; the audit log says what became of it.';

function unfinished(cause: unknown, means: string): unknown {
  if (!(cause instanceof AppError)) return cause;
  const text = `${cause.message.replace(/\.$/, '')}. ${means}`;
  return new AppError(cause.code, text, { cause, fields: cause.fields });
}

/** A failure after which something may have been done leaves the rest to a job. */
export async function inSteps(progress: Progress, steps: readonly (() => Promise<unknown>)[]): Promise<void> {
  for (const step of steps) {
    try {
      await step();
    } catch (error) {
      if (mayBeDone(error)) progress.begun();
      throw error;
    }
    progress.begun();
  }
}

/** False when the outside system has refused it. */
export function mayBeDone(error: unknown): boolean {
  return !(error instanceof AppError) || !REFUSALS.has(error.code);
}
export const REFUSALS = new Set(['invalid', 'conflict', 'not_found', 'forbidden']);

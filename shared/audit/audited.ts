// Runs a change with its intent in the audit log before it and its outcome after it: without an
// intent, nothing runs.

import { AppError, messageOf } from '@holdfast/kit/app-error';
import type { Attributes } from '@holdfast/kit/json';
import type { Audit, AuditSubject, Conclusion } from './port.ts';

export interface AuditedAction extends AuditSubject {
  /** The requested change, without secrets; a job needs this to finish it when the process dies. */
  detail?: Attributes;
  /** Also ends every session and token of this person. */
  endsSignInsOf?: string | undefined;
}

/** Passed to the work, so that it can report its progress. */
export interface Progress {
  /**
   * Something has changed, or may have. From here on, a failure leaves the intent open and a job
   * finishes it. `means` is a sentence for the caller; the default is for steps that are all
   * repeated.
   */
  begun(means?: string): void;
}

/** For work whose response need not wait for all of it. */
export interface DeferrableProgress extends Progress {
  /**
   * The rest is left to the job that finishes open intents: the work resolves, and no outcome is
   * written yet.
   */
  leaveRest(): void;
}

const UNCERTAIN = new Set(['unavailable', 'upstream', 'internal']);

/**
 * Resolves as `work` does. A rejection is recorded as `failed`, or as `unknown` when the outside
 * system may have made the change anyway. After `begun` no outcome is written: the error explains
 * what that means.
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
  'The change may be incomplete. Holdfast retries the missing steps every minute for a day; the audit log shows the result.';

function unfinished(cause: unknown, means: string): unknown {
  if (!(cause instanceof AppError)) return cause;
  const text = `${cause.message.replace(/\.$/, '')}. ${means}`;
  return new AppError(cause.code, text, { cause, fields: cause.fields });
}

/** When something may have changed, a job finishes the rest. */
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

/** False when the outside system has refused the change. */
export function mayBeDone(error: unknown): boolean {
  return !(error instanceof AppError) || !REFUSALS.has(error.code);
}
export const REFUSALS = new Set(['invalid', 'conflict', 'not_found', 'forbidden']);

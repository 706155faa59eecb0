// Records in the audit log which parts of a running stack were restored from a backup.

import type { InterruptedWork } from '../audit/interrupted-work.ts';
import type { Actor, Audit, Conclusion } from '../audit/port.ts';

/** Action of a restore; those of parts begin with it. */
export const RESTORED = 'backup.restore';

/** What a running stack gets back from an archive, one by one. */
export const RESTORED_PARTS = ['settings', 'account', 'mission', 'file'] as const;
export type RestoredPart = (typeof RESTORED_PARTS)[number];

interface PartDeps {
  audit: Pick<Audit, 'intend' | 'conclude'>;
}

export interface PartIntents {
  part: RestoredPart;
  /** File name of the archive. */
  archive: string;
  made_at: string;
  targets: readonly string[];
}

const actionOf = (part: RestoredPart): string => `${RESTORED}-${part}`;

/**
 * One intent for each target, in their order. Rejects with `unavailable`: then nothing may change.
 */
export async function intendParts(
  { audit }: PartDeps,
  actor: Actor,
  { part, targets, archive, made_at }: PartIntents,
): Promise<number[]> {
  const intents: number[] = [];
  for (const target of targets)
    intents.push(await audit.intend({ actor, action: actionOf(part), target }, { archive, made_at }));
  return intents;
}

/** An account that came back has another password, or none of the sign-ins that it has now. */
export async function concludeParts(
  { audit }: PartDeps,
  actor: Actor,
  part: RestoredPart,
  ends: readonly { intent: number; target: string; result: 'ok' | 'failed'; detail: string }[],
): Promise<void> {
  for (const { intent, target, result, detail } of ends)
    await audit.conclude(
      intent,
      { actor, action: actionOf(part), target },
      { result, detail: result === 'ok' ? { effect: detail } : { error: detail }, ...signInsOf(part, target, result) },
    );
}

function signInsOf(part: RestoredPart, target: string, result: Conclusion['result']): Partial<Conclusion> {
  return part === 'account' && result !== 'failed' ? { endsSignInsOf: target } : {};
}

/**
 * A whole stack was restored before its intent was written. Of an account the script died: it may
 * have been restored.
 */
export const INTERRUPTED_RESTORE: InterruptedWork<object> = {
  actions: [RESTORED, actionOf('account')],
  finish: async (_deps, { action, target }) =>
    action === RESTORED
      ? { result: 'ok' }
      : {
          result: 'unknown',
          detail: { reason: 'the script ended early' },
          ...signInsOf('account', target, 'unknown'),
        },
};

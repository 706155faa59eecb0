// Records what is restored in the audit log of the running management: an intent before and the
// outcome after it, for each account, mission, file and setting.

import { z } from 'zod';
import type { PartChange } from '@holdfast/backup/parts/rows';
import { messageOf } from '@holdfast/kit/app-error';
import type { RestoredPart } from '../../../shared/backups/restored.ts';
import { askManagement, type OperatorPlace } from '../operator/place.ts';

/** A restore of a part, as the audit log names it. */
export interface AuditedRun {
  place: OperatorPlace;
  part: RestoredPart;
  /** File name of the archive. */
  archive: string;
  made_at: string;
}

const AUDIT_WITHIN_MS = 60_000;
/** A request has 16 KB. */
const TARGETS_AT_ONCE = 20;
const MAX_DETAIL_CHARACTERS = 300;

/**
 * Records an intent for each target, does the work, and records what came of each. Rejects before
 * the work if management can't record it, else with the error of the work.
 */
export async function audited(
  { place, part, archive, made_at }: AuditedRun,
  wanted: readonly PartChange[],
  work: () => Promise<PartChange[]>,
): Promise<PartChange[]> {
  const intents: { intent: number; target: string }[] = [];
  for (const some of inChunks(wanted.map(({ target }) => target))) {
    const request = { ask: 'restore-begins', part, archive, made_at, targets: some };
    const numbers = z.array(z.number()).parse(await askManagement(place, request, AUDIT_WITHIN_MS));
    intents.push(...some.map((target, at) => ({ target, intent: numbers[at] ?? 0 })));
  }
  const conclude = async (result: 'ok' | 'failed', detailOf: (target: string) => string): Promise<void> => {
    for (const some of inChunks(intents)) {
      const ends = some.map(({ intent, target }) => ({
        intent,
        target,
        result,
        detail: detailOf(target).slice(0, MAX_DETAIL_CHARACTERS),
      }));
      await askManagement(place, { ask: 'restore-ended', part, ends }, AUDIT_WITHIN_MS);
    }
  };
  let changes: PartChange[];
  try {
    changes = await work();
  } catch (error) {
    await conclude('failed', () => messageOf(error));
    throw error;
  }
  const details = new Map(changes.map(({ target, effect, detail }) => [target, `${effect}: ${detail}`]));
  await conclude('ok', (target) => details.get(target) ?? '');
  return changes;
}

function inChunks<T>(all: readonly T[]): T[][] {
  const count = Math.ceil(all.length / TARGETS_AT_ONCE);
  return Array.from({ length: count }, (_, at) => all.slice(at * TARGETS_AT_ONCE, (at + 1) * TARGETS_AT_ONCE));
}

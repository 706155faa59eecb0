// Says what became of a change of retention whose process died in the middle: what is in force is read, and nothing is done again,
// for whoever asked for it may not want it any more.

import { z } from 'zod';
import { daysOf, RETAINED } from '@holdfast/kit/retention';
import { concluding, type InterruptedWork } from '../audit/interrupted-work.ts';
import type { Conclusion, OpenIntent } from '../audit/port.ts';
import type { CoreRetention } from '../core/port.ts';
import type { Exclusive } from '../identity/port.ts';
import { inForceInWords, type RetentionAtCore, retentionAtCore } from './apply.ts';
import { RETENTION_CHANGE, RETENTION_KEY } from './change.ts';

interface FinishRetentionDeps {
  now: () => Date;
  coreRetention: Pick<CoreRetention, 'policy' | 'schedule'>;
  deviceLock: Exclusive;
}

const partSchema = z.object({
  policy: z.partialRecord(z.enum(RETAINED), z.number().nullable()),
  cron: z.string().optional(),
});
type Part = z.infer<typeof partSchema>;
const detailSchema = z.object({ unit: z.enum(['days', 'seconds']), old: partSchema, new: partSchema });

export const INTERRUPTED_RETENTION: InterruptedWork<FinishRetentionDeps> = {
  actions: [RETENTION_CHANGE.action],
  finish: concluding(finishRetention),
};

async function finishRetention(deps: FinishRetentionDeps, { later }: OpenIntent, detail: unknown): Promise<Conclusion> {
  const { unit, old, new: wanted } = detailSchema.parse(detail);
  if (later.some(({ action }) => action === RETENTION_CHANGE.action))
    return { result: 'unknown', detail: { reason: 'a later change was made before this could be looked at' } };
  return deps.deviceLock(RETENTION_KEY, async () => {
    const found = await retentionAtCore(deps.coreRetention);
    const isAs = (part: Part): boolean => isInForce(part, found, (value) => daysOf(value, unit));
    if (isAs(wanted)) return { result: 'ok' };
    const error = isAs(old)
      ? 'not done: in force is what was before'
      : `done in part, and not gone on with: in force is ${inForceInWords(found, unit)}`;
    return { result: 'failed', detail: { error } };
  });
}

function isInForce(
  { policy, cron }: Part,
  found: RetentionAtCore,
  inDays: (value: number | null) => number | null,
): boolean {
  const isPolicy = RETAINED.every((type) => policy[type] === undefined || policy[type] === inDays(found.policy[type]));
  return isPolicy && (cron === undefined || cron === found.schedule);
}

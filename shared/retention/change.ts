// PUT /api/retention: changes days and schedule at the core, one change at a time, and says what the next run will delete.

import { AppError } from '@holdfast/kit/app-error';
import { counted, utcInWords } from '@holdfast/kit/format';
import { cutoffAt, daysOf, isKeepingAll, NEVER, policyInDays, type RetentionUnit } from '@holdfast/kit/retention';
import { audited } from '../audit/audited.ts';
import type { Actor, Audit } from '../audit/port.ts';
import type { CoreRetention } from '../core/port.ts';
import type { Exclusive } from '../identity/port.ts';
import type { HealthMemory } from '../jobs/port.ts';
import { applyRetention, type RetentionAtCore, retentionAtCore } from './apply.ts';
import { mustCountIn } from './in-force.ts';
import { quickPreview, type QuickPreviewDeps } from './quick-preview.ts';
import { changedTypes, changeParts } from './rules.ts';
import { because, knownUnit, nextRuns, type RetentionState, retentionState, type RetentionStateDeps } from './state.ts';
import { mustBePossible, type RetentionWish, targetOf } from './wish.ts';

export type ChangeRetentionDeps = RetentionStateDeps &
  QuickPreviewDeps & {
    coreRetention: Pick<CoreRetention, 'changePolicy' | 'changeSchedule' | 'runs'>;
    audit: Pick<Audit, 'intend' | 'conclude'>;
    /** It waits for the core. */
    deviceLock: Exclusive;
    health: HealthMemory;
  };

export interface ChangeRetentionContext {
  deps: ChangeRetentionDeps;
  actor: Actor;
  mustStillBeIn?: () => Promise<void>;
}

/** In `deviceLock`; nobody else's. */
export const RETENTION_KEY = 'retention';
export const RETENTION_CHANGE = { action: 'retention.change', target: 'retention' } as const;

/** Resolves with what is in force then; its first notes say what the change means. */
export async function changeRetention(context: ChangeRetentionContext, wish: RetentionWish): Promise<RetentionState> {
  const { deps, actor } = context;
  const unit = knownUnit(deps);
  mustBePossible(deps, wish, unit);
  const { from, to, notes } = await deps.deviceLock(RETENTION_KEY, async () => {
    await context.mustStillBeIn?.();
    const before = await retentionAtCore(deps.coreRetention);
    const target = targetOf(deps.settings, before, wish);
    if (isSame(before, target.to)) return { from: before, ...target, notes: ['All of this was in force already.'] };
    if (mayDeleteMore(before, target.to)) await mustCountIn(unit, deps.coreRetention);
    const deed = { actor, ...RETENTION_CHANGE, detail: detailOf(before, target.to, unit) };
    try {
      await audited(deps, deed, (progress) => applyRetention(deps.coreRetention, before, target.to, unit, progress));
    } finally {
      await deps.health.forget('retention');
    }
    return { from: before, ...target };
  });
  if (mayDeleteMore(from, to)) notes.push(await nextRunInWords(deps, to, unit));
  const state = await retentionState(deps);
  return { ...state, notes: [...notes, ...state.notes] };
}

function isSame(a: RetentionAtCore, b: RetentionAtCore): boolean {
  return a.schedule === b.schedule && changedTypes(a.policy, b.policy).length === 0;
}

/** Days of the types that change, as people know them, and the core's own schedule where it changes. */
function detailOf(from: RetentionAtCore, to: RetentionAtCore, unit: RetentionUnit) {
  const types = changedTypes(from.policy, to.policy);
  const part = ({ policy, schedule }: RetentionAtCore) => ({
    policy: Object.fromEntries(types.map((type) => [type, daysOf(policy[type], unit)])),
    ...(from.schedule === to.schedule ? {} : { cron: schedule }),
  });
  return { unit, old: part(from), new: part(to) };
}

function mayDeleteMore(from: RetentionAtCore, to: RetentionAtCore): boolean {
  if (isKeepingAll(to.policy)) return false;
  const begins = from.schedule === NEVER && to.schedule !== NEVER;
  return begins || Object.keys(changeParts(from.policy, to.policy).shorter).length > 0;
}

/** Counted for the moment of that run, of the rows that are there now. */
async function nextRunInWords(deps: ChangeRetentionDeps, to: RetentionAtCore, unit: RetentionUnit): Promise<string> {
  const policy = policyInDays(to.policy, unit);
  const [next] = nextRuns(deps, to.schedule, unit, 1);
  try {
    const cutoff = cutoffAt(policy, next ?? deps.now());
    const { rows, exact } = await quickPreview(deps, { policy, unit, cutoff });
    const figure = `${exact ? '' : 'about '}${counted(rows, 'row')}`;
    if (to.schedule === NEVER) return `A run would delete ${figure}, but no schedule is set, so none runs.`;
    const when = next === undefined ? '' : `, at ${utcInWords(next.toISOString())},`;
    return `The next run${when} will delete ${figure} of those that are there now.`;
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    return `How many rows the next run will delete could not be counted: ${because(error)}.`;
  }
}

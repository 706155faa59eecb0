// Changes retention for PUT /api/retention: validates, applies at the core, and finishes
// interrupted changes.

import { z } from 'zod';
import { AppError, type FieldError } from '@holdfast/kit/app-error';
import type { Schedules } from '@holdfast/kit/cron';
import { counted, formatUtc } from '@holdfast/kit/format';
import { springOf } from '@holdfast/kit/quartz';
import {
  cutoffAt,
  DAYS_VARIABLES,
  daysOf,
  DEFAULT_SCHEDULE,
  inUnit,
  isKeepingAll,
  NEVER,
  OWNED_TYPES,
  policyInDays,
  RETAINED,
  type Retained,
  type RetentionPolicy,
  type RetentionUnit,
} from '@holdfast/kit/retention';
import { audited } from '../audit/audited.ts';
import { concluding, type InterruptedWork } from '../audit/interrupted-work.ts';
import type { Actor, Audit, Conclusion, OpenIntent } from '../audit/port.ts';
import type { CoreRetention } from '../core/port.ts';
import type { Exclusive } from '../identity/port.ts';
import type { HealthMemory } from '../jobs/port.ts';
import { applyRetention, formatInForce, type RetentionAtCore, retentionAtCore } from './apply.ts';
import { mustCountIn } from './in-force.ts';
import { quickPreview, type QuickPreviewDeps } from './preview.ts';
import { changedTypes, changeParts, daysFault } from './rules.ts';
import {
  because,
  inDialect,
  knownUnit,
  nextRuns,
  type RetentionState,
  retentionState,
  type RetentionStateDeps,
  type RetentionVariables,
} from './state.ts';

export interface RetentionInput {
  /** Days; null keeps forever. Missing types stay unchanged. */
  policy?: Partial<Record<Retained, number | null | undefined>> | undefined;
  /** Quartz, or `-`. */
  cron?: string | undefined;
}

interface InputDeps {
  schedules: Pick<Schedules, 'fault'>;
  settings: RetentionVariables;
}

/** Throws `invalid` for impossible values, `conflict` if a variable sets the value. */
export function mustBePossible(deps: InputDeps, input: RetentionInput, unit: RetentionUnit): void {
  const fields = [...policyFaults(input, unit), ...cronFaults(deps, input, unit)];
  if (fields.length > 0)
    throw new AppError('invalid', fields.map(({ path, message }) => `${path}: ${message}`).join('; '), { fields });
  if (namedTypes(input).length === 0 && input.cron === undefined)
    throw new AppError('invalid', 'Nothing to change. Send policy with at least one type, or cron.');
  for (const type of OWNED_TYPES)
    if (input.policy?.[type] !== undefined) mustBeFree(`policy.${type}`, DAYS_VARIABLES[type], deps.settings);
  if (input.cron === undefined) return;
  mustBeFree('cron', 'RETENTION_CRON', deps.settings);
  if (input.cron.trim() === NEVER) mustNotComeBack(deps.settings);
}

function namedTypes({ policy }: RetentionInput): Retained[] {
  return RETAINED.filter((type) => policy?.[type] !== undefined);
}

function policyFaults({ policy }: RetentionInput, unit: RetentionUnit): FieldError[] {
  return RETAINED.flatMap((type) => {
    const fault = daysFault(policy?.[type] ?? null, unit);
    return fault === undefined ? [] : [{ path: `policy.${type}`, message: `${fault}; null keeps forever` }];
  });
}

function cronFaults({ schedules }: InputDeps, { cron }: RetentionInput, unit: RetentionUnit): FieldError[] {
  if (cron === undefined || cron.trim() === NEVER) return [];
  const fault = schedules.fault(cron, 'quartz') ?? (unit === 'seconds' ? springOf(cron).fault : undefined);
  if (fault === undefined) return [];
  const message = `must be a Quartz schedule, such as ${DEFAULT_SCHEDULE}, or - for none; "${cron}" is not, because ${fault}`;
  return [{ path: 'cron', message }];
}

function mustBeFree(key: string, variable: keyof RetentionVariables, settings: RetentionVariables): void {
  const value = settings[variable];
  if (value === undefined) return;
  throw new AppError(
    'conflict',
    `${key} is set by the variable ${variable} (${value}), and each start sets it again. ` +
      `Change ${variable}, or remove it and restart to set it here.`,
  );
}

/** If a variable sets days, each start sets a schedule. */
function mustNotComeBack(settings: RetentionVariables): void {
  const variable = Object.values(DAYS_VARIABLES).find((name) => settings[name] !== undefined);
  if (variable === undefined) return;
  throw new AppError(
    'conflict',
    `cron can't be "-" while the variable ${variable} (${settings[variable]}) is set: each start would set a schedule. ` +
      `Remove ${variable} and restart to set it here.`,
  );
}

export interface Target {
  to: RetentionAtCore;
  notes: string[];
}

/**
 * The target values in the unit and dialect of the core. Setting days without any schedule adds the
 * default one.
 */
export function targetOf(settings: RetentionVariables, from: RetentionAtCore, input: RetentionInput): Target {
  const unit = settings.CORE_RETENTION_UNIT ?? 'days';
  const policy: RetentionPolicy = { ...from.policy };
  for (const type of namedTypes(input)) policy[type] = inUnit(input.policy?.[type] ?? null, unit);
  const setsDays = namedTypes(input).some((type) => input.policy?.[type] !== null);
  if (input.cron !== undefined) return { to: { policy, schedule: asCore(input.cron, unit) }, notes: [] };
  if (!setsDays || from.schedule !== NEVER) return { to: { policy, schedule: from.schedule }, notes: [] };
  const cron = settings.RETENTION_CRON ?? DEFAULT_SCHEDULE;
  const whose = settings.RETENTION_CRON === undefined ? 'the default schedule' : 'the one of RETENTION_CRON';
  const note = `No schedule was set, so ${whose} was set: ${cron}.`;
  return { to: { policy, schedule: asCore(cron, unit) }, notes: [note] };
}

function asCore(cron: string, unit: RetentionUnit): string {
  const schedule = inDialect(cron.trim().split(/\s+/).join(' '), unit);
  if (schedule !== undefined) return schedule;
  throw new AppError('conflict', `The schedule "${cron}" can't be converted for the core. Set cron too.`);
}

export type ChangeRetentionDeps = RetentionStateDeps &
  QuickPreviewDeps & {
    coreRetention: Pick<CoreRetention, 'changePolicy' | 'changeSchedule' | 'runs'>;
    audit: Pick<Audit, 'intend' | 'conclude'>;
    /** Serializes the change: it waits for the core. */
    deviceLock: Exclusive;
    health: HealthMemory;
  };

export interface ChangeRetentionContext {
  deps: ChangeRetentionDeps;
  actor: Actor;
  mustStillBeIn?: () => Promise<void>;
}

/** The key in `deviceLock`, used only here. */
export const RETENTION_KEY = 'retention';
export const RETENTION_CHANGE = { action: 'retention.change', target: 'retention' } as const;

/** Resolves with the new state; its first notes explain the effect of the change. */
export async function changeRetention(context: ChangeRetentionContext, input: RetentionInput): Promise<RetentionState> {
  const { deps, actor } = context;
  const unit = knownUnit(deps);
  mustBePossible(deps, input, unit);
  const { from, to, notes } = await deps.deviceLock(RETENTION_KEY, async () => {
    await context.mustStillBeIn?.();
    const before = await retentionAtCore(deps.coreRetention);
    const target = targetOf(deps.settings, before, input);
    if (isSame(before, target.to)) return { from: before, ...target, notes: ['These values were already in force.'] };
    if (mayDeleteMore(before, target.to)) await mustCountIn(unit, deps.coreRetention);
    const action = { actor, ...RETENTION_CHANGE, detail: detailOf(before, target.to, unit) };
    try {
      await audited(deps, action, (progress) => applyRetention(deps.coreRetention, before, target.to, unit, progress));
    } finally {
      await deps.health.forget('retention');
    }
    return { from: before, ...target };
  });
  if (mayDeleteMore(from, to)) notes.push(await formatNextRun(deps, to, unit));
  const state = await retentionState(deps);
  return { ...state, notes: [...notes, ...state.notes] };
}

function isSame(a: RetentionAtCore, b: RetentionAtCore): boolean {
  return a.schedule === b.schedule && changedTypes(a.policy, b.policy).length === 0;
}

/** The days of changed types, and the core's schedule if it changes. */
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

/** Counts the current rows that the run at that time would delete. */
async function formatNextRun(deps: ChangeRetentionDeps, to: RetentionAtCore, unit: RetentionUnit): Promise<string> {
  const policy = policyInDays(to.policy, unit);
  const [next] = nextRuns(deps, to.schedule, unit, 1);
  try {
    const cutoff = cutoffAt(policy, next ?? deps.now());
    const { rows, exact } = await quickPreview(deps, { policy, unit, cutoff });
    const figure = `${exact ? '' : 'about '}${counted(rows, 'row')}`;
    if (to.schedule === NEVER) return `A run would delete ${figure}, but no schedule is set, so nothing runs.`;
    const when = next === undefined ? '' : `, at ${formatUtc(next.toISOString())},`;
    return `The next run${when} will delete ${figure} of the current ones.`;
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    return `Couldn't count the rows that the next run will delete: ${because(error)}.`;
  }
}

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

/** Reads the values in force and repeats nothing: the change may no longer be wanted. */
export const INTERRUPTED_RETENTION: InterruptedWork<FinishRetentionDeps> = {
  actions: [RETENTION_CHANGE.action],
  finish: concluding(finishRetention),
};

async function finishRetention(deps: FinishRetentionDeps, { later }: OpenIntent, detail: unknown): Promise<Conclusion> {
  const { unit, old, new: wanted } = detailSchema.parse(detail);
  if (later.some(({ action }) => action === RETENTION_CHANGE.action))
    return { result: 'unknown', detail: { reason: 'a later change was made before this one could be checked' } };
  return deps.deviceLock(RETENTION_KEY, async () => {
    const found = await retentionAtCore(deps.coreRetention);
    const isAs = (part: Part): boolean => isInForce(part, found, (value) => daysOf(value, unit));
    if (isAs(wanted)) return { result: 'ok' };
    const error = isAs(old)
      ? 'not done: the previous values are in force'
      : `done in part and not continued: in force is ${formatInForce(found, unit)}`;
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

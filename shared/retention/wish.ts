// A change of retention that was asked for: whether it may be, and what then is to be in force.

import { AppError, type FieldError } from '@holdfast/kit/app-error';
import type { Schedules } from '@holdfast/kit/cron';
import { springOf } from '@holdfast/kit/quartz';
import {
  DAYS_VARIABLES,
  DEFAULT_SCHEDULE,
  inUnit,
  NEVER,
  OWNED_TYPES,
  RETAINED,
  type Retained,
  type RetentionPolicy,
  type RetentionUnit,
} from '@holdfast/kit/retention';
import type { RetentionAtCore } from './apply.ts';
import { daysFault } from './rules.ts';
import { inDialect, type RetentionVariables } from './state.ts';

export interface RetentionWish {
  /** Days; null keeps for ever. What is not named stays. */
  policy?: Partial<Record<Retained, number | null | undefined>> | undefined;
  /** Quartz, or `-`. */
  cron?: string | undefined;
}

interface WishDeps {
  schedules: Pick<Schedules, 'fault'>;
  settings: RetentionVariables;
}

/** Throws `invalid` for what cannot be, `conflict` for what a variable sets. */
export function mustBePossible(deps: WishDeps, wish: RetentionWish, unit: RetentionUnit): void {
  const fields = [...policyFaults(wish, unit), ...cronFaults(deps, wish, unit)];
  if (fields.length > 0)
    throw new AppError('invalid', fields.map(({ path, message }) => `${path}: ${message}`).join('; '), { fields });
  if (namedTypes(wish).length === 0 && wish.cron === undefined)
    throw new AppError('invalid', 'There is nothing to change: give policy with at least one type, or cron.');
  for (const type of OWNED_TYPES)
    if (wish.policy?.[type] !== undefined) mustBeFree(`policy.${type}`, DAYS_VARIABLES[type], deps.settings);
  if (wish.cron === undefined) return;
  mustBeFree('cron', 'RETENTION_CRON', deps.settings);
  if (wish.cron.trim() === NEVER) mustNotComeBack(deps.settings);
}

function namedTypes({ policy }: RetentionWish): Retained[] {
  return RETAINED.filter((type) => policy?.[type] !== undefined);
}

function policyFaults({ policy }: RetentionWish, unit: RetentionUnit): FieldError[] {
  return RETAINED.flatMap((type) => {
    const fault = daysFault(policy?.[type] ?? null, unit);
    return fault === undefined ? [] : [{ path: `policy.${type}`, message: `${fault}; null keeps for ever` }];
  });
}

function cronFaults({ schedules }: WishDeps, { cron }: RetentionWish, unit: RetentionUnit): FieldError[] {
  if (cron === undefined || cron.trim() === NEVER) return [];
  const fault = schedules.fault(cron, 'quartz') ?? (unit === 'seconds' ? springOf(cron).fault : undefined);
  if (fault === undefined) return [];
  const message = `must be a schedule of Quartz, such as ${DEFAULT_SCHEDULE}, or - for none; "${cron}" is not, because ${fault}`;
  return [{ path: 'cron', message }];
}

function mustBeFree(key: string, variable: keyof RetentionVariables, settings: RetentionVariables): void {
  const value = settings[variable];
  if (value === undefined) return;
  throw new AppError(
    'conflict',
    `${key} is set by the variable ${variable} (${value}), and each start sets it again. ` +
      `Change ${variable}, or remove it and restart; then it can be set here.`,
  );
}

/** Each start sets a schedule where a variable sets days. */
function mustNotComeBack(settings: RetentionVariables): void {
  const variable = Object.values(DAYS_VARIABLES).find((name) => settings[name] !== undefined);
  if (variable === undefined) return;
  throw new AppError(
    'conflict',
    `cron cannot be "-" while the variable ${variable} (${settings[variable]}) is set: each start would set a schedule. ` +
      `Remove ${variable} and restart; then it can be set here.`,
  );
}

export interface Target {
  to: RetentionAtCore;
  notes: string[];
}

/** What is to be in force at the core, in its unit and its dialect. Days without any schedule get one. */
export function targetOf(settings: RetentionVariables, from: RetentionAtCore, wish: RetentionWish): Target {
  const unit = settings.CORE_RETENTION_UNIT ?? 'days';
  const policy: RetentionPolicy = { ...from.policy };
  for (const type of namedTypes(wish)) policy[type] = inUnit(wish.policy?.[type] ?? null, unit);
  const setsDays = namedTypes(wish).some((type) => wish.policy?.[type] !== null);
  if (wish.cron !== undefined) return { to: { policy, schedule: asCore(wish.cron, unit) }, notes: [] };
  if (!setsDays || from.schedule !== NEVER) return { to: { policy, schedule: from.schedule }, notes: [] };
  const cron = settings.RETENTION_CRON ?? DEFAULT_SCHEDULE;
  const whose = settings.RETENTION_CRON === undefined ? 'the default schedule' : 'that of RETENTION_CRON';
  const note = `No schedule was set, so ${whose} was set: ${cron}.`;
  return { to: { policy, schedule: asCore(cron, unit) }, notes: [note] };
}

function asCore(cron: string, unit: RetentionUnit): string {
  const schedule = inDialect(cron.trim().split(/\s+/).join(' '), unit);
  if (schedule !== undefined) return schedule;
  throw new AppError('conflict', `The schedule "${cron}" cannot be said in the words of the core. Set cron too.`);
}

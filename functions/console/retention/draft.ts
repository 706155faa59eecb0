// A policy that somebody wants: what the fields of the editor hold, and what that would be once it is in force.

import { AppError, type FieldError } from '@holdfast/kit/app-error';
import { counted, grouped } from '@holdfast/kit/format';
import {
  DAYS_VARIABLES,
  DEFAULT_SCHEDULE,
  isKeepingAll,
  NEVER,
  OWNED_TYPES,
  type Retained,
  RETAINED,
  type RetentionPolicy,
  type RetentionUnit,
  toDaysView,
} from '@holdfast/kit/retention';
import type { Deps } from '../../../shared/http/deps.ts';
import { mustBePossible, type RetentionInput } from '../../../shared/retention/change.ts';
import type { PreviewedType } from '../../../shared/retention/preview.ts';
import { changeParts } from '../../../shared/retention/rules.ts';
import { dailyAt, weeklyAt } from '../../../shared/retention/format-schedule.ts';
import { inDialect, type RetentionState } from '../../../shared/retention/state.ts';
import { attempt } from '../../pages/form.ts';

interface TypeWords {
  /** `Positions and events`. */
  name: string;
  what: string;
}

/** The types of retention as people know them, and their figures in words. */
export const TYPE_WORDS: Readonly<Record<Retained, TypeWords>> = {
  cot: { name: 'Positions and events', what: 'Where everybody was, markers and alerts: the history of the map (cot).' },
  geochat: { name: 'Chat', what: 'Messages between people and groups (geochat).' },
  files: { name: 'Files', what: 'Pictures and documents that somebody has uploaded (files).' },
  missionpackages: { name: 'Data packages', what: 'Mission packages that somebody has shared (missionpackages).' },
  missions: { name: 'Missions', what: 'Data Sync missions, with their events and files (missions).' },
};

/** `1 row`, `about 1,234 rows`. */
export function formatRows(count: number, exact = true, item = 'row'): string {
  return `${exact ? '' : 'about '}${grouped(count)} ${item}${count === 1 ? '' : 's'}`;
}

/** `30 days`, `for ever`. */
export function formatKept(days: number | null): string {
  return days === null ? 'for ever' : counted(toDaysView(days), 'day');
}

/** With what goes with missions. */
export function allRowsOf({ rows, included }: Pick<PreviewedType, 'rows' | 'included'>): number {
  return rows + included.cot + included.files;
}

/** The variable that sets the days of this type, where one can. */
export function variableOf(type: Retained): string | undefined {
  const owned = OWNED_TYPES.find((each) => each === type);
  return owned && DAYS_VARIABLES[owned];
}

/** As typed. */
export interface Draft {
  /** Empty: for ever. */
  days: Record<Retained, string>;
  /** `keep`, `daily`, `weekly`, `never`, `own`. */
  schedule: string;
  time: string;
  weekday: string;
  /** Quartz. */
  cron: string;
}

/** What would be in force. */
export interface Target {
  policy: RetentionPolicy;
  /** In the words of the core, or `-`. */
  cron: string;
  /** What of it is to be changed; undefined: nothing. */
  input: RetentionInput | undefined;
  /** A run may then delete what none deletes now. */
  deletesMore: boolean;
}

/** `read` gives undefined where nothing was sent: then it is as it is. */
export function draftFrom(read: (name: string) => string | undefined, state: RetentionState): Draft {
  const days = Object.fromEntries(
    RETAINED.map((type) => [
      type,
      state.source[type] === 'env' ? shown(state, type) : (read(type)?.trim() ?? shown(state, type)),
    ]),
  ) as Draft['days'];
  const cron = read('cron')?.trim() ?? '';
  const schedule = read('schedule') ?? 'keep';
  // Whoever has written one means it.
  const chosen = schedule === 'keep' && cron !== '' ? 'own' : schedule;
  return {
    days,
    schedule: state.source.cron === 'env' ? 'keep' : chosen,
    time: read('time')?.trim() ?? '03:00',
    weekday: read('weekday') ?? 'MON',
    cron,
  };
}

function shown({ policy }: RetentionState, type: Retained): string {
  return policy[type] === null ? '' : String(policy[type]);
}

/** Rejects with `invalid`, naming the fields; with `conflict` for what a variable sets. */
export async function targetOf(deps: Deps, state: RetentionState, unit: RetentionUnit, draft: Draft): Promise<Target> {
  const changed = RETAINED.filter((type) => draft.days[type] !== shown(state, type));
  const wanted = changed.map((type): [Retained, number | null] => [type, daysIn(draft.days[type])]);
  const cron = cronOf(draft);
  const faults = [...wanted.flatMap(([type, days]) => noNumber(type, days, draft)), ...cron.faults];
  if (faults.length > 0) throw invalid(faults);
  const policy = { ...state.policy, ...Object.fromEntries(wanted) };
  const named = wanted.length === 0 ? {} : { policy: Object.fromEntries(wanted) };
  const schedule = cron.quartz === undefined ? undefined : inDialect(cron.quartz, unit);
  const isNew = cron.quartz !== undefined && schedule !== state.cron;
  const isChange = wanted.length > 0 || isNew;
  const input: RetentionInput | undefined = isChange
    ? { ...named, ...(isNew ? { cron: cron.quartz } : {}) }
    : undefined;
  if (input !== undefined) await mustBeRight(deps, input, unit);
  const then = isNew ? (schedule ?? state.cron) : scheduleWith(policy, state.cron, wanted.length > 0);
  return { policy, cron: then, input, deletesMore: isChange && mayDeleteMore(state, policy, then) };
}

/** Days without any schedule get one. */
function scheduleWith(policy: RetentionPolicy, cron: string, setsDays: boolean): string {
  return cron === NEVER && setsDays && !isKeepingAll(policy) ? DEFAULT_SCHEDULE : cron;
}

function mayDeleteMore(state: RetentionState, policy: RetentionPolicy, schedule: string): boolean {
  if (isKeepingAll(policy)) return false;
  const restarts = schedule !== NEVER && schedule !== state.cron;
  return restarts || Object.keys(changeParts(state.policy, policy).shorter).length > 0;
}

function daysIn(text: string): number | null {
  if (text === '') return null;
  return /^\d{1,9}$/.test(text) ? Number(text) : Number.NaN;
}

function noNumber(type: Retained, days: number | null, draft: Draft): FieldError[] {
  if (days === null || !Number.isNaN(days)) return [];
  const text = JSON.stringify(draft.days[type].slice(0, 40));
  return [{ path: type, message: `must be a whole number of days, or empty to keep for ever, not ${text}` }];
}

/** `quartz` is undefined where the schedule stays. */
function cronOf({ schedule, time, weekday, cron }: Draft): { quartz?: string; faults: FieldError[] } {
  const noTime = {
    path: 'time',
    message: `must be a time of the day such as 03:00, not ${JSON.stringify(time.slice(0, 40))}`,
  };
  switch (schedule) {
    case 'keep':
      return { faults: [] };
    case 'never':
      return { quartz: NEVER, faults: [] };
    case 'daily':
      return orFault(dailyAt(time), noTime);
    case 'weekly':
      return orFault(weeklyAt(weekday, time), noTime);
    case 'own':
      return orFault(cron.slice(0, 200) || undefined, {
        path: 'cron',
        message: `must be a schedule of Quartz, such as ${DEFAULT_SCHEDULE}`,
      });
    default:
      return { faults: [{ path: 'schedule', message: 'must be one of the choices' }] };
  }
}

function orFault(quartz: string | undefined, fault: FieldError): { quartz?: string; faults: FieldError[] } {
  return quartz === undefined ? { faults: [fault] } : { quartz, faults: [] };
}

/** The rules of the verb, in the names of the fields here. */
async function mustBeRight(deps: Deps, input: RetentionInput, unit: RetentionUnit): Promise<void> {
  const { refused } = await attempt(async () => mustBePossible(deps, input, unit));
  if (refused === undefined) return;
  if (refused.code !== 'invalid') throw refused;
  throw invalid(refused.fields.map(({ path, message }) => ({ path: path.replace(/^policy\./, ''), message })));
}

function invalid(fields: FieldError[]): AppError {
  const text = fields.map(({ path, message }) => `${nameOf(path)} ${message}`).join('; ');
  return new AppError('invalid', `${text}.`, { fields });
}

function nameOf(path: string): string {
  const type = RETAINED.find((each) => each === path);
  return type === undefined ? `The ${path}` : TYPE_WORDS[type].name;
}

/** What is in force, in one text: a preview holds only as long as it is the same. */
export function baseOf({ policy, cron }: Pick<RetentionState, 'policy' | 'cron'>): string {
  return JSON.stringify([...RETAINED.map((type) => policy[type]), cron]);
}

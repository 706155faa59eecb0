// Reads a draft policy from the fields of the editor and turns it into the policy to apply.

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

/** The types of retained data with names and descriptions for people. */
export const TYPE_WORDS: Readonly<Record<Retained, TypeWords>> = {
  cot: { name: 'Positions and events', what: 'Positions, markers and alerts: the history of the map (cot).' },
  geochat: { name: 'Chat', what: 'Messages between people and groups (geochat).' },
  files: { name: 'Files', what: 'Uploaded pictures and documents (files).' },
  missionpackages: { name: 'Data packages', what: 'Shared mission packages (missionpackages).' },
  missions: { name: 'Missions', what: 'Data Sync missions, with their events and files (missions).' },
};

/** `1 row`, `about 1,234 rows`. */
export function formatRows(count: number, exact = true, item = 'row'): string {
  return `${exact ? '' : 'about '}${grouped(count)} ${item}${count === 1 ? '' : 's'}`;
}

/** `30 days`, `forever`. */
export function formatKept(days: number | null): string {
  return days === null ? 'forever' : counted(toDaysView(days), 'day');
}

/** Includes the rows that are deleted with missions. */
export function allRowsOf({ rows, included }: Pick<PreviewedType, 'rows' | 'included'>): number {
  return rows + included.cot + included.files;
}

/** The variable that can set the days of this type, if there is one. */
export function variableOf(type: Retained): string | undefined {
  const owned = OWNED_TYPES.find((each) => each === type);
  return owned && DAYS_VARIABLES[owned];
}

/** As typed. */
export interface Draft {
  /** Empty: forever. */
  days: Record<Retained, string>;
  /** `keep`, `daily`, `weekly`, `never`, `own`. */
  schedule: string;
  time: string;
  weekday: string;
  /** Quartz. */
  cron: string;
}

/** The policy that the draft would put in force. */
export interface Target {
  policy: RetentionPolicy;
  /** In the dialect of the core, or `-`. */
  cron: string;
  /** The changes to apply; undefined: none. */
  input: RetentionInput | undefined;
  /** True if a run may then delete more than now. */
  deletesMore: boolean;
}

/** `read` returns undefined for a field that was not sent; it keeps its current value. */
export function draftFrom(read: (name: string) => string | undefined, state: RetentionState): Draft {
  const days = Object.fromEntries(
    RETAINED.map((type) => [
      type,
      state.source[type] === 'env' ? shown(state, type) : (read(type)?.trim() ?? shown(state, type)),
    ]),
  ) as Draft['days'];
  const cron = read('cron')?.trim() ?? '';
  const schedule = read('schedule') ?? 'keep';
  // An expression that was typed counts, even without selecting it.
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

/** Rejects with `invalid` and the fields, or with `conflict` if a variable sets the value. */
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

/** Setting days without any schedule adds the default schedule. */
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
  return [{ path: type, message: `must be a whole number of days, or empty to keep forever, not ${text}` }];
}

/** `quartz` is undefined if the schedule stays. */
function cronOf({ schedule, time, weekday, cron }: Draft): { quartz?: string; faults: FieldError[] } {
  const noTime = {
    path: 'time',
    message: `must be a time of day such as 03:00, not ${JSON.stringify(time.slice(0, 40))}`,
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
        message: `must be a Quartz schedule, such as ${DEFAULT_SCHEDULE}`,
      });
    default:
      return { faults: [{ path: 'schedule', message: 'must be one of the choices' }] };
  }
}

function orFault(quartz: string | undefined, fault: FieldError): { quartz?: string; faults: FieldError[] } {
  return quartz === undefined ? { faults: [fault] } : { quartz, faults: [] };
}

/** Checks the rules of PUT /api/retention and maps the errors to the fields of this form. */
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

/** The current policy as one text; a preview is valid only while this stays the same. */
export function baseOf({ policy, cron }: Pick<RetentionState, 'policy' | 'cron'>): string {
  return JSON.stringify([...RETAINED.map((type) => policy[type]), cron]);
}

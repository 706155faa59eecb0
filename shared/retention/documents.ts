// Plans the content of the two retention files from their texts, Holdfast's memory of what it
// wrote, and the variables. A file with the right values is left alone, and so are values that no
// variable sets. A value that a variable used to set is reset only in a file that is still as
// Holdfast wrote it.

import { isScalar } from 'yaml';
import { springOf } from '@holdfast/kit/quartz';
import {
  DAYS_VARIABLES,
  DEFAULT_SCHEDULE,
  inUnit,
  maxDays,
  NEVER,
  OWNED_TYPES,
  type OwnedType,
  plainCron,
  RETAINED,
  type RetentionUnit,
} from '@holdfast/kit/retention';
import { DAY_SECONDS } from '@holdfast/kit/time';
import {
  entriesOf,
  type Entry,
  type OpenYaml,
  openYaml,
  withEntry,
  withHeadLine,
  YamlFault,
} from '@holdfast/kit/yaml-edit';
import { type DaysChange, newPolicy, readPolicy, unitLine, withDays } from './policy-text.ts';
import type { WantedRetention } from './port.ts';

const NAME = 'cronExpression';

/**
 * Reads the schedule in the cron of the core; a bare `-` is not YAML, but means the same as `"-"`.
 * Throws a YamlFault.
 */
export function readSchedule(text: string): string {
  if (text.trim() === NEVER) return NEVER;
  const { entry, yaml } = opened(quoted(text));
  const { value, key } = entry;
  const cron = isScalar(value) && typeof value.value === 'string' ? value.value.trim() : '';
  if (cron === '' || /\p{Cc}/u.test(cron))
    throw new YamlFault(`${NAME} is not a schedule: write it in quotes, "-" for never`, yaml.lineOf(value ?? key));
  return cron;
}

function opened(text: string): { entry: Entry; yaml: OpenYaml } {
  const yaml = openYaml(text);
  const entry = entriesOf(yaml.root, yaml).find(({ name }) => name === NAME);
  if (entry === undefined) throw new YamlFault(`${NAME} is missing`, 1);
  return { entry, yaml };
}

function quoted(text: string): string {
  return text.replaceAll(/^([ \t]*cronExpression:[ \t]*)-(?=[ \t]*(?:#.*)?\r?$)/gm, '$1"-"');
}

/**
 * Returns the text with that schedule and a comment on top that explains the format. Throws a
 * YamlFault.
 */
export function withSchedule(text: string, cron: string, unit: RetentionUnit | undefined): string {
  if (text.trim() === NEVER) return newSchedule(cron, unit);
  const whole = quoted(text);
  const { entry, yaml } = opened(whole);
  const next = withHeadLine(withEntry(whole, yaml.root, entry, JSON.stringify(cron)), FIELDS, dialectLine(unit));
  if (readSchedule(next) === cron) return next;
  throw new YamlFault(`its format can't be changed automatically; write ${NAME}: "-" on its own line`, 1);
}

const FIELDS = 'second minute hour day-of-month month day-of-week';

function dialectLine(unit: RetentionUnit | undefined): string {
  if (unit === undefined) return `# ${FIELDS}, as the core counts weekdays; "-" for never.`;
  if (unit === 'days')
    return `# Core that counts days: Quartz, ${FIELDS} [year], 1 = Sunday, ? in one day field; "-" for never.`;
  return `# Core that counts seconds: Spring, ${FIELDS}, 0 and 7 = Sunday; "-" for never.`;
}

export function newSchedule(cron: string, unit: RetentionUnit | undefined): string {
  return `${dialectLine(unit)}\n${NAME}: ${JSON.stringify(cron)}\n`;
}

export const POLICY_FILE = 'retention-policy.yml';
export const SCHEDULE_FILE = 'retention-service.yml';

/** A text that Holdfast wrote, and the types that variables owned in it. */
export interface PolicyState {
  sha256: string;
  owned: OwnedType[];
}

export interface ScheduleState {
  sha256: string;
  /** Why Holdfast set the schedule, if it did: the variable, or days set without one. */
  owned: 'variable' | 'default' | null;
}

/** More than one state of a file means that a write was begun; the file has one of them. */
export interface RetentionMemory {
  policy: PolicyState[];
  schedule: ScheduleState[];
}

export const NO_MEMORY: RetentionMemory = { policy: [], schedule: [] };

/** Undefined if there is no such file. */
export interface RetentionTexts {
  policy: string | undefined;
  schedule: string | undefined;
}

export interface RetentionPlan {
  /** What to write; undefined leaves the file as it is. */
  policy: string | undefined;
  schedule: string | undefined;
  /** The memory once both are written. */
  memory: RetentionMemory;
  messages: string[];
}

export interface RetentionRefusal {
  fault: string;
  /** Undefined if the fault is in the variables. */
  file?: string;
  line?: number;
}

export type Sha256 = (text: string) => string;

export function planRetention(
  texts: RetentionTexts,
  memory: RetentionMemory,
  wanted: WantedRetention,
  sha256: Sha256,
): RetentionPlan | RetentionRefusal {
  const fault = faultOf(wanted);
  if (fault !== undefined) return { fault };
  let file = POLICY_FILE;
  try {
    const policy = planPolicy(texts.policy, memory.policy, wanted, sha256);
    file = SCHEDULE_FILE;
    const schedule = planSchedule(texts.schedule, memory.schedule, wanted, sha256);
    return {
      policy: policy.text,
      schedule: schedule.text,
      memory: { policy: policy.states, schedule: schedule.states },
      messages: [...policy.messages, ...schedule.messages],
    };
  } catch (error) {
    if (error instanceof YamlFault) return { fault: error.message, line: error.line, file };
    throw error;
  }
}

function faultOf({ cot, geochat, cron, unit }: WantedRetention): string | undefined {
  if (unit === undefined && (cot ?? geochat ?? cron) !== undefined)
    return 'CORE_RETENTION_UNIT must be set with a retention variable: seconds for a TAK Server release, days for the embedded core';
  if (cron === undefined || unit !== 'seconds') return undefined;
  const { fault } = springOf(cron);
  return fault === undefined ? undefined : `RETENTION_CRON=${cron} can't be used by this core: ${fault}`;
}

interface FilePlan<S> {
  text: string | undefined;
  states: S[];
  messages: string[];
}

function planPolicy(
  given: string | undefined,
  states: readonly PolicyState[],
  wanted: WantedRetention,
  sha256: Sha256,
): FilePlan<PolicyState> {
  const text = given ?? newPolicy(wanted.unit);
  const { policy, unit: requestedUnit } = readPolicy(text);
  const ours = given === undefined ? undefined : stateOf(given, states, sha256);
  const set = OWNED_TYPES.filter((type) => wanted[type] !== undefined);
  const known = ours === undefined ? (given === undefined ? [] : states) : [ours];
  const canceled = OWNED_TYPES.filter((type) => !set.includes(type) && known.some(({ owned }) => owned.includes(type)));

  const change: DaysChange = {};
  const messages =
    given === undefined ? [`${POLICY_FILE} was created; it keeps everything that no variable limits`] : [];
  for (const type of set) {
    const days = wanted[type] ?? null;
    if (policy[type] === inUnit(days, wanted.unit ?? 'days')) continue;
    change[type] = days;
    messages.push(`${POLICY_FILE}: ${type} is kept ${days} ${days === 1 ? 'day' : 'days'} (${DAYS_VARIABLES[type]})`);
  }
  for (const type of canceled) {
    if (ours === undefined) messages.push(left(POLICY_FILE, type, DAYS_VARIABLES[type]));
    else if (policy[type] !== null) {
      change[type] = null;
      messages.push(`${POLICY_FILE}: ${type} is kept forever again, because ${DAYS_VARIABLES[type]} is unset`);
    }
  }
  if (wanted.unit !== undefined) refuseWrongUnit({ ...policy, ...change }, set, requestedUnit, wanted.unit);

  if (Object.keys(change).length === 0) {
    if (given === undefined) return { text, states: [{ sha256: sha256(text), owned: [] }], messages };
    return {
      text: undefined,
      states: known.map((state) => ({ ...state, owned: state.owned.filter((type) => set.includes(type)) })),
      messages,
    };
  }
  const next = withDays(text, change, wanted.unit);
  return { text: next, states: [{ sha256: sha256(next), owned: set }], messages };
}

/**
 * Numbers written for a core with the other unit would delete nearly everything, or be rejected.
 */
function refuseWrongUnit(
  policy: ReturnType<typeof readPolicy>['policy'],
  set: readonly OwnedType[],
  message: WantedRetention['unit'],
  unit: RetentionUnit,
): void {
  const others = RETAINED.filter((type) => policy[type] !== null && !set.some((each) => each === type));
  const [other] = others;
  if (other !== undefined && message !== undefined && message !== unit)
    throw new YamlFault(
      `its comment says it counts ${message}, but the core counts ${unit}, and ${other} has the value ${policy[other]}: correct the values, then the comment`,
      1,
    );
  const large = others.find((type) => unit === 'days' && (policy[type] ?? 0) > maxDays('days'));
  if (large !== undefined)
    throw new YamlFault(
      `${large} is more than ${maxDays('days')} days, which looks like seconds, but this core counts days`,
      1,
    );
  const small = others.find((type) => unit !== message && (policy[type] ?? 0) < DAY_SECONDS);
  if (unit === 'seconds' && small !== undefined)
    throw new YamlFault(
      `${small} is ${policy[small]} seconds, which looks like days, but this core counts seconds: write ${inUnit(policy[small], unit)} for ${policy[small]} days; if seconds are meant, begin the file with "${unitLine(unit)}"`,
      1,
    );
}

function planSchedule(
  given: string | undefined,
  states: readonly ScheduleState[],
  wanted: WantedRetention,
  sha256: Sha256,
): FilePlan<ScheduleState> {
  const text = given ?? newSchedule(NEVER, wanted.unit);
  const current = readSchedule(text);
  const ours = given === undefined ? undefined : stateOf(given, states, sha256);
  const known = ours === undefined ? (given === undefined ? [] : states) : [ours];
  const messages = given === undefined ? [`${SCHEDULE_FILE} was created`] : [];
  const goal = goalOf(current, ours?.owned ?? null, wanted);
  const isLeft = ours === undefined && known.some(({ owned }) => isCanceled(owned, wanted));
  if (isLeft) messages.push(left(SCHEDULE_FILE, 'the schedule', 'its variable'));

  if (plainCron(goal.cron) === plainCron(current)) {
    if (given === undefined) return { text, states: [{ sha256: sha256(text), owned: goal.owned }], messages };
    const owned = (state: ScheduleState) => (state === ours || isLeft ? goal.owned : state.owned);
    return { text: undefined, states: known.map((state) => ({ ...state, owned: owned(state) })), messages };
  }
  const next = withSchedule(text, goal.cron, wanted.unit);
  messages.push(`${SCHEDULE_FILE}: ${goal.why}`);
  return { text: next, states: [{ sha256: sha256(next), owned: goal.owned }], messages };
}

interface Goal {
  cron: string;
  owned: ScheduleState['owned'];
  why: string;
}

function isCanceled(owned: ScheduleState['owned'], { cron, cot, geochat }: WantedRetention): boolean {
  if (owned === null || cron !== undefined) return false;
  return owned === 'variable' || (cot ?? geochat) === undefined;
}

/** `owner` tells why Holdfast set the current schedule, if it did. */
function goalOf(current: string, owner: ScheduleState['owned'], { cron, cot, geochat, unit }: WantedRetention): Goal {
  if (cron !== undefined) {
    const wanted = unit === 'seconds' ? (springOf(cron).expression ?? cron) : cron;
    return { cron: wanted, owned: 'variable', why: `the schedule is ${wanted} (RETENTION_CRON)` };
  }
  const hasDays = (cot ?? geochat) !== undefined;
  if (hasDays && (current === NEVER || owner === 'variable'))
    return {
      cron: DEFAULT_SCHEDULE,
      owned: 'default',
      why: `the schedule is ${DEFAULT_SCHEDULE}, because days are set and RETENTION_CRON is not`,
    };
  if (hasDays || owner === null) return { cron: current, owned: hasDays ? owner : null, why: '' };
  return { cron: NEVER, owned: null, why: 'the schedule is off, because no variable is set any more' };
}

function stateOf<S extends { sha256: string }>(text: string, states: readonly S[], sha256: Sha256): S | undefined {
  const hash = sha256(text);
  return states.findLast((state) => state.sha256 === hash);
}

function left(file: string, what: string, variable: string): string {
  return `${file}: ${what} is unchanged although ${variable} is unset, because the file was edited since Holdfast wrote it`;
}

// Which retention would hold the size of the core's database below a budget, from what a row takes and how many come a day. It only
// says so: nothing is changed, and whole days are all that it names.

import { formatBytes } from '@holdfast/kit/format';
import { DAYS_VARIABLES, type OwnedType } from '@holdfast/kit/retention';

/** What is stored of one type. */
export interface StoredType {
  /** Its table, with indexes. */
  bytes: number;
  rows: number;
  rowsPerDay: number;
}

export interface PolicyFacts {
  databaseBytes: number;
  /** What the database may take. */
  budgetBytes: number;
  /** Of the whole database. */
  growthPerDay: number;
  types: Record<OwnedType, StoredType>;
  /** Days in force, where a schedule is; undefined when that is not known. */
  inForce: Record<OwnedType, number | null> | undefined;
  /** The unit of the core is set; without it no days may be. */
  unitIsSet: boolean;
  /** More than the core takes. */
  maxDays: number;
  /** What grew most besides events and chat, and what all of that gains a day. */
  otherTable: string | undefined;
  otherPerDay: number;
}

export interface HoldingPolicy {
  state: 'suggested' | 'in_force' | 'not_needed' | 'nothing_helps' | 'unknown';
  cot_days: number | null;
  geochat_days: number | null;
  /** At which the database settles with it. */
  holds_bytes: number | null;
  /** What the database may take before its disk reaches the warning. */
  budget_bytes: number | null;
  says: string;
}

/** Rows that are deleted leave room that is not used at once. */
const SLACK = 1.1;
/** Until the next run there is one day more. */
const BETWEEN_RUNS = 1;
/** Chat with less of it than this is not worth a policy. */
const CHAT_MATTERS = 0.05;
/** Where events are less of the growth than this, something else fills the disk. */
const EVENTS_MATTER = 0.3;
/** Events that come and go may be many: where what grows is mostly something else, no retention of events holds it. */
const OTHERS_MATTER = 0.5;
const NO_NEED_DAYS = 3650;

export function unknownPolicy(says: string): HoldingPolicy {
  return { state: 'unknown', cot_days: null, geochat_days: null, holds_bytes: null, budget_bytes: null, says };
}

export function policyThatHolds(facts: PolicyFacts): HoldingPolicy {
  const { growthPerDay, budgetBytes, inForce } = facts;
  const none: HoldingPolicy = { ...unknownPolicy(''), budget_bytes: Math.max(0, Math.round(budgetBytes)) };
  const share = shareOf(facts);
  if (growthPerDay <= 0) return { ...none, state: 'not_needed', says: 'the database does not grow' };
  const others = facts.otherPerDay > OTHERS_MATTER * growthPerDay;
  if (others || share.perDay <= 0 || share.perDay < EVENTS_MATTER * growthPerDay)
    return { ...none, state: 'nothing_helps', says: otherGrowth(facts) };
  const days = Math.floor((budgetBytes - share.fixed) / (SLACK * share.perDay)) - BETWEEN_RUNS;
  if (days > NO_NEED_DAYS) return { ...none, state: 'not_needed', says: 'ten years of events fit' };
  const held = heldDays(inForce, share.withChat);
  if (days >= 1 && held !== null && held <= days) {
    const holds = settledAt(share, held);
    const says = `${format(inForce?.cot ?? held, share.withChat ? (inForce?.geochat ?? held) : null)}, which is in force, holds the database at about ${formatBytes(holds)}`;
    return { ...none, state: 'in_force', ...daysOf(held, share.withChat), holds_bytes: holds, says };
  }
  if (days < 1)
    return {
      ...none,
      state: 'nothing_helps',
      says: 'no retention helps: not even one day of events fits; who sends them must send less, or the disk be larger',
    };
  return { ...none, ...suggested(facts, share, Math.min(days, facts.maxDays)) };
}

interface Share {
  /** What deleting events and chat does not change. */
  fixed: number;
  /** Bytes that they bring each day. */
  perDay: number;
  withChat: boolean;
}

function shareOf({ databaseBytes, types: { cot, geochat } }: PolicyFacts): Share {
  const [events, chat] = [perDayOf(cot), perDayOf(geochat)];
  const withChat = chat > CHAT_MATTERS * events;
  const deleted = cot.bytes + (withChat ? geochat.bytes : 0);
  return { withChat, perDay: events + (withChat ? chat : 0), fixed: Math.max(0, databaseBytes - deleted) };
}

function perDayOf({ bytes, rows, rowsPerDay }: StoredType): number {
  return rows <= 0 ? 0 : (bytes / rows) * rowsPerDay;
}

function settledAt({ fixed, perDay }: Share, days: number): number {
  return Math.round(fixed + SLACK * perDay * (days + BETWEEN_RUNS));
}

function suggested({ databaseBytes, unitIsSet }: PolicyFacts, share: Share, days: number): Partial<HoldingPolicy> {
  const holds = settledAt(share, days);
  const unit = unitIsSet ? '' : ' (with CORE_RETENTION_UNIT, which is not set)';
  const back = databaseBytes > holds ? '; what it takes beyond that now, only VACUUM FULL gives back to the disk' : '';
  const says = `${format(days, share.withChat ? days : null)}${unit} would hold the database at about ${formatBytes(holds)}${back}`;
  return { state: 'suggested', ...daysOf(days, share.withChat), holds_bytes: holds, says };
}

/** The longest that is kept; null where something that matters is kept for ever. */
function heldDays(inForce: PolicyFacts['inForce'], withChat: boolean): number | null {
  const days = [inForce?.cot ?? null, ...(withChat ? [inForce?.geochat ?? null] : [])];
  return days.includes(null) ? null : Math.max(...days.filter((each) => each !== null));
}

function daysOf(days: number, withChat: boolean): Pick<HoldingPolicy, 'cot_days' | 'geochat_days'> {
  return { cot_days: days, geochat_days: withChat ? days : null };
}

function format(cot: number, geochat: number | null): string {
  const words = `${DAYS_VARIABLES.cot}=${cot}`;
  return geochat === null ? words : `${words} and ${DAYS_VARIABLES.geochat}=${geochat}`;
}

function otherGrowth({ otherTable }: PolicyFacts): string {
  const which = otherTable === undefined ? 'what grows are not events' : `what grows most is the table ${otherTable}`;
  return `retention of events does not help: ${which}`;
}

// Computes the retention, in whole days, that would hold the core's database below a budget.
// It only suggests: nothing is changed.

import { formatBytes } from '@holdfast/kit/format';
import { DAYS_VARIABLES, type OwnedType } from '@holdfast/kit/retention';

/** The stored rows of one type. */
export interface StoredType {
  /** Its table, with indexes. */
  bytes: number;
  rows: number;
  rowsPerDay: number;
}

export interface PolicyFacts {
  databaseBytes: number;
  /** The size that the database may reach. */
  budgetBytes: number;
  /** Growth of the whole database. */
  growthPerDay: number;
  types: Record<OwnedType, StoredType>;
  /** Days in force, if there is a schedule; undefined if unknown. */
  inForce: Record<OwnedType, number | null> | undefined;
  /** True if the unit of the core is set; without it no days can be set. */
  unitIsSet: boolean;
  /** The most days that the core accepts. */
  maxDays: number;
  /** The table that grew most besides events and chat, and the daily growth of all of those. */
  otherTable: string | undefined;
  otherPerDay: number;
}

export interface HoldingPolicy {
  state: 'suggested' | 'in_force' | 'not_needed' | 'nothing_helps' | 'unknown';
  cot_days: number | null;
  geochat_days: number | null;
  /** The size at which the database settles with it. */
  holds_bytes: number | null;
  /** The size of the database at which its disk reaches the warning. */
  budget_bytes: number | null;
  says: string;
}

/** Deleted rows leave space that is not reused at once. */
const SLACK = 1.1;
/** Until the next run there is one more day of data. */
const BETWEEN_RUNS = 1;
/** Chat with a smaller share than this needs no policy. */
const CHAT_MATTERS = 0.05;
/** If events are a smaller share of the growth than this, something else fills the disk. */
const EVENTS_MATTER = 0.3;
/**
 * If other tables are a larger share of the growth than this, no retention of events holds the
 * size.
 */
const OTHERS_MATTER = 0.5;
const NO_NEED_DAYS = 3650;

export function unknownPolicy(says: string): HoldingPolicy {
  return { state: 'unknown', cot_days: null, geochat_days: null, holds_bytes: null, budget_bytes: null, says };
}

export function policyThatHolds(facts: PolicyFacts): HoldingPolicy {
  const { growthPerDay, budgetBytes, inForce } = facts;
  const none: HoldingPolicy = { ...unknownPolicy(''), budget_bytes: Math.max(0, Math.round(budgetBytes)) };
  const share = shareOf(facts);
  if (growthPerDay <= 0) return { ...none, state: 'not_needed', says: 'the database is not growing' };
  const others = facts.otherPerDay > OTHERS_MATTER * growthPerDay;
  if (others || share.perDay <= 0 || share.perDay < EVENTS_MATTER * growthPerDay)
    return { ...none, state: 'nothing_helps', says: otherGrowth(facts) };
  const days = Math.floor((budgetBytes - share.fixed) / (SLACK * share.perDay)) - BETWEEN_RUNS;
  if (days > NO_NEED_DAYS) return { ...none, state: 'not_needed', says: 'ten years of events fit' };
  const held = heldDays(inForce, share.withChat);
  if (days >= 1 && held !== null && held <= days) {
    const holds = settledAt(share, held);
    const says = `${format(inForce?.cot ?? held, share.withChat ? (inForce?.geochat ?? held) : null)} (in force) holds the database at about ${formatBytes(holds)}`;
    return { ...none, state: 'in_force', ...daysOf(held, share.withChat), holds_bytes: holds, says };
  }
  if (days < 1)
    return {
      ...none,
      state: 'nothing_helps',
      says: 'no retention helps: not even one day of events fits; reduce the senders or enlarge the disk',
    };
  return { ...none, ...suggested(facts, share, Math.min(days, facts.maxDays)) };
}

interface Share {
  /** Bytes that deleting events and chat does not free. */
  fixed: number;
  /** Bytes that they add per day. */
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
  const back = databaseBytes > holds ? '; only VACUUM FULL frees the space already used beyond that' : '';
  const says = `${format(days, share.withChat ? days : null)}${unit} would hold the database at about ${formatBytes(holds)}${back}`;
  return { state: 'suggested', ...daysOf(days, share.withChat), holds_bytes: holds, says };
}

/** The longest retention; null if a type that matters is kept forever. */
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
  const which = otherTable === undefined ? 'events are not what grows' : `the table ${otherTable} grows most`;
  return `retention of events does not help: ${which}`;
}

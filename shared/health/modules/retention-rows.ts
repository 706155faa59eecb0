// Checks the core's tables for rows that the last run should have deleted, the size of the first
// run, and rows that would make the run of a release fail.

import { messageOf } from '@holdfast/kit/app-error';
import { formatUtc } from '@holdfast/kit/format';
import {
  LARGE_RUN_ROWS,
  limitsAt,
  type Retained,
  RETAINED,
  type RetentionLimits,
  type RetentionPolicy,
  type RetentionUnit,
} from '@holdfast/kit/retention';
import { HOUR_MS } from '@holdfast/kit/time';
import { coreOfUnit } from '../../retention/in-force.ts';
import type { ExpiredReferences, LeftRows, RetentionFacts, RetentionRun } from '../../retention/port.ts';
import { type PreviewDeps, previewRetention } from '../../retention/preview.ts';
import type { Finding } from '../evaluate.ts';
import { within } from '../module.ts';

export interface RowsQuestion {
  policy: RetentionPolicy;
  unit: RetentionUnit;
  exemptKeywords: readonly string[];
  /** The limits of the last finished run, if its work is to be checked. */
  checked: RetentionLimits | undefined;
  /** True if the first run with this policy is still to come. */
  isFirstAhead: boolean;
}

export type NotInTime = Retained | 'references';

export interface SeenRows {
  /** Null if nothing was checked. */
  overAge: Retained[] | null;
  firstRun: { rows: number; exact: boolean } | null;
  references: ExpiredReferences | null;
  /** What could not be checked in time. */
  notInTime: NotInTime[];
  /** Why something could not be read; null if all was. */
  problem: string | null;
}

export type RowsDeps = PreviewDeps & { retentionFacts: Pick<RetentionFacts, 'left' | 'references'> };

/** Each figure that takes longer is left out, or estimated. */
const FIGURE_MS = 2_000;
const ALL_MS = 12_000;

export const NO_ROWS: SeenRows = { overAge: null, firstRun: null, references: null, notInTime: [], problem: null };

export async function readRows(deps: RowsDeps, question: RowsQuestion): Promise<SeenRows> {
  const seen = { ...NO_ROWS };
  const look = async (work: Promise<void>): Promise<void> =>
    work.catch((error: unknown) => {
      seen.problem ??= messageOf(error).replace(/\.$/, '');
    });
  const all = Promise.all([
    look(
      overAge(deps, question).then((rows) => {
        seen.overAge = rows?.left ?? null;
        seen.notInTime = [...(rows?.unknown ?? []), ...seen.notInTime];
      }),
    ),
    look(firstRun(deps, question).then((run) => void (seen.firstRun = run))),
    look(
      references(deps, question).then((found) => {
        seen.references = found ?? null;
        if (found === undefined) seen.notInTime = [...seen.notInTime, 'references'];
      }),
    ),
  ]);
  await look(within(ALL_MS, all).then(() => undefined));
  return { ...seen };
}

/** The log of a release shows the start of a run, but never its end. */
const LOGGED_RUN_MS = 6 * HOUR_MS;
const CLOCKS_MS = 60_000;
/** Without missions: a release deletes only those that its own account can see. */
const OF_LOGGED_RUN: readonly Retained[] = ['cot', 'geochat', 'files'];

/**
 * The limits of a finished run, for types that had days then and have them now; undefined if not to
 * be checked.
 */
export function limitsToCheck(
  run: RetentionRun,
  policy: RetentionPolicy,
  { inForceSince, now }: { inForceSince: string | null; now: Date },
): RetentionLimits | undefined {
  if (run.source === 'core')
    return Object.fromEntries(Object.entries(run.limits).filter(([type]) => policy[type as Retained] !== null));
  const begunMs = Date.parse(run.startedAt);
  const wasInForce = inForceSince !== null && Date.parse(inForceSince) <= begunMs;
  if (!wasInForce || now.getTime() - begunMs < LOGGED_RUN_MS) return undefined;
  const limits = limitsAt(policy, new Date(begunMs - CLOCKS_MS));
  return Object.fromEntries(Object.entries(limits).filter(([type]) => OF_LOGGED_RUN.includes(type as Retained)));
}

async function overAge(deps: RowsDeps, { unit, exemptKeywords, checked }: RowsQuestion): Promise<LeftRows | null> {
  if (checked === undefined) return null;
  if (Object.keys(checked).length === 0) return { left: [], unknown: [] };
  return deps.retentionFacts.left({ core: coreOfUnit(unit), limits: checked, exemptKeywords, withinMs: FIGURE_MS });
}

async function firstRun(deps: RowsDeps, { policy, unit, isFirstAhead }: RowsQuestion): Promise<SeenRows['firstRun']> {
  if (!isFirstAhead) return null;
  const { rows, exact } = await previewRetention(deps, { policy, unit, withinMs: FIGURE_MS });
  return { rows, exact };
}

/** Files have no such references. */
const EVENTS = ['cot', 'geochat', 'missions'] as const;

/** Null if they do not matter, undefined if they could not be counted in time. */
async function references(
  deps: RowsDeps,
  { policy, unit }: RowsQuestion,
): Promise<ExpiredReferences | null | undefined> {
  if (coreOfUnit(unit) !== 'release' || EVENTS.every((type) => policy[type] === null)) return null;
  const limits = limitsAt(policy, new Date(await deps.retentionFacts.now()));
  return deps.retentionFacts.references({ limits, withinMs: FIGURE_MS });
}

export function judgeOverAge(types: readonly Retained[] | null): Finding[] {
  return RETAINED.filter((type) => types?.includes(type)).map((type) => ({
    kind: 'fact',
    status: 'warning',
    says: `rows of ${type} are older than the limit of the last successful run: it left them, or they came later (a deleted mission, a restored backup)`,
  }));
}

/** Findings about checks that ran out of time. */
export function judgeNotInTime(what: readonly NotInTime[]): Finding[] {
  const note = (says: string): Finding => ({ kind: 'fact', status: 'note', says });
  const types = RETAINED.filter((type) => what.includes(type));
  const found: Finding[] = [];
  if (types.length > 0) found.push(note(`couldn't check ${types.join(', ')} in time for rows that the last run left`));
  if (what.includes('references'))
    found.push(
      note("couldn't check cot_image, cot_thumbnail and cot_link in time for rows that make the next run fail"),
    );
  return found;
}

export function judgeFirstRun(rows: number | null, exact: boolean, nextRun: string | null): Finding[] {
  if (rows === null || rows <= LARGE_RUN_ROWS) return [];
  const when = nextRun === null ? '' : `, at ${formatUtc(nextRun)},`;
  const says = `the first run with these days${when} will delete ${exact ? '' : 'about '}${rows} rows; check GET /api/retention/preview first`;
  return [{ kind: 'fact', status: 'note', says }];
}

export function judgeReferences(references: ExpiredReferences | null): Finding[] {
  const { images = 0, thumbnails = 0, links = 0 } = references ?? {};
  if (images + thumbnails + links === 0) return [];
  const says = `the next run will fail: rows in cot_image (${images}), cot_thumbnail (${thumbnails}), cot_link (${links}) refer to events that it deletes`;
  return [{ kind: 'fact', status: 'warning', says }];
}

// Previews what a run would delete: counted where that is quick, else estimated from stored rows
// per day. Without those, the estimate is the size of the table.

import { AppError, type FieldError } from '@holdfast/kit/app-error';
import {
  asOfCutoff,
  cutoffAt,
  isKeepingAll,
  KEEP_ALL,
  limitsAt,
  NEVER,
  RETAINED,
  type Retained,
  type RetentionLimits,
  type RetentionPolicy,
  type RetentionUnit,
} from '@holdfast/kit/retention';
import { DAY_MS } from '@holdfast/kit/time';
import { withTimeout } from '@holdfast/kit/timeout';
import type { CoreRetention } from '../core/port.ts';
import { coreOfUnit, retentionInForce } from './in-force.ts';
import type { DayCount, ExpiredRows, RetentionHistory, RetentionFacts, RetentionFiles } from './port.ts';
import { daysFault, formatDays, estimatedSeconds, type TimedRun } from './rules.ts';
import { because, knownUnit, PACKAGES_IGNORED, type RetentionVariables } from './state.ts';

export interface PreviewDeps {
  retentionFacts: Pick<RetentionFacts, 'expired' | 'now'>;
  retentionFiles: Pick<RetentionFiles, 'read'>;
  retentionHistory: Pick<RetentionHistory, 'days'>;
}

export interface PreviewOrder {
  policy: RetentionPolicy;
  unit: RetentionUnit;
  /**
   * The limit of the type with the fewest days; default: from now, by the clock of the database.
   */
  cutoff?: Date | undefined;
  /** Figures that take longer are estimated. */
  withinMs: number;
}

export interface PreviewedType {
  limit: string;
  rows: number;
  exact: boolean;
  /** For missions: events and files deleted with them, besides `rows`. */
  included: { cot: number; files: number };
  bytes: number;
  oldest: string | null;
  newest: string | null;
}

export interface RetentionPreview {
  /** ISO 8601, also of `limits`. */
  cutoff: string;
  limits: RetentionLimits;
  types: Partial<Record<Retained, PreviewedType>>;
  /** All rows to delete, including those deleted with missions. */
  rows: number;
  /** False if one of the figures is estimated. */
  exact: boolean;
}

export async function previewRetention(deps: PreviewDeps, order: PreviewOrder): Promise<RetentionPreview> {
  const { policy, unit, withinMs } = order;
  const asOf =
    order.cutoff === undefined ? new Date(await deps.retentionFacts.now()) : asOfCutoff(policy, order.cutoff);
  const limits = limitsAt(policy, asOf);
  const { exemptKeywords } = await deps.retentionFiles.read();
  const expired = await deps.retentionFacts.expired({ core: coreOfUnit(unit), limits, exemptKeywords, withinMs });
  const types: Partial<Record<Retained, PreviewedType>> = {};
  for (const type of RETAINED) {
    const [limit, found] = [limits[type], expired[type]];
    if (limit !== undefined && found !== undefined) types[type] = await previewed(deps, type, limit, found);
  }
  const all = Object.values(types);
  const rows = all.reduce((sum, each) => sum + each.rows + each.included.cot + each.included.files, 0);
  const cutoff = cutoffAt(policy, asOf).toISOString();
  return { cutoff, limits, types, rows, exact: all.every(({ exact }) => exact) };
}

async function previewed(deps: PreviewDeps, type: Retained, limit: string, found: ExpiredRows): Promise<PreviewedType> {
  const rows = found.rows ?? (await estimated(deps, type, limit, found.atMost ?? 0));
  return {
    limit,
    rows,
    exact: found.rows !== null,
    included: found.included ?? { cot: 0, files: 0 },
    bytes: Math.round(found.bytes ?? rows * (found.bytesPerRow ?? 0)),
    oldest: found.oldest,
    newest: found.newest,
  };
}

/**
 * Days are counted oldest first, and those without rows are missing, so the last one shows how far
 * the count got.
 */
async function estimated(deps: PreviewDeps, type: Retained, limit: string, atMost: number): Promise<number> {
  if (type !== 'cot' && type !== 'geochat') return atMost;
  const { days } = await deps.retentionHistory.days(type);
  const last = days.at(-1)?.day;
  return last === undefined || last < limit.slice(0, 10) ? atMost : rowsBefore(days, limit);
}

/** Counts the day of the limit in proportion. */
function rowsBefore(days: readonly DayCount[], limit: string): number {
  const limitMs = Date.parse(limit);
  const sum = days.reduce((total, { day, rows }) => {
    const share = (limitMs - Date.parse(`${day}T00:00:00.000Z`)) / DAY_MS;
    return total + rows * Math.min(1, Math.max(0, share));
  }, 0);
  return Math.round(sum);
}

/**
 * The dependencies of a preview within one second; notes name everything that was not available in
 * time.
 */
export interface QuickPreviewDeps {
  coreRetention: Pick<CoreRetention, 'policy' | 'schedule'>;
  retentionFiles: Pick<RetentionFiles, 'read'>;
  retentionFacts: Pick<RetentionFacts, 'expired' | 'now'>;
  retentionHistory: Pick<RetentionHistory, 'days' | 'runs'>;
  now: () => Date;
}

export interface QuickPreviewOrder {
  /** Default: the one in force. */
  policy?: RetentionPolicy | undefined;
  unit: RetentionUnit;
  cutoff?: Date | undefined;
}

export interface QuickPreview extends Omit<RetentionPreview, 'types'> {
  types: Partial<Record<Retained, PreviewedType & { estimated_seconds: number }>>;
  notes: string[];
}

/** Time limit of each figure. */
const FIGURES_MS = 700;
/** Extra time for the database to answer. */
const LATE_MS = 60;
/** Time limit of everything needed before the figures, requested at once. */
const BEFORE_MS = 200;
/** Time limit of data needed only after the figures. */
const HISTORY_TIMEOUT_MS = BEFORE_MS + FIGURES_MS;
const LAST_RUNS = 20;

/** Rejects with `unavailable` if the database of the core is unavailable. */
export async function quickPreview(deps: QuickPreviewDeps, order: QuickPreviewOrder): Promise<QuickPreview> {
  const { unit, cutoff } = order;
  const notes: string[] = [];
  const requested = requestedTogether(deps, notes, cutoff === undefined);
  const policy = order.policy ?? (await policyInForce(deps, requested.files, unit, notes));
  const preview = await previewRetention(requested.deps, { policy, unit, cutoff, withinMs: FIGURES_MS });
  const [runs, keywords] = await Promise.all([requested.runs, requested.keywords]);
  const types: QuickPreview['types'] = {};
  for (const type of RETAINED) {
    const of = preview.types[type];
    if (of === undefined) continue;
    const exact = of.exact && (keywords !== undefined || !isOfKeywords(type));
    types[type] = { ...of, exact, estimated_seconds: estimatedSeconds(type, of.rows, runs) };
  }
  const exact = Object.values(types).every((each) => each.exact);
  return { ...preview, types, exact, notes: [...notes, ...oddities(policy, unit, exact)] };
}

function isOfKeywords(type: Retained): boolean {
  return type === 'files' || type === 'missionpackages';
}

function oddities(policy: RetentionPolicy, unit: RetentionUnit, exact: boolean): string[] {
  const notes: string[] = [];
  if (isKeepingAll(policy)) notes.push('No days are set, so a run deletes nothing.');
  if (!exact) notes.push('Figures with "exact": false are estimates. Counting takes too long, or is not possible now.');
  if (unit === 'seconds' && policy.missionpackages !== null) notes.push(PACKAGES_IGNORED);
  return notes;
}

interface Request {
  /** For the preview: data already requested, or its substitute. */
  deps: PreviewDeps;
  files: Pick<RetentionFiles, 'read'>;
  runs: Promise<readonly TimedRun[]>;
  /** Undefined if unknown. */
  keywords: Promise<string[] | undefined>;
}

/** Starts all requests except the figures concurrently. */
function requestedTogether(deps: QuickPreviewDeps, notes: string[], wantsClock: boolean): Request {
  const { retentionHistory: store, retentionFacts: facts } = deps;
  const orElse =
    <T>(value: T, what: string) =>
    (error: unknown): T => {
      if (!(error instanceof AppError)) throw error;
      notes.push(`${what}: ${because(error)}.`);
      return value;
    };
  const files = early(withTimeout(BEFORE_MS, 'The disk with the retention files', () => deps.retentionFiles.read()));
  const keywords = files.then(
    ({ exemptKeywords }) => exemptKeywords,
    orElse(undefined, 'Keywords that keep files are unknown, so fewer files may be deleted'),
  );
  const fromHistory = <T>(work: () => Promise<T>): Promise<T> =>
    early(withTimeout(HISTORY_TIMEOUT_MS, 'Our own database', work));
  const days = { cot: fromHistory(() => store.days('cot')), geochat: fromHistory(() => store.days('geochat')) };
  const runs = fromHistory(() => store.runs(0, LAST_RUNS)).then(
    ({ results }): readonly TimedRun[] => results,
    orElse([], 'The duration is estimated without the last runs'),
  );
  const clock = (): Promise<string> => withTimeout(BEFORE_MS, 'The database of the core', () => facts.now());
  const ownClock = orElse(deps.now().toISOString(), 'Ages are computed with the clock of Holdfast');
  const now = wantsClock ? early(clock().catch(ownClock)) : undefined;
  return {
    files: { read: () => files },
    runs: early(runs),
    keywords: early(keywords),
    deps: {
      retentionHistory: {
        days: (type) => days[type].catch(orElse(NO_DAYS, `Rows of ${type} per day are unknown`)),
      },
      retentionFiles: {
        read: async () => ({ policy: KEEP_ALL, schedule: NEVER, exemptKeywords: (await keywords) ?? [] }),
      },
      retentionFacts: {
        now: () => now ?? clock(),
        expired: (question) =>
          withTimeout(FIGURES_MS + LATE_MS, 'The database of the core', () => facts.expired(question)),
      },
    },
  };
}

const NO_DAYS = { days: [] };

/** Marks a rejection as handled; those who await the work later still see it. */
function early<T>(work: Promise<T>): Promise<T> {
  work.catch(() => undefined);
  return work;
}

async function policyInForce(
  { coreRetention }: QuickPreviewDeps,
  files: Pick<RetentionFiles, 'read'>,
  unit: RetentionUnit,
  notes: string[],
): Promise<RetentionPolicy> {
  const ofCore = <T>(work: () => Promise<T>): Promise<T> => early(withTimeout(BEFORE_MS, 'The core', work));
  const quick = { policy: () => ofCore(() => coreRetention.policy()), schedule: async () => NEVER };
  const { policy, coreProblem } = await retentionInForce({ coreRetention: quick, retentionFiles: files }, unit);
  if (coreProblem !== undefined) notes.push(`The policy was read from the files: ${coreProblem}`);
  return policy;
}

/** The input of GET /api/retention/preview. */
export interface PreviewInput {
  /** Days as text; if any is set, exactly these types are previewed. */
  days: Partial<Record<Retained, string | undefined>>;
  /** ISO 8601. */
  cutoff: string | undefined;
}

export type PreviewView = Omit<QuickPreview, 'limits'> & { unit: RetentionUnit };

/** Rejects with `unavailable` if the database of the core is unavailable. */
export async function showPreview(
  deps: QuickPreviewDeps & { settings: RetentionVariables },
  { days, cutoff }: PreviewInput,
): Promise<PreviewView> {
  const unit = knownUnit(deps);
  const policy = policyGiven(days, unit);
  const moment = cutoff === undefined ? undefined : new Date(cutoff);
  const { limits: _, ...preview } = await quickPreview(deps, { policy, unit, cutoff: moment });
  return { ...preview, unit };
}

export function policyGiven(days: PreviewInput['days'], unit: RetentionUnit): RetentionPolicy | undefined {
  const given = RETAINED.filter((type) => days[type] !== undefined);
  const fields: FieldError[] = [];
  const policy: RetentionPolicy = { ...KEEP_ALL };
  for (const type of given) {
    const text = days[type] ?? '';
    const value = /^\d{1,9}$/.test(text) ? Number(text) : Number.NaN;
    if (daysFault(value, unit) === undefined) policy[type] = value;
    else fields.push({ path: type, message: `must be ${formatDays(unit)}, not ${JSON.stringify(text.slice(0, 40))}` });
  }
  if (fields.length > 0)
    throw new AppError('invalid', fields.map(({ path, message }) => `${path}: ${message}`).join('; '), { fields });
  return given.length === 0 ? undefined : policy;
}

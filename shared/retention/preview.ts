// What a run with a policy would delete: counted where that is quick, else from the rows per day that are remembered. Where those
// are missing too, as many as the table has at most.

import {
  asOfCutoff,
  cutoffAt,
  limitsAt,
  RETAINED,
  type Retained,
  type RetentionLimits,
  type RetentionPolicy,
  type RetentionUnit,
} from '@holdfast/kit/retention';
import { DAY_MS } from '@holdfast/kit/time';
import { coreOfUnit } from './in-force.ts';
import type { DayCount, DoomedRows, RetentionBook, RetentionFacts, RetentionFiles } from './port.ts';

export interface PreviewDeps {
  retentionFacts: Pick<RetentionFacts, 'doomed' | 'now'>;
  retentionFiles: Pick<RetentionFiles, 'read'>;
  retentionBook: Pick<RetentionBook, 'days'>;
}

export interface PreviewOrder {
  policy: RetentionPolicy;
  unit: RetentionUnit;
  /** Of the type with the fewest days; default: counted from now by the clock of the database. */
  cutoff?: Date | undefined;
  /** Each figure that takes longer is estimated. */
  withinMs: number;
}

export interface PreviewedType {
  limit: string;
  rows: number;
  exact: boolean;
  /** Of missions: events and files that go with them, besides `rows`. */
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
  /** Everything that goes, with what goes with missions. */
  rows: number;
  /** False when one of the figures is estimated. */
  exact: boolean;
}

export async function previewRetention(deps: PreviewDeps, order: PreviewOrder): Promise<RetentionPreview> {
  const { policy, unit, withinMs } = order;
  const asOf =
    order.cutoff === undefined ? new Date(await deps.retentionFacts.now()) : asOfCutoff(policy, order.cutoff);
  const limits = limitsAt(policy, asOf);
  const { exemptKeywords } = await deps.retentionFiles.read();
  const doomed = await deps.retentionFacts.doomed({ core: coreOfUnit(unit), limits, exemptKeywords, withinMs });
  const types: Partial<Record<Retained, PreviewedType>> = {};
  for (const type of RETAINED) {
    const [limit, found] = [limits[type], doomed[type]];
    if (limit !== undefined && found !== undefined) types[type] = await previewed(deps, type, limit, found);
  }
  const all = Object.values(types);
  const rows = all.reduce((sum, each) => sum + each.rows + each.included.cot + each.included.files, 0);
  const cutoff = cutoffAt(policy, asOf).toISOString();
  return { cutoff, limits, types, rows, exact: all.every(({ exact }) => exact) };
}

async function previewed(deps: PreviewDeps, type: Retained, limit: string, found: DoomedRows): Promise<PreviewedType> {
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

/** Days are counted oldest first, and those without rows are missing: only the last one tells how far it has come. */
async function estimated(deps: PreviewDeps, type: Retained, limit: string, atMost: number): Promise<number> {
  if (type !== 'cot' && type !== 'geochat') return atMost;
  const { days } = await deps.retentionBook.days(type);
  const last = days.at(-1)?.day;
  return last === undefined || last < limit.slice(0, 10) ? atMost : rowsBefore(days, limit);
}

/** Of the day of the limit itself, the part that lies before it. */
function rowsBefore(days: readonly DayCount[], limit: string): number {
  const limitMs = Date.parse(limit);
  const sum = days.reduce((total, { day, rows }) => {
    const share = (limitMs - Date.parse(`${day}T00:00:00.000Z`)) / DAY_MS;
    return total + rows * Math.min(1, Math.max(0, share));
  }, 0);
  return Math.round(sum);
}

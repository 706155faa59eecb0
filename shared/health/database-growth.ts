// What the module `database` shows of growth: how fast, until when, who fills it, which tables grew, and what would hold the size.
// Whoever asks a live module pays for none of it most of the time: it is remembered, some of it for an hour.

import { DAY_MS } from '../domain/forecast.ts';
import { type HoldingPolicy, unknownPolicy } from '../domain/holding-policy.ts';
import { messageOf } from '../domain/thrown.ts';
import type { Thresholds } from '../domain/thresholds.ts';
import type { Fillers } from '../ports/growth-facts.ts';
import type { Monitored } from '../ports/monitored.ts';
import { DAY_SECONDS, growthInWords, PACE_SECONDS, seenFillers } from '../verbs/growth-fillers.ts';
import { holdingPolicy } from '../verbs/growth-policy.ts';
import {
  figuresOf,
  type GrowthFigures,
  type GrownTable,
  grownTables,
  type GrowthReport,
  growthReport,
} from '../verbs/growth-report.ts';
import { inTime } from '../verbs/in-time.ts';

export interface DatabaseGrowth extends Omit<GrowthFigures, 'basis' | 'samples_since' | 'reason'> {
  growth_basis: GrowthFigures['basis'];
  growth_since: string | null;
  /** Why there is no date. */
  growth_reason: string | null;
  /** Of the last day, or of the last ten minutes where their pace counts; null where they are not known. */
  fillers: Fillers | null;
  fillers_problem: string | null;
  policy: HoldingPolicy;
  /** Those that grew most in the last seven days. */
  grown_tables: GrownTable[];
}

interface Slow {
  policy: HoldingPolicy;
  tables: GrownTable[];
  fillers: Fillers | null;
  fillersProblem: string | null;
}

/** With the other questions of the module it stays within its time. */
const WITHIN_MS = 7_000;
const SLOW_KEPT_MS = 240_000;
const DAY_FILLERS_KEPT_MS = DAY_MS / 24;

const remembered = new WeakMap<object, { atMs: number; basis: GrowthFigures['basis']; slow: Slow }>();

/** Never rejects. */
export async function databaseGrowth(monitored: Monitored, thresholds: Thresholds): Promise<DatabaseGrowth> {
  try {
    return await inTime(WITHIN_MS, "Holdfast's own database", async () => {
      const report = await growthReport(monitored);
      return shown(figuresOf(report.database), await slowly(monitored, report, thresholds));
    });
  } catch (error) {
    const reason = `growth is not known: ${messageOf(error).replace(/\.$/, '')}`;
    const none = { growth: undefined, full: undefined, reason };
    return shown(figuresOf(none), { ...NOTHING, policy: unknownPolicy(reason) });
  }
}

const NOTHING: Slow = { policy: unknownPolicy(''), tables: [], fillers: null, fillersProblem: null };

async function slowly(monitored: Monitored, report: GrowthReport, thresholds: Thresholds): Promise<Slow> {
  const nowMs = monitored.now().getTime();
  const basis = report.database.growth?.basis ?? 'none';
  const known = remembered.get(monitored.growthBook);
  const isNew = known !== undefined && nowMs >= known.atMs && nowMs - known.atMs < SLOW_KEPT_MS;
  if (isNew && known.basis === basis) return known.slow;
  const slow = await readSlow(monitored, report, thresholds);
  remembered.set(monitored.growthBook, { atMs: nowMs, basis, slow });
  return slow;
}

async function readSlow(monitored: Monitored, report: GrowthReport, thresholds: Thresholds): Promise<Slow> {
  const isPace = report.database.growth?.basis === 'pace';
  const [policy, tables, { fillers, problem }] = await Promise.all([
    holdingPolicy(monitored, report, Number(thresholds.modules['disk']?.['warning'])),
    report.problem === null ? grownTables(monitored).catch(() => []) : [],
    isPace
      ? seenFillers(monitored, PACE_SECONDS, SLOW_KEPT_MS)
      : seenFillers(monitored, DAY_SECONDS, DAY_FILLERS_KEPT_MS),
  ]);
  return { policy, tables, fillers, fillersProblem: problem };
}

function shown({ basis, samples_since, reason, ...figures }: GrowthFigures, slow: Slow): DatabaseGrowth {
  return {
    ...figures,
    growth_basis: basis,
    growth_since: samples_since,
    growth_reason: reason,
    fillers: slow.fillers,
    fillers_problem: slow.fillersProblem,
    policy: slow.policy,
    grown_tables: slow.tables,
  };
}

/** For the message when all is well: `; it grows by 1.2 GB a day`. */
export function growsInWords({ growth_bytes_per_day: bytes, growth_reason: reason }: DatabaseGrowth): string {
  if (bytes !== null) return bytes > 0 ? `; it grows by ${growthInWords(bytes)}` : '; it does not grow';
  return reason?.startsWith('growth is not known') === true ? `; ${reason}` : '';
}

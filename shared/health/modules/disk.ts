// Checks how full each file system is, in bytes and inodes, and when it will be full.

import { formatBytes, counted } from '@holdfast/kit/format';
import { capitalised, ended } from '@holdfast/kit/text';
import { DAY_SECONDS } from '@holdfast/kit/time';
import { formatFull } from '../../database/forecast.ts';
import { formatFillers, PACE_SECONDS, seenFillers } from '../../database/growth/fillers.ts';
import { holdingPolicy } from '../../database/growth/policy.ts';
import {
  figuresOf,
  type GrowthFigures,
  type GrowthReport,
  growthReport,
  type MountForecast,
} from '../../database/growth/report.ts';
import type { DiskUse } from '../../host/port.ts';
import type { ModuleThresholds, Thresholds } from '../../settings/status.ts';
import { type Finding, limitsOf } from '../evaluate.ts';
import { healthModule } from '../module.ts';
import type { Monitored } from '../monitored.ts';

/**
 * The forecast of one file system: by days in the long run, or by the pace of the last minutes for
 * the database's.
 */
export interface MountGrowth extends GrowthFigures {
  /** When it will be full, in words; null if there is no date. */
  full_in: string | null;
  /**
   * What fills it and which retention would help; null if it is not the database's, or not urgent.
   */
  filled_by: string | null;
  /**
   * True if the current retention keeps the database below the warning, however fast it grows now.
   */
  held_by_retention: boolean;
}

interface FilledBy {
  says: string;
  held: boolean;
}

interface DiskGrowth {
  of: (mount: string) => MountGrowth;
  problem: string | null;
}

/** How long the senders are cached. */
const FILLERS_KEPT_MS = 50_000;
/** A forecast whose latest date is this many times the earliest is never critical. */
const WIDE = 4;
const PACE_HOURS = { warning: 24, critical: 3 };
const NOT_SAMPLED: GrowthFigures = {
  growth_bytes_per_day: null,
  full_in_days: null,
  full_in_days_earliest: null,
  full_in_days_latest: null,
  basis: 'none',
  samples_since: null,
  reason: 'this file system has no samples yet',
};

const NO_DATE = { full_in: null, filled_by: null, held_by_retention: false };

/** Never rejects. */
export async function diskGrowth(monitored: Monitored, thresholds: Thresholds): Promise<DiskGrowth> {
  const report = await growthReport(monitored);
  const own = thresholds.modules['disk'];
  const holding = report.mounts.find(({ holdsDatabase }) => holdsDatabase);
  const tells = holding !== undefined && own !== undefined && isSoon(holding, own);
  const filledBy = tells ? await whoFills(monitored, report, holding, Number(own['warning'])) : null;
  const unsampled = report.mounts.length === 0 ? report.database.reason : NOT_SAMPLED.reason;
  const of = (mount: string): MountGrowth => {
    const found = report.mounts.find((each) => each.mount === mount);
    if (found === undefined) return { ...NOT_SAMPLED, reason: unsampled, ...NO_DATE };
    const { full } = found;
    const reported = found === holding ? filledBy : null;
    return {
      ...figuresOf(found),
      full_in: full === undefined ? null : formatFull(full),
      filled_by: reported?.says ?? null,
      held_by_retention: reported?.held ?? false,
    };
  };
  return { of, problem: report.problem };
}

function isSoon({ growth, full }: MountForecast, own: ModuleThresholds): boolean {
  return full !== undefined && (growth?.basis === 'pace' || full.days <= limitsOf(own, 'days_').warning);
}

async function whoFills(
  monitored: Monitored,
  report: GrowthReport,
  { growth }: MountForecast,
  warningPct: number,
): Promise<FilledBy> {
  const perDay = growth?.bytesPerDay ?? 0;
  const ofDatabase = report.database.growth?.bytesPerDay ?? 0;
  if (ofDatabase < perDay * MOSTLY)
    return {
      says: `mostly not the database, which grows ${formatBytes(Math.max(0, ofDatabase))} a day`,
      held: false,
    };
  const seconds = growth?.basis === 'pace' ? PACE_SECONDS : DAY_SECONDS;
  const [fillers, policy] = await Promise.all([
    seenFillers(monitored, seconds, FILLERS_KEPT_MS),
    holdingPolicy(monitored, report, warningPct),
  ]);
  return { says: `${formatFillers(fillers, ofDatabase)}; ${policy.says}`, held: policy.state === 'in_force' };
}

/** The fraction of a disk's growth from which the database counts as its cause. */
const MOSTLY = 0.5;

export function judgeGrowth(mount: string, growth: MountGrowth, thresholds: ModuleThresholds): Finding[] {
  const { full_in_days: days, full_in: words } = growth;
  if (days === null || words === null) return [];
  const why = growth.filled_by === null ? '' : `: ${growth.filled_by}`;
  if (growth.basis === 'pace')
    return judgePace(`${mount}: full in ${words} at the pace of the last 10 minutes${why}`, days);
  const limits = limitsOf(thresholds, 'days_');
  const rate = `growing ${formatBytes(growth.growth_bytes_per_day ?? 0)} a day`;
  const says = `full in ${words}, ${rate}${why}`;
  if (growth.held_by_retention && days <= limits.warning)
    return [{ kind: 'fact', status: days <= limits.critical ? 'warning' : 'note', says: `${mount}: ${says}` }];
  return [
    {
      kind: 'figure',
      subject: mount,
      value: days,
      limits: isWide(growth) ? { ...limits, critical: -1 } : limits,
      says,
      format: (limit) => `${limit} days`,
      lowerIsWorse: true,
    },
  ];
}

/** A fact, so that the sender that fills the disk is named before all figures. */
function judgePace(says: string, days: number): Finding[] {
  const hours = days * 24;
  if (hours > PACE_HOURS.warning) return [];
  return [{ kind: 'fact', status: hours <= PACE_HOURS.critical ? 'critical' : 'warning', says }];
}

function isWide({ full_in_days_earliest: earliest, full_in_days_latest: latest }: GrowthFigures): boolean {
  return latest === null || latest > WIDE * (earliest ?? 0);
}

/** Ends the message of an OK module. */
export function fullWhen(mounts: readonly (MountGrowth & { mount: string })[], problem: string | null): string {
  if (problem !== null) return ` ${ended(capitalised(problem))}`;
  const first = mounts
    .filter(({ full_in_days: days }) => days !== null)
    .toSorted((a, b) => (a.full_in_days ?? 0) - (b.full_in_days ?? 0))[0];
  return first === undefined || first.full_in === null ? '' : ` ${first.mount} will be full in ${first.full_in}.`;
}

interface DiskData {
  mounts: (DiskUse & MountGrowth)[];
  /** Why growth is unknown; null if it is known. */
  growth_problem: string | null;
}

export const disk = healthModule<DiskData>({
  name: 'disk',
  isLocal: true,

  remedy: [
    'Find what grew below the mount in the alert: sudo du -xh --max-depth=3 MOUNT | sort -h | tail -20 (for inodes: du -x --inodes). In containers, MOUNT is inside of management: docker system df -v shows the volumes by size.',
    'Delete or move unneeded files, such as old backups and logs; with containers also run docker image prune. Never delete anything inside the database directory.',
    'If events fill it, stop the client that the alert names, or set COT_RETENTION_DAYS as GET /api/health/database suggests under policy. Check GET /api/retention/preview first. VACUUM FULL returns deleted space to the disk.',
    'If nothing can be deleted, enlarge the disk before it is full: a full disk stops the database.',
  ],

  async read(monitored, thresholds) {
    const mounts = await monitored.disks.use();
    const { of, problem } = await diskGrowth(monitored, thresholds);
    return { mounts: mounts.map((use) => ({ ...use, ...of(use.mount) })), growth_problem: problem };
  },

  findings({ mounts }, thresholds) {
    const figure = (subject: string, value: number, says: string): Finding => ({
      kind: 'figure',
      subject,
      value,
      limits: limitsOf(thresholds),
      says,
      format: (limit) => `${limit} %`,
    });
    if (mounts.length === 0) return [{ kind: 'fact', status: 'critical', says: 'no file system found' }];
    return mounts.flatMap(({ mount, used_pct, free_bytes, inodes_used_pct, ...growth }) => [
      figure(mount, used_pct, `${used_pct} % full, ${formatBytes(free_bytes)} free`),
      ...(inodes_used_pct === null ? [] : [figure(mount, inodes_used_pct, `${inodes_used_pct} % of its inodes used`)]),
      ...judgeGrowth(mount, growth, thresholds),
    ]);
  },

  well: ({ mounts, growth_problem }) => {
    const fullest = mounts.toSorted((a, b) => b.used_pct - a.used_pct)[0];
    const when = fullWhen(mounts, growth_problem);
    return `${counted(mounts.length, 'file system')}. Fullest: ${fullest?.mount} at ${fullest?.used_pct} %.${when}`;
  },

  trend: {
    name: 'fullest disk',
    unit: 'percent',
    limits: limitsOf,
    figureOf: ({ mounts }) => (mounts.length === 0 ? null : Math.max(...mounts.map(({ used_pct }) => used_pct))),
  },
});

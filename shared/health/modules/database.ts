// Checks the size and growth of the core's database, and test writes to it and to our own.

import { messageOf } from '@holdfast/kit/app-error';
import { formatBytes } from '@holdfast/kit/format';
import { capitalised, ended } from '@holdfast/kit/text';
import { DAY_MS, DAY_SECONDS } from '@holdfast/kit/time';
import { withTimeout } from '@holdfast/kit/timeout';
import type { DatabaseSize, EventLosses, ServerFacts } from '../../core/database/port.ts';
import { formatGrowth, PACE_SECONDS, seenFillers } from '../../database/growth/fillers.ts';
import { holdingPolicy } from '../../database/growth/policy.ts';
import {
  figuresOf,
  type GrownTable,
  grownTables,
  type GrowthFigures,
  type GrowthReport,
  growthReport,
} from '../../database/growth/report.ts';
import { type HoldingPolicy, unknownPolicy } from '../../database/holding-policy.ts';
import type { Fillers } from '../../database/port.ts';
import type { Thresholds } from '../../settings/status.ts';
import { type Finding, limitsOf } from '../evaluate.ts';
import { AS_SUPERUSER, healthModule } from '../module.ts';
import type { Monitored } from '../monitored.ts';
import { readVolume, settingFindings, type VolumeData, volumeFindings, walFindings } from './database-server.ts';

/**
 * Growth data of the module `database`: pace, forecast, senders, growing tables and a suggested
 * retention. It is cached, in part for an hour, so a live request rarely has to compute it.
 */
export interface DatabaseGrowth extends Omit<GrowthFigures, 'basis' | 'samples_since' | 'reason'> {
  growth_basis: GrowthFigures['basis'];
  growth_since: string | null;
  /** Why there is no date; null if there is one. */
  growth_reason: string | null;
  /** Of the last day, or of the last ten minutes if their pace counts; null if unknown. */
  fillers: Fillers | null;
  fillers_problem: string | null;
  policy: HoldingPolicy;
  /** The tables that grew most in the last seven days. */
  grown_tables: GrownTable[];
}

interface Slow {
  policy: HoldingPolicy;
  tables: GrownTable[];
  fillers: Fillers | null;
  fillersProblem: string | null;
}

/** Leaves time for the other queries of the module. */
const WITHIN_MS = 7_000;
const SLOW_KEPT_MS = 240_000;
const DAY_FILLERS_KEPT_MS = DAY_MS / 24;

const remembered = new WeakMap<object, { atMs: number; basis: GrowthFigures['basis']; slow: Slow }>();

/** Never rejects. */
export async function databaseGrowth(monitored: Monitored, thresholds: Thresholds): Promise<DatabaseGrowth> {
  try {
    return await withTimeout(WITHIN_MS, "Holdfast's own database", async () => {
      const report = await growthReport(monitored);
      return shown(figuresOf(report.database), await slowly(monitored, report, thresholds));
    });
  } catch (error) {
    const reason = `growth is unknown: ${messageOf(error).replace(/\.$/, '')}`;
    const none = { growth: undefined, full: undefined, reason };
    return shown(figuresOf(none), { ...NOTHING, policy: unknownPolicy(reason) });
  }
}

const NOTHING: Slow = { policy: unknownPolicy(''), tables: [], fillers: null, fillersProblem: null };

async function slowly(monitored: Monitored, report: GrowthReport, thresholds: Thresholds): Promise<Slow> {
  const nowMs = monitored.now().getTime();
  const basis = report.database.growth?.basis ?? 'none';
  const known = remembered.get(monitored.growthHistory);
  const isNew = known !== undefined && nowMs >= known.atMs && nowMs - known.atMs < SLOW_KEPT_MS;
  if (isNew && known.basis === basis) return known.slow;
  const slow = await readSlow(monitored, report, thresholds);
  remembered.set(monitored.growthHistory, { atMs: nowMs, basis, slow });
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

/** Ends the message of an OK module: ` Growing 1.2 GB a day.` */
export function formatGrows({ growth_bytes_per_day: bytes, growth_reason: reason }: DatabaseGrowth): string {
  if (bytes !== null) return bytes > 0 ? ` Growing ${formatGrowth(bytes)}.` : ' Not growing.';
  return reason?.startsWith('growth is unknown') === true ? ` ${ended(capitalised(reason))}` : '';
}

interface DatabaseData extends DatabaseSize, DatabaseGrowth, VolumeData {
  server: ServerFacts;
  /** System catalogs (10 to 15 MB) and what a VACUUM FULL would free. */
  overhead_bytes: number;
  /** Null if a new connection was accepted. */
  connect_error: string | null;
  /** Null if the write succeeded. */
  write_error: string | null;
  /** In the last 24 h; null if the core does not count them. */
  lost_events: number | null;
  losses: EventLosses | null;
}

export const database = healthModule<DatabaseData>({
  name: 'database',

  remedy: [
    'Read the log of the database: DIR/logs/database.log in the embedded stack, docker compose logs --tail 100 NAME with containers (docker compose ps shows the names).',
    'Check free space with df -h. A full disk stops every write; freeing some helps at once, without a restart. For lost events, archive.behind and archive.lost in DIR/logs/core.log name time and reason; they are missing only in the history.',
    'If the database has just grown, limit how long data is kept (COT_RETENTION_DAYS, GEOCHAT_RETENTION_DAYS), or enlarge the disk and raise MON_DATABASE_WARNING and MON_DATABASE_CRITICAL.',
    AS_SUPERUSER,
  ],

  async read(monitored, thresholds) {
    const { coreDatabase, state, containers, wanted } = monitored;
    const facts = coreDatabase.server();
    const [server, volume, size, losses, connectError, writeError, growth] = await Promise.all([
      facts,
      facts.then(({ data_directory: directory }) => readVolume({ containers, wanted }, directory)),
      coreDatabase.size(),
      coreDatabase.eventLosses(),
      errorOf(coreDatabase.connect()),
      errorOf(state.writeOnce()),
      databaseGrowth(monitored, thresholds),
    ]);
    const overhead = size.total_bytes - size.live_bytes;
    return {
      ...size,
      ...volume,
      server,
      overhead_bytes: overhead,
      connect_error: connectError,
      write_error: writeError,
      lost_events: lostEvents(losses),
      losses: typeof losses === 'string' ? null : losses,
      ...growth,
    };
  },

  findings(data, thresholds) {
    const facts: Finding[] = [];
    if (data.connect_error !== null)
      facts.push({ kind: 'fact', status: 'critical', says: `couldn't open a new connection: ${data.connect_error}` });
    if (data.write_error !== null)
      facts.push({ kind: 'fact', status: 'critical', says: `a test write failed: ${data.write_error}` });
    facts.push(
      ...settingFindings(data.server),
      ...walFindings(data, data.server),
      ...volumeFindings(data, data.server),
    );
    if (data.losses !== null) {
      const { events, began, ended: end, reason } = data.losses;
      const says = `${events} events of the last 24 h were lost between ${began} and ${end}: ${reason}`;
      facts.push({ kind: 'fact', status: 'warning', says });
    }
    return [
      ...facts,
      {
        kind: 'figure',
        subject: 'the database',
        value: data.total_bytes,
        limits: limitsOf(thresholds),
        says: formatBytes(data.total_bytes),
        format: formatBytes,
      },
    ];
  },

  well: ({ total_bytes, live_bytes, ...growth }) =>
    `${formatBytes(total_bytes)} (${formatBytes(live_bytes)} live). A test write succeeded.${formatGrows(growth)}`,

  trend: { name: 'size', unit: 'bytes', limits: limitsOf, figureOf: ({ total_bytes }) => total_bytes },
});

function lostEvents(losses: EventLosses | 'none' | 'unknown'): number | null {
  if (losses === 'unknown') return null;
  return losses === 'none' ? 0 : losses.events;
}

async function errorOf(action: Promise<void>): Promise<string | null> {
  return action.then(
    () => null,
    (error: unknown) => messageOf(error),
  );
}

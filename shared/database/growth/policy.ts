// Suggests a retention that would hold the size of the core's database, from kept table sizes, rows
// per day and the policy in force.

import { messageOf } from '@holdfast/kit/app-error';
import { maxDays, NEVER, type OwnedType } from '@holdfast/kit/retention';
import { DAY_MS } from '@holdfast/kit/time';
import { withTimeout } from '@holdfast/kit/timeout';
import { retentionInForce, type RetentionInForceDeps } from '../../retention/in-force.ts';
import type { RetentionHistory, WantedRetention } from '../../retention/port.ts';
import { median } from '../forecast.ts';
import {
  type HoldingPolicy,
  type PolicyFacts,
  policyThatHolds,
  type StoredType,
  unknownPolicy,
} from '../holding-policy.ts';
import type { GrowthHistory, TableDay } from '../port.ts';
import { dayOf, type GrownTable, grownTables, type GrowthReport, type MountForecast } from './report.ts';

export interface GrowthPolicyDeps extends RetentionInForceDeps {
  growthHistory: Pick<GrowthHistory, 'samples' | 'tables'>;
  retentionHistory: Pick<RetentionHistory, 'days'>;
  wanted: { retention: Pick<WantedRetention, 'unit'> };
  now: () => Date;
}

const TABLES: Record<OwnedType, string> = { cot: 'cot_router', geochat: 'cot_router_chat' };
const LATELY_DAYS = 7;
const IN_FORCE_WITHIN_MS = 2_000;

/**
 * Never rejects. `warningPct`: the disk use that must not be reached; `maxBytes`: a size that must
 * not be reached.
 */
export async function holdingPolicy(
  deps: GrowthPolicyDeps,
  report: GrowthReport,
  warningPct: number,
  maxBytes = Number.POSITIVE_INFINITY,
): Promise<HoldingPolicy> {
  const holding = report.mounts.find(({ holdsDatabase }) => holdsDatabase);
  const { growth } = report.database;
  if (growth === undefined || holding === undefined || report.databaseBytes === null)
    return unknownPolicy(`no retention suggestion: ${report.database.reason ?? 'too few samples'}`);
  try {
    const isPace = growth.basis === 'pace';
    const [types, inForce, others] = await Promise.all([
      isPace ? storedTypes(deps).then((of) => atPace(of, growth.bytesPerDay)) : storedTypes(deps).then(mustBeCounted),
      daysInForce(deps),
      grownTables(deps).then(otherThanEvents),
    ]);
    const { unit } = deps.wanted.retention;
    return policyThatHolds({
      databaseBytes: report.databaseBytes,
      budgetBytes: Math.min(maxBytes, budgetOf(report.databaseBytes, holding, warningPct)),
      growthPerDay: growth.bytesPerDay,
      types,
      inForce,
      unitIsSet: unit !== undefined,
      maxDays: maxDays(unit ?? 'days'),
      ...others,
    });
  } catch (error) {
    return unknownPolicy(`no retention suggestion: ${messageOf(error).replace(/\.$/, '')}`);
  }
}

/** Assumes that everything else on the disk keeps its size. */
function budgetOf(databaseBytes: number, { sample, roomBytes }: MountForecast, warningPct: number): number {
  const keptFree = sample.total_bytes * (1 - warningPct / 100);
  return databaseBytes + roomBytes - keptFree;
}

async function storedTypes(deps: GrowthPolicyDeps): Promise<Record<OwnedType, StoredType>> {
  const nowMs = deps.now().getTime();
  const tables = await deps.growthHistory.tables(dayOf(nowMs - LATELY_DAYS * DAY_MS));
  const [cot, geochat] = await Promise.all([
    storedType(deps, 'cot', tables, nowMs),
    storedType(deps, 'geochat', tables, nowMs),
  ]);
  if (cot === undefined) throw new Error(`the size of ${TABLES.cot} has not been read yet`);
  return { cot, geochat: geochat ?? { bytes: 0, rows: 0, rowsPerDay: 0 } };
}

async function storedType(
  { retentionHistory }: GrowthPolicyDeps,
  type: OwnedType,
  tables: readonly TableDay[],
  nowMs: number,
): Promise<StoredType | undefined> {
  const table = tables.findLast((each) => each.table === TABLES[type]);
  if (table === undefined) return undefined;
  const { days } = await retentionHistory.days(type);
  const lately = Array.from({ length: LATELY_DAYS }, (_, ago) => dayOf(nowMs - (ago + 1) * DAY_MS));
  const first = days[0]?.day ?? dayOf(nowMs);
  const rows = new Map(days.map((each) => [each.day, each.rows]));
  const known = lately.filter((day) => day >= first);
  return { bytes: table.bytes, rows: table.rows, rowsPerDay: median(known.map((day) => rows.get(day) ?? 0)) };
}

type StoredTypes = Record<OwnedType, StoredType>;

function mustBeCounted(types: StoredTypes): StoredTypes {
  if (types.cot.rowsPerDay + types.geochat.rowsPerDay === 0)
    throw new Error('no full day of events has been counted lately');
  return types;
}

/** Treats all current growth as events. */
function atPace(types: StoredTypes, bytesPerDay: number): StoredTypes {
  const bytes = Math.max(1, types.cot.bytes);
  return { ...types, cot: { bytes, rows: 1, rowsPerDay: bytesPerDay / bytes } };
}

/** Undefined if unknown; without a schedule nothing is deleted. */
async function daysInForce(deps: GrowthPolicyDeps): Promise<PolicyFacts['inForce']> {
  const { unit } = deps.wanted.retention;
  if (unit === undefined) return undefined;
  const inForce = await withTimeout(IN_FORCE_WITHIN_MS, 'The core', () => retentionInForce(deps, unit)).catch(
    () => undefined,
  );
  if (inForce === undefined) return undefined;
  if (inForce.schedule === NEVER) return { cot: null, geochat: null };
  return { cot: inForce.policy.cot, geochat: inForce.policy.geochat };
}

function otherThanEvents(grown: readonly GrownTable[]): Pick<PolicyFacts, 'otherTable' | 'otherPerDay'> {
  const others = grown.filter(({ table }) => !Object.values(TABLES).includes(table));
  const otherPerDay = others.reduce((sum, { grown_bytes: bytes, grown_days: days }) => sum + bytes / days, 0);
  return { otherTable: others[0] && `${others[0].schema}.${others[0].table}`, otherPerDay };
}

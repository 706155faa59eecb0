// Computes the limits of a retention run, never later than the policy allows, and estimates how
// many rows will go.

import type postgres from 'postgres';
import { messageOf } from '@holdfast/kit/app-error';
import type { Log } from '@holdfast/kit/log';
import { RETAINED, type Retained, type RetentionLimits, type RetentionPolicy } from '@holdfast/kit/retention';
import { DAY_MS } from '@holdfast/kit/time';
import { CoreFault } from '../http/answers.ts';
import type { RunSql } from '../store/certificates.ts';
import { KEPT_MISSIONS, MISSION_PACKAGE } from './deletion-batches.ts';

/** The one who orders has read the clock before us. */
const TOLERANCE_MS = 1_000;

/**
 * The limits, as they are kept; throws a CoreFault `invalid` that names the type. `now` is the
 * clock of the database.
 */
export function orderedLimits(request: RetentionLimits, policy: RetentionPolicy, now: Date): RetentionLimits {
  const limits: RetentionLimits = {};
  for (const type of RETAINED) {
    const text = request[type];
    if (text === undefined) continue;
    const limit = new Date(text);
    if (Number.isNaN(limit.getTime())) throw invalid(`limits.${type}: "${text}" is no moment`);
    const kept = formatKept(type, limit, policy, now);
    if (kept !== undefined) throw invalid(`limits.${type}: ${kept}`);
    limits[type] = limit.toISOString();
  }
  if (Object.keys(limits).length === 0) throw invalid('limits: no type is named, so there is nothing to delete');
  return limits;
}

/**
 * What of a type the policy keeps that is older than `limit`, for a run of `asOf`; undefined:
 * nothing.
 */
export function formatKept(type: Retained, limit: Date, policy: RetentionPolicy, asOf: Date): string | undefined {
  const days = policy[type];
  if (days === null) return `the policy keeps ${type} forever`;
  const latest = asOf.getTime() - days * DAY_MS;
  if (limit.getTime() <= latest + TOLERANCE_MS) return undefined;
  return `${limit.toISOString()} is later than ${new Date(latest).toISOString()}, and the policy keeps ${type} for ${days} days`;
}

function invalid(why: string): CoreFault {
  return new CoreFault('invalid', `Invalid Request: ${why}`);
}

const COUNTED_WITHIN_MS = 2_000;

/**
 * How many rows a run will delete in all, counted beforehand where that is quick. Undefined where
 * one of the counts took too long.
 */
export async function expectedRows(
  run: RunSql,
  limits: RetentionLimits,
  exemptKeywords: readonly string[],
  log: Log,
): Promise<number | undefined> {
  let all = 0;
  for (const type of RETAINED) {
    const limit = limits[type];
    if (limit === undefined) continue;
    try {
      all += await counted(run, type, limit, { limits, exemptKeywords });
    } catch (error) {
      log.info('retention.not_counted', { type, reason: messageOf(error) });
      return undefined;
    }
  }
  return all;
}

/** What the counts of other types have to do with each other. */
interface Doom {
  limits: RetentionLimits;
  exemptKeywords: readonly string[];
}

async function counted(run: RunSql, type: Retained, limit: string, doom: Doom): Promise<number> {
  const row = await run((sql) =>
    sql.begin(async (tx) => {
      await tx`SELECT set_config('statement_timeout', ${String(COUNTED_WITHIN_MS)}, true)`;
      const [found] = await tx<{ rows: number }[]>`SELECT (${COUNTS[type](tx, limit, doom)})::float8 AS rows`;
      return found;
    }),
  );
  return row?.rows ?? 0;
}

type Count = (tx: postgres.TransactionSql, limit: string, doom: Doom) => postgres.Fragment;

const COUNTS: Record<Retained, Count> = {
  cot: (tx, limit) => tx`
    SELECT count(*) FROM cot_router e WHERE servertime < ${limit}::text::timestamptz AND cot_type <> 'b-t-f'
      AND NOT EXISTS (SELECT FROM mission_uid u WHERE u.uid = e.uid)`,

  geochat: (tx, limit, { limits }) => tx`
    (SELECT count(*) FROM cot_router_chat WHERE servertime < ${limit}::text::timestamptz)
      + (SELECT count(*) FROM cot_router WHERE servertime < ${limit}::text::timestamptz AND cot_type = 'b-t-f'
          AND uid NOT IN (${limits.missions === undefined ? tx`SELECT NULL::text WHERE false` : goneUids(tx, limits.missions)}))`,

  files: (tx, limit, { exemptKeywords }) => files(tx, limit, exemptKeywords, false),
  missionpackages: (tx, limit, { exemptKeywords }) => files(tx, limit, exemptKeywords, true),

  missions: (tx, limit) => tx`
    WITH doomed AS MATERIALIZED (SELECT id FROM mission WHERE ${expiredMission(tx, limit)})
    SELECT (SELECT count(*) FROM doomed)
      + (SELECT count(*) FROM cot_router WHERE uid IN (${goneUids(tx, limit)}))
      + (SELECT count(*) FROM resource WHERE id IN (
          SELECT resource_id FROM mission_resource GROUP BY resource_id
          HAVING bool_and(mission_id IN (SELECT id FROM doomed))))`,
};

/** Of whose events none stays, as no mission that stays has them. */
function goneUids(tx: postgres.ISql, limit: string): postgres.Fragment {
  return tx`
    SELECT uid FROM mission_uid GROUP BY uid
    HAVING bool_and(mission_id IN (SELECT id FROM mission WHERE ${expiredMission(tx, limit)}))`;
}

function files(tx: postgres.TransactionSql, limit: string, exempt: readonly string[], packages: boolean) {
  return tx`
    SELECT count(*) FROM resource f WHERE submissiontime < ${limit}::text::timestamptz
      AND coalesce(${MISSION_PACKAGE}::text = ANY (keywords), false) = ${packages}::boolean
      AND NOT coalesce(keywords, '{}')::text[] && ARRAY(SELECT json_array_elements_text(${JSON.stringify(exempt)}::text::json))
      AND NOT EXISTS (SELECT FROM mission_resource m WHERE m.resource_id = f.id)`;
}

/** Of `mission`. */
export function expiredMission(tx: postgres.ISql, limit: string): postgres.Fragment {
  return tx`create_time < ${limit}::text::timestamptz AND NOT invite_only
    AND name NOT IN (SELECT json_array_elements_text(${JSON.stringify(KEPT_MISSIONS)}::text::json))`;
}

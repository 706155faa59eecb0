// Checks retention: the policy and schedule in force, the runs and the rows they left, and the unit
// that the core counts. Without days nothing is deleted, and nothing is checked.

import { formatUtc } from '@holdfast/kit/format';
import {
  isKeepingAll,
  NEVER,
  RETAINED,
  type RetentionLimits,
  type RetentionPolicy,
  type RetentionUnit,
  toDaysView,
  toPolicyView,
} from '@holdfast/kit/retention';
import type { CoreRetentionPolicy } from '../../core/port.ts';
import { dialectOfUnit, type RetentionInForce, retentionInForce } from '../../retention/in-force.ts';
import type { ExpiredReferences } from '../../retention/port.ts';
import { formatLimited } from '../../retention/rules.ts';
import type { ModuleThresholds } from '../../settings/status.ts';
import { type Finding, limitsOf } from '../evaluate.ts';
import { healthModule } from '../module.ts';
import type { Monitored } from '../monitored.ts';
import {
  type Files,
  judgeMismatches,
  type Mismatch,
  mismatchesOf,
  readFiles,
  type Seen,
} from './retention-mismatches.ts';
import {
  judgeFirstRun,
  judgeNotInTime,
  judgeOverAge,
  judgeReferences,
  limitsToCheck,
  NO_ROWS,
  type NotInTime,
  readRows,
  type SeenRows,
} from './retention-rows.ts';
import {
  isFirstAhead,
  judgeLastRun,
  judgeOverdue,
  type LastRun,
  lastRunOf,
  NO_RUNS,
  overdueOf,
  readRuns,
  type SeenRuns,
  timestampOf,
} from './retention-runs.ts';

interface TypeState {
  name: string;
  /** Null keeps forever. */
  kept_days: number | null;
  /** The same in the unit of the core. */
  core_value: number | null;
  /** Deleted by the last run. */
  last_run_rows: number | null;
  /** True if a run that reported success left rows; null if not checked, or not in time. */
  over_age: boolean | null;
}

interface RetentionData {
  /** What the core counts; null if CORE_RETENTION_UNIT is not set. */
  unit: RetentionUnit | null;
  time_zone: string;
  core_answers: boolean;
  core_problem: string | null;
  /** Where policy and schedule were read from. */
  policy_from: 'core' | 'files';
  keeps_everything: boolean;
  /** Days; null without a unit. */
  policy: RetentionPolicy | null;
  types: TypeState[];
  schedule: string;
  next_run: string | null;
  next_run_timestamp_seconds: number | null;
  in_force_since: string | null;
  last_run: LastRun | null;
  last_run_timestamp_seconds: number | null;
  last_done_timestamp_seconds: number | null;
  running: boolean;
  /** Null if unknown. */
  overdue_runs: number | null;
  overdue_since: string | null;
  rows_over_age: string[];
  not_in_time: NotInTime[];
  mismatch_count: number;
  mismatches: Mismatch[];
  references: ExpiredReferences | null;
  first_run_rows: number | null;
  first_run_exact: boolean | null;
  files_problem: string | null;
  runs_problem: string | null;
  book_problem: string | null;
  database_problem: string | null;
}

export const retention = healthModule<RetentionData>({
  name: 'retention',

  withinMs: 25_000,

  remedy: [
    'If a run is overdue, failed or left rows: check that the core is running (with a TAK Server release, its retention process too). Read its log: grep -i retention in logs below CORE_DATA_DIR. Wait for the next run, or start one: docs/retention.md.',
    'If values differ or look like another unit: stop the core before the next run. Correct COT_RETENTION_DAYS, GEOCHAT_RETENTION_DAYS, RETENTION_CRON and CORE_RETENTION_UNIT in .env, or the files in conf/retention below CORE_DATA_DIR. Then start again.',
    "For days without a schedule, or a large first run: check GET /api/retention/preview and make a backup. Then set RETENTION_CRON in .env, or cron with PUT /api/retention. Deleted data can't be recovered.",
    'Rows in cot_image, cot_thumbnail or cot_link that make the run of a release fail are no longer used. After a backup, in psql on the database cot: DELETE FROM cot_thumbnail; DELETE FROM cot_image; DELETE FROM cot_link; (docs/retention.md).',
  ],

  async read(monitored) {
    const now = monitored.now();
    const { unit } = monitored.wanted.retention;
    const [inForce, files] = await Promise.all([
      retentionInForce(monitored, unit ?? 'days'),
      readFiles(monitored.retentionFiles),
    ]);
    if (unit === undefined)
      return dataOf(monitored, { unit: null, inForce, files, keepsAll: keepsAll(inForce, files) });
    const { policy, schedule } = inForce;
    const fromCore = inForce.from === 'core';
    const runs = await readRuns(monitored, fromCore ? { policy, schedule } : undefined, now);
    const keeps = isKeepingAll(policy);
    const rows = keeps ? NO_ROWS : await rowsOf(monitored, { unit, inForce, files, runs });
    const mismatches = await mismatchesOf(monitored, { unit, inForce, files, runs }, now);
    return dataOf(monitored, { unit, inForce, files, keepsAll: keeps, runs, rows, mismatches });
  },

  findings(data, thresholds) {
    const found = [...judgeMismatches(data.mismatches), ...judgeReading(data)];
    if (data.unit === null)
      return data.keeps_everything ? found : [...found, fact('warning', `${UNIT_UNSET}; retention is not checked`)];
    return data.keeps_everything ? found : [...found, ...judgeWork(data, thresholds)];
  },

  well(data) {
    if (data.policy === null || data.keeps_everything) {
      const schedule = data.schedule === NEVER ? '' : ` The schedule ${data.schedule} deletes nothing.`;
      return `Nothing is deleted: no days are set.${schedule}`;
    }
    const last = data.last_run;
    const ran = last === null ? 'No run yet' : `Last run ${formatUtc(last.started_at)} (${last.rows} rows)`;
    const next = data.next_run === null ? '' : `, next ${formatUtc(data.next_run)}`;
    return `Kept: ${formatLimited(data.policy)}. ${ran}${next}.`;
  },

  trend: { name: 'runs overdue', unit: 'count', limits: limitsOf, figureOf: ({ overdue_runs }) => overdue_runs },
});

const UNIT_UNSET =
  'retention values are set, but CORE_RETENTION_UNIT is not: set it to seconds for a TAK Server release, to days for the embedded core';

/** Findings about data that could not be read. */
function judgeReading(data: RetentionData): Finding[] {
  const found: Finding[] = [];
  if (data.core_problem !== null) {
    const shown = data.policy_from === 'files' ? '; its files apply from its next start' : '';
    found.push({ kind: 'failure', says: `couldn't read the core's retention policy: ${data.core_problem}${shown}` });
  }
  if (data.files_problem !== null)
    found.push(fact('warning', `couldn't read the retention files of the core: ${data.files_problem}`));
  return found;
}

/** Findings about runs; only if at least one type has days. */
function judgeWork(data: RetentionData, thresholds: ModuleThresholds): Finding[] {
  const found = judgeLastRun(data.last_run);
  if (data.overdue_runs !== null) {
    const overdue = { runs: data.overdue_runs, since: data.overdue_since };
    found.push(judgeOverdue(overdue, data.schedule, thresholds));
  }
  found.push(
    ...judgeOverAge(RETAINED.filter((type) => data.rows_over_age.includes(type))),
    ...judgeReferences(data.references),
    ...judgeNotInTime(data.not_in_time),
  );
  if (data.runs_problem !== null)
    found.push({ kind: 'failure', says: `couldn't read the core's runs: ${data.runs_problem}` });
  if (data.database_problem !== null)
    found.push({ kind: 'failure', says: `couldn't read what a run deletes: ${data.database_problem}` });
  if (data.book_problem !== null)
    found.push(fact('note', `couldn't read earlier runs, so overdue runs go unnoticed: ${data.book_problem}`));
  if (data.schedule === NEVER)
    found.push(fact('note', 'days are set, but no schedule: nothing is deleted until RETENTION_CRON or cron is set'));
  else found.push(...judgeFirstRun(data.first_run_rows, data.first_run_exact ?? true, data.next_run));
  if (data.schedule !== NEVER && data.next_run === null)
    found.push(
      fact('note', `couldn't compute the next run of the schedule ${data.schedule}, so overdue runs go unnoticed`),
    );
  if (data.unit === 'seconds' && (data.policy?.missionpackages ?? null) !== null)
    found.push(
      fact('note', 'missionpackages has days, which a TAK Server release ignores: it deletes them with files'),
    );
  return found;
}

function fact(status: 'note' | 'warning', says: string): Finding {
  return { kind: 'fact', status, says };
}

/** Without a unit: true if neither the core nor its files have values. */
function keepsAll({ raw }: RetentionInForce, { contents }: Files): boolean {
  const none = (policy: CoreRetentionPolicy | undefined): boolean =>
    RETAINED.every((type) => (policy?.[type] ?? null) === null);
  return none(raw) && none(contents?.policy);
}

async function rowsOf(
  monitored: Monitored,
  { unit, inForce, files, runs }: Seen & { runs: SeenRuns },
): Promise<SeenRows> {
  if (files.contents === undefined) return NO_ROWS;
  const { policy, schedule } = inForce;
  return readRows(monitored, {
    policy,
    unit,
    exemptKeywords: files.contents.exemptKeywords,
    checked: checkedLimits(runs, policy, monitored.now()),
    isFirstAhead: schedule !== NEVER && isFirstAhead(runs, policy),
  });
}

function checkedLimits(
  { lastDone, isGoingOn, inForceSince }: SeenRuns,
  policy: RetentionPolicy,
  now: Date,
): RetentionLimits | undefined {
  return isGoingOn || lastDone === undefined ? undefined : limitsToCheck(lastDone, policy, { inForceSince, now });
}

interface Read {
  unit: RetentionUnit | null;
  inForce: RetentionInForce;
  files: Files;
  keepsAll: boolean;
  runs?: SeenRuns;
  rows?: SeenRows;
  mismatches?: Mismatch[];
}

function dataOf({ timeZone, schedules, now }: Monitored, read: Read): RetentionData {
  const { unit, inForce, files, runs = NO_RUNS, rows = NO_ROWS, mismatches = [] } = read;
  const { schedule } = inForce;
  const timetable = { cron: schedule, dialect: dialectOfUnit(unit ?? 'days'), timeZone };
  const overdue = read.keepsAll || unit === null ? undefined : overdueOf(schedules, timetable, runs, now());
  const next = unit === null ? undefined : schedules.next(schedule, timetable.dialect, timeZone, now(), 1)[0];
  return {
    unit,
    time_zone: timeZone,
    core_answers: inForce.from === 'core',
    core_problem: inForce.coreProblem?.replace(/\.$/, '') ?? null,
    policy_from: inForce.from,
    keeps_everything: read.keepsAll,
    policy: unit === null ? null : toPolicyView(inForce.policy),
    types: RETAINED.map((type) => ({
      name: type,
      kept_days: unit === null ? null : toDaysView(inForce.policy[type]),
      core_value: inForce.raw[type],
      last_run_rows: runs.last?.rows[type] ?? null,
      over_age: rows.notInTime.includes(type) ? null : (rows.overAge?.includes(type) ?? null),
    })),
    schedule,
    next_run: next?.toISOString() ?? null,
    next_run_timestamp_seconds: next === undefined ? null : next.getTime() / 1000,
    in_force_since: runs.inForceSince,
    last_run: runs.last === undefined ? null : lastRunOf(runs.last),
    last_run_timestamp_seconds: timestampOf(runs.last),
    last_done_timestamp_seconds: timestampOf(runs.lastDone),
    running: runs.isGoingOn,
    overdue_runs: overdue?.runs ?? null,
    overdue_since: overdue?.since ?? null,
    rows_over_age: rows.overAge ?? [],
    not_in_time: rows.notInTime,
    mismatch_count: mismatches.length,
    mismatches,
    references: rows.references,
    first_run_rows: rows.firstRun?.rows ?? null,
    first_run_exact: rows.firstRun?.exact ?? null,
    files_problem: files.problem,
    runs_problem: runs.coreProblem,
    book_problem: runs.historyProblem,
    database_problem: rows.problem,
  };
}

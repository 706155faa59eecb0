// Shows the progress of a job: a bar, the current step and the estimated end.

import { counted, rounded } from '@holdfast/kit/format';
import { BACKUP_JOB, readBackupJob } from '../../../shared/backups/jobs.ts';
import { readResult, readVacuumJob, VACUUM_JOB } from '../../../shared/database/vacuum/jobs.ts';
import { nameOf } from '../../../shared/database/vacuum/rules.ts';
import type { OpsJob, OpsJobState } from '../../../shared/jobs/port.ts';
import { RETENTION_JOB } from '../../../shared/retention/jobs.ts';
import { SIMULATION_JOB } from '../../../shared/simulation/jobs.ts';
import type { Status } from '../../../shared/settings/status.ts';
import { type Clock, When } from '../../pages/parts/time.tsx';

const KINDS: Record<string, string> = {
  [VACUUM_JOB]: 'Vacuum',
  [RETENTION_JOB]: 'Retention run',
  [BACKUP_JOB]: 'Backup',
  [SIMULATION_JOB]: 'Simulation',
};

/** The kinds of jobs that have a name here. */
export const KNOWN_KINDS = Object.keys(KINDS);

export function formatKind(kind: string): string {
  return KINDS[kind] ?? kind;
}

/** `Full vacuum of 3 tables`, `Retention run`. */
export function formatJob(job: OpsJob): string {
  const backup = job.kind === BACKUP_JOB ? readBackupJob(job)?.input : undefined;
  if (backup?.what === 'proof') return `Proof of ${backup.name ?? 'a backup'}`;
  const order = job.kind === VACUUM_JOB ? readVacuumJob(job)?.input : undefined;
  if (order === undefined) return formatKind(job.kind);
  const [first, ...others] = order.tables;
  const what = first !== undefined && others.length === 0 ? nameOf(first) : counted(order.tables.length, 'table');
  return `${order.mode === 'full' ? 'Full' : 'Standard'} vacuum of ${what}`;
}

interface StateWords {
  status: Status;
  word: string;
  /** One sentence for the reader. */
  means: string;
}

const STATES: Record<OpsJobState, StateWords> = {
  queued: { status: 'note', word: 'Queued', means: 'Starts within a few seconds.' },
  running: { status: 'note', word: 'Running', means: 'Continues by itself. You can leave this page.' },
  succeeded: { status: 'ok', word: 'Done', means: 'Finished without errors.' },
  failed: { status: 'critical', word: 'Failed', means: 'Finished, but not everything was done.' },
  interrupted: {
    status: 'warning',
    word: 'Interrupted',
    means: 'Stopped early. Completed work stays done.',
  },
};

export function stateOf({ state }: Pick<OpsJob, 'state'>): StateWords {
  return STATES[state];
}

export function isOpen({ state }: Pick<OpsJob, 'state'>): boolean {
  return state === 'queued' || state === 'running';
}

interface Advice {
  words: string;
  path: string;
  label: string;
}

/** The next step after a failed or interrupted job. */
export function adviceOf(job: OpsJob): Advice | undefined {
  const { kind, state } = job;
  if (state !== 'failed' && state !== 'interrupted') return undefined;
  if (kind === VACUUM_JOB)
    return {
      words: 'A vacuum that ends early loses no rows. Fix the problem above, then vacuum those tables again.',
      path: againAt(job),
      label: 'Vacuum again',
    };
  if (kind === RETENTION_JOB)
    return {
      words: 'Deleted rows stay deleted. The next run deletes the rest. Fix the problem above, if there is one.',
      path: '/database/retention',
      label: 'Retention policy',
    };
  if (kind === SIMULATION_JOB)
    return {
      words: 'Everything that the simulation made is removed. See the figures below, then start another one.',
      path: '/simulation',
      label: 'Simulation',
    };
  if (kind === BACKUP_JOB)
    return {
      words: 'Earlier backups are not affected. Fix the problem above, then run it again.',
      path: '/backups',
      label: 'Backups',
    };
  return undefined;
}

/** Preselects the tables that were not done; that page asks before it starts. */
function againAt(job: OpsJob): string {
  const result = readResult(job);
  if (result === undefined) return '/database/vacuum';
  const left = result.tables.filter(({ state }) => state !== 'done');
  const tables = left.map(({ schema, table }): [string, string] => ['tables', `${schema}.${table}`]);
  return `/database/vacuum?${new URLSearchParams([['mode', result.mode], ...tables]).toString()}`;
}

/** Empty once the job has finished. */
export function JobProgress({ job, clock }: { job: OpsJob; clock: Clock }) {
  if (!isOpen(job)) return null;
  const { progress, phase, phasePercent, eta } = job;
  const percent = Math.floor(progress * 100);
  return (
    <div class="howfar">
      <progress max="1" value={String(progress)} aria-label="Progress">
        {percent} %
      </progress>
      <p>
        <strong>{percent} %</strong>
        {phase === null
          ? null
          : ` - ${phase}${phasePercent === null ? '' : `, ${rounded(phasePercent, 0)} % of this step`}`}
      </p>
      {eta === null ? null : (
        <p class="fine">
          Estimated end: <When at={eta} clock={clock} relative />
        </p>
      )}
    </div>
  );
}

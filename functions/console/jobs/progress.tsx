// How far long work is: a bar, what it is at, and when it will be done.

import { counted, rounded } from '@holdfast/kit/format';
import { readResult, readVacuumJob, VACUUM_JOB } from '../../../shared/database/vacuum/jobs.ts';
import { nameOf } from '../../../shared/database/vacuum/rules.ts';
import type { OpsJob, OpsJobState } from '../../../shared/jobs/port.ts';
import { RETENTION_JOB } from '../../../shared/retention/jobs.ts';
import type { Status } from '../../../shared/settings/status.ts';
import { type Clock, When } from '../../pages/parts/time.tsx';

const KINDS: Record<string, string> = { [VACUUM_JOB]: 'Vacuum', [RETENTION_JOB]: 'Retention run' };

/** Long work in words: what it is, how it stands, and what to do when it did not end well. */
export const KNOWN_KINDS = Object.keys(KINDS);

export function formatKind(kind: string): string {
  return KINDS[kind] ?? kind;
}

/** `Full vacuum of 3 tables`, `Retention run`. */
export function formatJob(job: OpsJob): string {
  const order = job.kind === VACUUM_JOB ? readVacuumJob(job)?.input : undefined;
  if (order === undefined) return formatKind(job.kind);
  const [first, ...others] = order.tables;
  const what = first !== undefined && others.length === 0 ? nameOf(first) : counted(order.tables.length, 'table');
  return `${order.mode === 'full' ? 'Full' : 'Standard'} vacuum of ${what}`;
}

interface StateWords {
  status: Status;
  word: string;
  /** A sentence for whoever looks at it. */
  means: string;
}

const STATES: Record<OpsJobState, StateWords> = {
  queued: { status: 'note', word: 'Waiting', means: 'It begins within a few seconds.' },
  running: { status: 'note', word: 'Running', means: 'It goes on by itself, also when you leave this page.' },
  succeeded: { status: 'ok', word: 'Done', means: 'It has ended well.' },
  failed: { status: 'critical', word: 'Failed', means: 'It has ended, and not everything was done.' },
  interrupted: {
    status: 'warning',
    word: 'Interrupted',
    means: 'It was cut off; what was done until then stays done.',
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

/** What helps after a bad end. */
export function adviceOf(job: OpsJob): Advice | undefined {
  const { kind, state } = job;
  if (state !== 'failed' && state !== 'interrupted') return undefined;
  if (kind === VACUUM_JOB)
    return {
      words: 'No row is lost by a vacuum that ends early. Mend what is named above, then order those tables again.',
      path: againAt(job),
      label: 'Order them again',
    };
  if (kind === RETENTION_JOB)
    return {
      words:
        'What it has deleted stays deleted; the next run deletes the rest. Mend what is named above if there is anything.',
      path: '/database/retention',
      label: 'See the retention policy',
    };
  return undefined;
}

/** The order of just the tables that were not done; it asks before it begins. */
function againAt(job: OpsJob): string {
  const result = readResult(job);
  if (result === undefined) return '/database/vacuum';
  const left = result.tables.filter(({ state }) => state !== 'done');
  const tables = left.map(({ schema, table }): [string, string] => ['tables', `${schema}.${table}`]);
  return `/database/vacuum?${new URLSearchParams([['mode', result.mode], ...tables]).toString()}`;
}

/** Nothing once it has ended. */
export function JobProgress({ job, clock }: { job: OpsJob; clock: Clock }) {
  if (!isOpen(job)) return null;
  const { progress, phase, phasePercent, eta } = job;
  const percent = Math.floor(progress * 100);
  return (
    <div class="howfar">
      <progress max="1" value={String(progress)} aria-label="How far it is">
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
          Done about <When at={eta} clock={clock} relative />
        </p>
      )}
    </div>
  );
}

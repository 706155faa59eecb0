// /database/runs: lists retention runs and shows the next one. /database/runs/new starts a run on
// demand.

import { formatBytes, formatDuration, grouped } from '@holdfast/kit/format';
import { RETAINED } from '@holdfast/kit/retention';
import type { App } from '../../../shared/http/context.ts';
import type { Deps } from '../../../shared/http/deps.ts';
import { openRetentionJob } from '../../../shared/retention/jobs.ts';
import { keepRetentionHistory } from '../../../shared/retention/keep-history.ts';
import type { RetentionRun } from '../../../shared/retention/port.ts';
import { type RetentionState, retentionState } from '../../../shared/retention/state.ts';
import type { Status } from '../../../shared/settings/status.ts';
import { type Attempt, attempt } from '../../pages/form.ts';
import { framed } from '../../pages/frame.tsx';
import { isAdmin, type PageContext, pagesOf } from '../../pages/page-routes.ts';
import { Card, Facts } from '../../pages/parts/card.tsx';
import { Missing, StatusBadge } from '../../pages/parts/notice.tsx';
import { Empty, pageNumber, Pager, Table } from '../../pages/parts/table.tsx';
import { type Clock, clockOf, When } from '../../pages/parts/time.tsx';
import { DatabaseTabs } from '../database/tabs.tsx';
import { formatRows, TYPE_WORDS } from './draft.ts';
import { scheduleNow } from './editor.tsx';
import { runOrderPage } from './order.tsx';

const STATES: Readonly<Record<RetentionRun['state'], readonly [status: Status, word: string]>> = {
  running: ['note', 'Running'],
  done: ['ok', 'Done'],
  failed: ['critical', 'Failed'],
  interrupted: ['warning', 'Interrupted'],
};

/** Retention runs, newest first, with rows deleted by type, freed space and errors. */
export function RunTable({ runs, clock }: { runs: readonly RetentionRun[]; clock: Clock }) {
  return (
    <Table
      caption="Retention runs, newest first"
      columns={[
        { label: 'Started' },
        { label: 'Result' },
        { label: 'Deleted' },
        { label: 'Space freed', numeric: true },
        { label: 'Duration', numeric: true },
        { label: 'Trigger' },
      ]}
      rows={runs.map((run) => [
        <When at={run.startedAt} clock={clock} relative />,
        <Result run={run} />,
        <Deleted run={run} />,
        run.bytes === null ? null : `about ${formatBytes(run.bytes)}`,
        formatTook(run),
        run.trigger === 'schedule' ? 'scheduled' : 'on demand',
      ])}
    />
  );
}

function Result({ run: { state, error, source } }: { run: RetentionRun }) {
  const [status, word] = STATES[state];
  return (
    <span>
      <StatusBadge status={status}>{word}</StatusBadge>
      {error === null ? null : <span class="run-error">{error}</span>}
      {source === 'log' ? <span class="fine run-error">From the core log, which has fewer details.</span> : null}
    </span>
  );
}

function Deleted({ run }: { run: RetentionRun }) {
  const types = RETAINED.filter((type) => (run.rows[type] ?? 0) > 0);
  const { cot, files } = run.included;
  const withMissions = cot + files;
  if (types.length === 0 && withMissions === 0)
    return <span class="fine">{run.source === 'log' ? 'unknown' : 'nothing'}</span>;
  const total = types.reduce((sum, type) => sum + (run.rows[type] ?? 0), withMissions);
  const parts = types.map((type) => `${TYPE_WORDS[type].name} ${grouped(run.rows[type] ?? 0)}`);
  const also = withMissions === 0 ? [] : [`with missions ${grouped(withMissions)}`];
  return (
    <span>
      <strong>
        {formatRows(total)}
        {run.state === 'running' && run.expected !== null ? ` of ${grouped(run.expected)}` : ''}
      </strong>
      <span class="fine run-error">{[...parts, ...also].join(', ')}</span>
    </span>
  );
}

function formatTook({ startedAt, finishedAt }: RetentionRun): string | null {
  if (finishedAt === null) return null;
  const ms = Date.parse(finishedAt) - Date.parse(startedAt);
  return ms < 60_000 ? `${Math.max(1, Math.round(ms / 1000))} s` : formatDuration(ms);
}

const PAGE_SIZE = 50;
/** The page waits no longer than this for a slow core. */
const CORE_TIMEOUT_MS = 500;

interface History {
  results: RetentionRun[];
  count: number;
  upToDate: boolean;
}

/** Adds the routes of this file and those that start a run. */
export function retentionRunsPage(app: App, deps: Deps): void {
  runOrderPage(app, deps);
  pagesOf(app, deps, ['console']).get('/database/runs', { access: 'viewer' }, async function showRuns(c) {
    const page = pageNumber(c.req.query('page'));
    const [history, state, job] = await Promise.all([
      attempt(() => historyOf(deps, page)),
      attempt(() => retentionState(deps)),
      attempt(() => openRetentionJob(deps.opsJobs)),
    ]);
    const clock = clockOf(deps);
    const isOpen = job.done !== undefined;
    const body = (
      <>
        <DatabaseTabs current="/database/runs" />
        <NextRun state={state} jobId={job.done?.id} clock={clock} isAdmin={isAdmin(c)} />
        <div id="runs" {...(isOpen ? { 'data-live': 'self', 'data-every': '5' } : { 'data-refresh': true })}>
          <Listed c={c} history={history} page={page} clock={clock} />
        </div>
      </>
    );
    return framed(c, deps, { title: 'Retention runs', current: 'database', body });
  });
}

async function historyOf(deps: Deps, page: number): Promise<History> {
  const { upToDate } = await deps.together('retention.history.soon', () => keepRetentionHistory(deps, CORE_TIMEOUT_MS));
  return { ...(await deps.retentionHistory.runs((page - 1) * PAGE_SIZE, PAGE_SIZE)), upToDate };
}

interface NextRunProps {
  state: Attempt<RetentionState>;
  jobId: string | undefined;
  clock: Clock;
  isAdmin: boolean;
}

function NextRun({ state: { done: state, refused }, jobId, clock, isAdmin }: NextRunProps) {
  if (state === undefined) return <Missing>Couldn’t load the next run: {refused?.message}</Missing>;
  const [next] = state.next_runs;
  return (
    <Card title="Next run">
      <Facts
        of={{
          Time: next === undefined ? 'none (no schedule)' : <When at={next} clock={clock} relative />,
          Schedule: scheduleNow(state),
        }}
      />
      <div class="row after">
        {jobId === undefined ? null : (
          <a class="button primary" href={`/jobs/${jobId}`}>
            Follow current run
          </a>
        )}
        {jobId === undefined && isAdmin && state.unit === 'days' ? (
          <a class="button" href="/database/runs/new">
            Run now…
          </a>
        ) : null}
        <a class="button" href="/database/retention">
          Change policy
        </a>
      </div>
      {state.unit === 'seconds' ? (
        <p class="fine after">
          This core is a TAK Server release, which has no call to start a run. It runs only on its schedule.
        </p>
      ) : null}
    </Card>
  );
}

interface ListedProps {
  c: PageContext;
  history: Attempt<History>;
  page: number;
  clock: Clock;
}

function Listed({ c, history: { done, refused }, page, clock }: ListedProps) {
  if (done === undefined)
    return <Missing>Couldn’t load earlier runs: Holdfast’s own database is unavailable. {refused?.message}</Missing>;
  const { results, count, upToDate } = done;
  return (
    <>
      {upToDate ? null : <Missing>Couldn’t reach the core: newer runs may be missing.</Missing>}
      {results.length === 0 ? (
        <Empty>
          <p>{count > 0 ? 'No runs on this page' : 'No runs yet'}.</p>
          <p>
            Runs delete data older than the policy allows. <a href="/database/retention">Set a retention policy</a>.
            Without days nothing is ever deleted.
          </p>
        </Empty>
      ) : (
        <RunTable runs={results} clock={clock} />
      )}
      <Pager url={new URL(c.req.url)} page={page} pageSize={PAGE_SIZE} count={count} />
    </>
  );
}

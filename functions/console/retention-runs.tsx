// /database/runs: what runs of retention have deleted and when the next one is. /database/runs/new: a run now, which somebody
// orders by typing how much it deletes.

import type { Deps } from '../../shared/http/deps.ts';
import type { App } from '../../shared/http/env.ts';
import type { RetentionRun } from '../../shared/ports/retention-book.ts';
import { keepRetentionHistory } from '../../shared/verbs/keep-retention-history.ts';
import { openRetentionJob } from '../../shared/verbs/retention-jobs.ts';
import { type RetentionState, retentionState } from '../../shared/verbs/retention-state.ts';
import { type Clock, clockOf } from '../pages/clock.ts';
import { type Attempt, attempt } from '../pages/form.ts';
import { framed } from '../pages/frame.tsx';
import { isAdmin, type PageContext, pagesOf } from '../pages/page-routes.ts';
import { Card, Facts } from '../pages/parts/card.tsx';
import { Missing } from '../pages/parts/notice.tsx';
import { Empty, pageNumber, Pager } from '../pages/parts/table.tsx';
import { When } from '../pages/parts/time.tsx';
import { DatabaseTabs } from './database-tabs.tsx';
import { scheduleNow } from './retention-editor.tsx';
import { runOrderPage } from './run-order.tsx';
import { RunTable } from './run-table.tsx';

const PAGE_SIZE = 50;
/** Whoever reads the history does not wait longer for a core that is slow. */
const CORE_ASKED_FOR_MS = 500;

interface History {
  results: RetentionRun[];
  count: number;
  upToDate: boolean;
}

/** Adds the routes of this file, and those of the order. */
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
    return framed(c, deps, { title: 'Runs of retention', current: 'database', body });
  });
}

async function historyOf(deps: Deps, page: number): Promise<History> {
  const { upToDate } = await deps.together('retention.history.soon', () =>
    keepRetentionHistory(deps, CORE_ASKED_FOR_MS),
  );
  return { ...(await deps.retentionBook.runs((page - 1) * PAGE_SIZE, PAGE_SIZE)), upToDate };
}

interface NextRunProps {
  state: Attempt<RetentionState>;
  jobId: string | undefined;
  clock: Clock;
  isAdmin: boolean;
}

function NextRun({ state: { done: state, refused }, jobId, clock, isAdmin }: NextRunProps) {
  if (state === undefined) return <Missing>When the next run is cannot be told now: {refused?.message}</Missing>;
  const [next] = state.next_runs;
  return (
    <Card title="Next run">
      <Facts
        of={{
          When: next === undefined ? 'none is due: there is no schedule' : <When at={next} clock={clock} relative />,
          Schedule: scheduleNow(state),
        }}
      />
      <div class="row after">
        {jobId === undefined ? null : (
          <a class="button primary" href={`/jobs/${jobId}`}>
            Follow the run that goes on
          </a>
        )}
        {jobId === undefined && isAdmin && state.unit === 'days' ? (
          <a class="button" href="/database/runs/new">
            Run now…
          </a>
        ) : null}
        <a class="button" href="/database/retention">
          Change days or schedule
        </a>
      </div>
      {state.unit === 'seconds' ? (
        <p class="fine after">
          This core is a TAK Server release: it has no call that begins a run, so nobody can order one here. It runs by
          its schedule.
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
    return <Missing>Earlier runs cannot be read: Holdfast's own database does not answer. {refused?.message}</Missing>;
  const { results, count, upToDate } = done;
  return (
    <>
      {upToDate ? null : <Missing>The core could not be asked just now: there may be later runs than these.</Missing>}
      {results.length === 0 ? (
        <Empty>
          <p>No run yet{count > 0 ? ' on this page' : ''}.</p>
          <p>
            Runs delete what is older than its days. <a href="/database/retention">Say what is kept how long</a>;
            without days nothing is ever deleted.
          </p>
        </Empty>
      ) : (
        <RunTable runs={results} clock={clock} />
      )}
      <Pager url={new URL(c.req.url)} page={page} pageSize={PAGE_SIZE} count={count} />
    </>
  );
}

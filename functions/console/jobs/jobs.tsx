// GET /jobs: long work that somebody has asked for, newest first; live while some of it goes on.

import type { App } from '../../../shared/http/context.ts';
import type { Deps } from '../../../shared/http/deps.ts';
import { OPS_JOB_STATES, type OpsJob } from '../../../shared/jobs/port.ts';
import { type Clock, clockOf } from '../../pages/clock.ts';
import { framed } from '../../pages/frame.tsx';
import { pagesOf } from '../../pages/page-routes.ts';
import { Filters, Select } from '../../pages/parts/field.tsx';
import { StatusBadge } from '../../pages/parts/notice.tsx';
import { Empty, pageNumber, Pager, Table } from '../../pages/parts/table.tsx';
import { When } from '../../pages/parts/time.tsx';
import { isOpen, jobInWords, JobProgress, kindInWords, KNOWN_KINDS, stateOf } from './progress.tsx';
import { resultInWords } from './result.tsx';

const PAGE_SIZE = 50;

/** Adds the route of this file. */
export function jobsPage(app: App, deps: Deps): void {
  pagesOf(app, deps, ['console']).get('/jobs', { access: 'viewer' }, async function showJobs(c) {
    const page = pageNumber(c.req.query('page'));
    const kind = KNOWN_KINDS.find((each) => each === c.req.query('kind'));
    const state = OPS_JOB_STATES.find((each) => each === c.req.query('state'));
    const filter = { ...(kind === undefined ? {} : { kind }), ...(state === undefined ? {} : { state }) };
    const { results, count } = await deps.opsJobs.list(filter, (page - 1) * PAGE_SIZE, PAGE_SIZE);
    const isFiltered = kind !== undefined || state !== undefined;
    const set = [
      ...(kind === undefined ? [] : [kindInWords(kind)]),
      ...(state === undefined ? [] : [stateOf({ state }).word]),
    ];
    const body = (
      <>
        <Filters action="/jobs" set={set}>
          <Select
            name="kind"
            label="Kind"
            value={kind}
            choices={[any, ...KNOWN_KINDS.map((value) => ({ value, label: kindInWords(value) }))]}
          />
          <Select
            name="state"
            label="State"
            value={state}
            choices={[any, ...OPS_JOB_STATES.map((value) => ({ value, label: stateOf({ state: value }).word }))]}
          />
        </Filters>
        {results.length === 0 ? <None isFiltered={isFiltered} /> : <Listed jobs={results} clock={clockOf(deps)} />}
        {count === 0 ? null : <Pager url={new URL(c.req.url)} page={page} pageSize={PAGE_SIZE} count={count} />}
      </>
    );
    return framed(c, deps, { title: 'Jobs', current: 'jobs', body });
  });
}

const any = { value: '', label: 'Any' };

function None({ isFiltered }: { isFiltered: boolean }) {
  if (isFiltered)
    return (
      <Empty>
        No job is like that. <a href="/jobs">Show all of them</a>.
      </Empty>
    );
  return (
    <Empty>
      Nobody has asked for long work in the last 90 days. It begins on the pages <a href="/database/vacuum">Vacuum</a>{' '}
      and <a href="/database/retention">Retention</a>.
    </Empty>
  );
}

function Listed({ jobs, clock }: { jobs: OpsJob[]; clock: Clock }) {
  const live = jobs.some(isOpen) ? { 'data-live': 'self', 'data-every': '5' } : {};
  return (
    <div id="jobs" data-refresh {...live}>
      {jobs.some(isOpen) ? <noscript>Reload this page to see how far they are by then.</noscript> : null}
      <Table
        caption="Jobs, newest first"
        columns={[
          { label: 'Job' },
          { label: 'State' },
          { label: 'Asked for' },
          { label: 'By' },
          { label: 'What came of it' },
        ]}
        rows={jobs.map((job) => {
          const { status, word } = stateOf(job);
          return [
            <a href={`/jobs/${job.id}`}>{jobInWords(job)}</a>,
            <StatusBadge status={status}>{word}</StatusBadge>,
            <When at={job.createdAt} clock={clock} relative />,
            <span class="whole">{job.actor}</span>,
            isOpen(job) ? <JobProgress job={job} clock={clock} /> : (resultInWords(job) ?? job.error ?? '-'),
          ];
        })}
      />
    </div>
  );
}

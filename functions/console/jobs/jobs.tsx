// GET /jobs: lists long-running jobs, newest first; refreshes while one is open.

import { AppError } from '@holdfast/kit/app-error';
import { counted, formatDuration } from '@holdfast/kit/format';
import type { App } from '../../../shared/http/context.ts';
import type { Deps } from '../../../shared/http/deps.ts';
import { textOf } from '../../../shared/jobs/ordered-jobs.ts';
import { OPS_JOB_STATES, type OpsJob } from '../../../shared/jobs/port.ts';
import { framed } from '../../pages/frame.tsx';
import { pagesOf } from '../../pages/page-routes.ts';
import { Card, Facts } from '../../pages/parts/card.tsx';
import { Filters, Select } from '../../pages/parts/field.tsx';
import { StatusBadge } from '../../pages/parts/notice.tsx';
import { Empty, pageNumber, Pager, Table } from '../../pages/parts/table.tsx';
import { type Clock, clockOf, timeInZone, When } from '../../pages/parts/time.tsx';
import { adviceOf, isOpen, formatJob, JobProgress, formatKind, KNOWN_KINDS, stateOf } from './progress.tsx';
import { JobResult, formatResult } from './result.tsx';

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
      ...(kind === undefined ? [] : [formatKind(kind)]),
      ...(state === undefined ? [] : [stateOf({ state }).word]),
    ];
    const body = (
      <>
        <Filters action="/jobs" set={set}>
          <Select
            name="kind"
            label="Kind"
            value={kind}
            choices={[any, ...KNOWN_KINDS.map((value) => ({ value, label: formatKind(value) }))]}
          />
          <Select
            name="state"
            label="Status"
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
        No jobs match these filters. <a href="/jobs">Clear filters</a>.
      </Empty>
    );
  return (
    <Empty>
      No jobs in the last 90 days. Start one under <a href="/database/vacuum">Vacuum</a> or{' '}
      <a href="/database/runs">Retention runs</a>.
    </Empty>
  );
}

function Listed({ jobs, clock }: { jobs: OpsJob[]; clock: Clock }) {
  const live = jobs.some(isOpen) ? { 'data-live': 'self', 'data-every': '5' } : {};
  return (
    <div id="jobs" data-refresh {...live}>
      {jobs.some(isOpen) ? <noscript>Reload this page to see progress.</noscript> : null}
      <Table
        caption="Jobs, newest first"
        columns={[
          { label: 'Job' },
          { label: 'Status' },
          { label: 'Created' },
          { label: 'Requested by' },
          { label: 'Result' },
        ]}
        rows={jobs.map((job) => {
          const { status, word } = stateOf(job);
          return [
            <a href={`/jobs/${job.id}`}>{formatJob(job)}</a>,
            <StatusBadge status={status}>{word}</StatusBadge>,
            <When at={job.createdAt} clock={clock} relative />,
            <span class="whole">{job.actor}</span>,
            isOpen(job) ? <JobProgress job={job} clock={clock} /> : (formatResult(job) ?? job.error ?? '-'),
          ];
        })}
      />
    </div>
  );
}

/** How many of the last lines are visible without unfolding. */
const SHOWN = 20;

/** The log of a job, with times in the zone of the stack. */
export function JobLog({ lines, clock }: { lines: readonly string[]; clock: Clock }) {
  if (lines.length === 0) return <p class="fine">No log lines yet.</p>;
  const earlier = lines.slice(0, -SHOWN);
  return (
    <>
      {earlier.length === 0 ? null : (
        <details class="rest" id="earlier">
          <summary>{counted(earlier.length, 'earlier line')}</summary>
          <Lines lines={earlier} clock={clock} />
        </details>
      )}
      <Lines lines={lines.slice(-SHOWN)} clock={clock} />
    </>
  );
}

function Lines({ lines, clock }: { lines: readonly string[]; clock: Clock }) {
  return (
    <ol class="saidlines">
      {lines.map((line) => {
        const at = line.slice(0, line.indexOf(' '));
        return (
          <li>
            <time datetime={at}>{timeInZone(at, clock.timeZone, { seconds: true }).slice(11)}</time>{' '}
            <span>{textOf(line)}</span>
          </li>
        );
      })}
    </ol>
  );
}

/** Adds the route of this file. */
export function jobPage(app: App, deps: Deps): void {
  pagesOf(app, deps, ['console']).get('/jobs/:id', { access: 'viewer' }, async function showJob(c) {
    const job = await deps.opsJobs.get(c.req.param('id')?.toLowerCase() ?? '');
    if (job === undefined)
      throw new AppError('not_found', 'Job not found. Finished jobs are kept for 90 days. See the list of jobs.');
    const actions = (
      <a class="button" href="/jobs">
        All jobs
      </a>
    );
    const body = <Job job={job} clock={clockOf(deps)} />;
    return framed(c, deps, { title: formatJob(job), current: 'jobs', body, actions });
  });
}

function Job({ job, clock }: { job: OpsJob; clock: Clock }) {
  const { status, word, means } = stateOf(job);
  const live = isOpen(job) ? { 'data-live': 'self', 'data-every': '2' } : {};
  const level = status === 'critical' || status === 'warning' ? status : undefined;
  return (
    <div id="job" data-refresh {...live}>
      <Card {...(level === undefined ? {} : { class: level })}>
        <p>
          <StatusBadge status={status}>{word}</StatusBadge> {means}
        </p>
        {isOpen(job) ? <noscript>Reload this page to see progress.</noscript> : null}
        <JobProgress job={job} clock={clock} />
        <Outcome job={job} />
      </Card>
      <div class="columns">
        <Card title="Details">
          <About job={job} clock={clock} />
        </Card>
        <Card title="Log">
          <JobLog lines={job.log} clock={clock} />
        </Card>
      </div>
    </div>
  );
}

function Outcome({ job }: { job: OpsJob }) {
  if (isOpen(job)) return null;
  const words = formatResult(job);
  const advice = adviceOf(job);
  return (
    <>
      {words === undefined ? null : <p class="outcome">{words}</p>}
      {job.error === null ? null : <p>{job.error}</p>}
      {advice === undefined ? null : (
        <>
          <p>{advice.words}</p>
          <p>
            <a class="button" href={advice.path}>
              {advice.label}
            </a>
          </p>
        </>
      )}
      <JobResult job={job} />
    </>
  );
}

function About({ job, clock }: { job: OpsJob; clock: Clock }) {
  const { createdAt, startedAt, finishedAt, actor, id } = job;
  const began = Date.parse(startedAt ?? createdAt);
  return (
    <Facts
      of={{
        'Requested by': actor,
        Created: <When at={createdAt} clock={clock} relative />,
        Started: <When at={startedAt} clock={clock} never="not yet" />,
        Finished: finishedAt === null ? undefined : <When at={finishedAt} clock={clock} />,
        Duration: finishedAt === null ? undefined : formatDuration(Date.parse(finishedAt) - began),
        'Job ID': <code>{id}</code>,
      }}
    />
  );
}

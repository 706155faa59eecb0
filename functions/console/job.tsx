// GET /jobs/{id}: one long work, followed live until it ends, then what became of it.

import { AppError } from '../../shared/domain/app-error.ts';
import { durationInWords } from '../../shared/domain/amounts.ts';
import type { Deps } from '../../shared/http/deps.ts';
import type { App } from '../../shared/http/env.ts';
import type { OpsJob } from '../../shared/ports/ops-jobs.ts';
import { type Clock, clockOf } from '../pages/clock.ts';
import { framed } from '../pages/frame.tsx';
import { pagesOf } from '../pages/page-routes.ts';
import { Card, Facts } from '../pages/parts/card.tsx';
import { StatusBadge } from '../pages/parts/status.tsx';
import { When } from '../pages/parts/time.tsx';
import { JobLog } from './job-log.tsx';
import { JobProgress } from './job-progress.tsx';
import { JobResult, resultInWords } from './job-result.tsx';
import { adviceOf, isOpen, jobInWords, stateOf } from './job-words.ts';

/** Adds the route of this file. */
export function jobPage(app: App, deps: Deps): void {
  pagesOf(app, deps, ['console']).get('/jobs/:id', { access: 'viewer' }, async function showJob(c) {
    const job = await deps.opsJobs.get(c.req.param('id')?.toLowerCase() ?? '');
    if (job === undefined)
      throw new AppError('not_found', 'There is no such job. What has ended is kept for 90 days; Jobs lists the rest.');
    const actions = (
      <a class="button" href="/jobs">
        All jobs
      </a>
    );
    const body = <Job job={job} clock={clockOf(deps)} />;
    return framed(c, deps, { title: jobInWords(job), current: 'jobs', body, actions });
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
        {isOpen(job) ? <noscript>Reload this page to see how far it is by then.</noscript> : null}
        <JobProgress job={job} clock={clock} />
        <Outcome job={job} />
      </Card>
      <div class="columns">
        <Card title="About it">
          <About job={job} clock={clock} />
        </Card>
        <Card title="What it said">
          <JobLog lines={job.log} clock={clock} />
        </Card>
      </div>
    </div>
  );
}

function Outcome({ job }: { job: OpsJob }) {
  if (isOpen(job)) return null;
  const words = resultInWords(job);
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
        'Asked for by': actor,
        'Asked for': <When at={createdAt} clock={clock} relative />,
        Began: <When at={startedAt} clock={clock} never="not yet" />,
        Ended: finishedAt === null ? undefined : <When at={finishedAt} clock={clock} />,
        Took: finishedAt === null ? undefined : durationInWords(Date.parse(finishedAt) - began),
        Number: <code>{id}</code>,
      }}
    />
  );
}

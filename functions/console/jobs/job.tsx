// GET /jobs/{id}: one long work, followed live until it ends, then what became of it.

import { AppError } from '@holdfast/kit/app-error';
import { counted, durationInWords } from '@holdfast/kit/format';
import type { App } from '../../../shared/http/context.ts';
import type { Deps } from '../../../shared/http/deps.ts';
import { textOf } from '../../../shared/jobs/job-log.ts';
import type { OpsJob } from '../../../shared/jobs/port.ts';
import { type Clock, clockOf, timeInZone } from '../../pages/clock.ts';
import { framed } from '../../pages/frame.tsx';
import { pagesOf } from '../../pages/page-routes.ts';
import { Card, Facts } from '../../pages/parts/card.tsx';
import { StatusBadge } from '../../pages/parts/notice.tsx';
import { When } from '../../pages/parts/time.tsx';
import { adviceOf, isOpen, jobInWords, JobProgress, stateOf } from './progress.tsx';
import { JobResult, resultInWords } from './result.tsx';

// The log of a job, with its times in the zone of the stack.

/** So many of the last lines are shown at once. */
const SHOWN = 20;

export function JobLog({ lines, clock }: { lines: readonly string[]; clock: Clock }) {
  if (lines.length === 0) return <p class="fine">Nothing was said yet.</p>;
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

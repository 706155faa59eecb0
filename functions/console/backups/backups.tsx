// /backups: lists backups and how far each is proven, follows the one in progress, and starts,
// proves and keeps them. Says how to restore one.

import type { AppError } from '@holdfast/kit/app-error';
import { counted, formatBytes, formatSeconds, rounded } from '@holdfast/kit/format';
import { BACKUP_JOB } from '../../../shared/backups/jobs.ts';
import type { BackupRun } from '../../../shared/backups/port.ts';
import { markPermanent, startBackup, startProof } from '../../../shared/backups/start.ts';
import { type BackupsView, backupsView, keyOf, restoreCommand } from '../../../shared/backups/view.ts';
import type { App } from '../../../shared/http/context.ts';
import type { Deps } from '../../../shared/http/deps.ts';
import { goTo } from '../../../shared/http/page.tsx';
import { actingIn } from '../../../shared/http/sign-in.ts';
import { openJob } from '../../../shared/jobs/ordered-jobs.ts';
import type { OpsJob } from '../../../shared/jobs/port.ts';
import { type Attempt, attempt, formOf } from '../../pages/form.ts';
import { framed } from '../../pages/frame.tsx';
import { isAdmin, type PageContext, pagesOf } from '../../pages/page-routes.ts';
import { Card, Copyable, Facts } from '../../pages/parts/card.tsx';
import { Checks } from '../../pages/parts/field.tsx';
import { Missing, Notice, Problem, Warning } from '../../pages/parts/notice.tsx';
import { Empty } from '../../pages/parts/table.tsx';
import { type Clock, clockOf, When } from '../../pages/parts/time.tsx';
import { BackupList } from './list.tsx';

const PATH = '/backups';

const DONE = {
  run: 'Backup requested. It starts within a few seconds.',
  proof: 'Proof requested. It starts within a few seconds.',
  kept: 'Marked as permanent. The keep rules never delete it.',
  released: 'No longer permanent. The keep rules may delete it.',
};

/** Adds the routes of this file. */
export function backupsPage(app: App, deps: Deps): void {
  const pages = pagesOf(app, deps, ['console']);
  pages.get(PATH, { access: 'viewer' }, (c) => showBackups(c, deps));
  pages.post(PATH, { access: 'admin' }, async function runNow(c) {
    const form = await formOf(c);
    const wanted = form.has('without_history') ? { history: false } : {};
    return answer(c, deps, 'run', () => startBackup(actingIn(c, deps), wanted));
  });
  pages.post(`${PATH}/:name/proof`, { access: 'admin' }, (c) =>
    answer(c, deps, 'proof', () => startProof(actingIn(c, deps), nameIn(c))),
  );
  pages.post(`${PATH}/:name/permanent`, { access: 'admin' }, async function keep(c) {
    const permanent = (await formOf(c)).text('permanent') === 'true';
    return answer(c, deps, permanent ? 'kept' : 'released', () =>
      markPermanent(actingIn(c, deps), { name: nameIn(c), permanent }),
    );
  });
}

function nameIn(c: PageContext): string {
  return c.req.param('name') ?? '';
}

async function answer(
  c: PageContext,
  deps: Deps,
  done: keyof typeof DONE,
  work: () => Promise<unknown>,
): Promise<Response> {
  const { refused } = await attempt(work, 'not_found');
  return refused === undefined ? goTo(c, `${PATH}?done=${done}`) : showBackups(c, deps, refused);
}

async function showBackups(c: PageContext, deps: Deps, refused?: AppError): Promise<Response> {
  const [view, job] = await Promise.all([attempt(() => backupsView(deps)), openJob(deps.opsJobs, BACKUP_JOB)]);
  const body = (
    <>
      <Notice c={c} sentences={DONE} />
      <Problem error={refused} />
      <Content view={view} job={job} deps={deps} mayChange={isAdmin(c)} />
    </>
  );
  const actions = (
    <a class="button" href="/backups/emergency-sheet">
      Emergency sheet
    </a>
  );
  return framed(c, deps, { title: 'Backups', current: 'backups', body, actions, refused });
}

interface ContentProps {
  view: Attempt<BackupsView>;
  job: OpsJob | undefined;
  deps: Deps;
  mayChange: boolean;
}

function Content({ view: { done: view, refused }, job, deps, mayChange }: ContentProps) {
  if (view === undefined)
    return (
      <div id="backups" data-refresh data-live="self" data-every="15">
        <Missing>Couldn’t load the backups. {refused?.message} Nothing else is affected.</Missing>
        <HowToRestore deps={deps} archive="FILE" />
      </div>
    );
  if (!view.wanted)
    return (
      <Empty>
        <p>No backups are made: BACKUP_TARGET is not set.</p>
        <p>
          Set <code>BACKUP_TARGET</code> to a directory on another disk or <code>s3://BUCKET/PREFIX</code>, and{' '}
          <code>BACKUP_PASSPHRASE</code>, in <code>.env</code>. Then restart.
        </p>
      </Empty>
    );
  const clock = clockOf(deps);
  const isBusy = view.running !== null || job !== undefined;
  const proven = view.backups.find((each) => each.proven);
  return (
    <div id="backups" data-refresh data-live="self" data-every={isBusy ? '2' : '15'}>
      {isBusy ? <noscript>Reload this page to see progress.</noscript> : null}
      <Troubles view={view} clock={clock} />
      <Running run={view.running} job={job} clock={clock} />
      {mayChange && !isBusy ? <RunNow view={view} /> : null}
      <BackupList backups={view.backups} mayChange={mayChange} isBusy={isBusy} clock={clock} />
      <div class="columns">
        <HowToRestore deps={deps} archive={proven?.name ?? view.backups[0]?.name ?? 'FILE'} />
        <Configured view={view} clock={clock} />
      </div>
    </div>
  );
}

function Troubles({ view: { target, last_failure: failure }, clock }: { view: BackupsView; clock: Clock }) {
  return (
    <>
      {target === null || target.error === null ? null : (
        <Warning>
          The target {target.place} can’t be used: {target.error}
        </Warning>
      )}
      {failure === null ? null : (
        <Warning>
          The last {failure.kind} failed (<When at={failure.at} clock={clock} relative />
          ): {failure.error} <a href="/jobs?kind=backup">See the jobs</a>.
        </Warning>
      )}
    </>
  );
}

function Running({ run, job, clock }: { run: BackupRun | null; job: OpsJob | undefined; clock: Clock }) {
  const details = job === undefined ? null : <a href={`/jobs/${job.id}`}>Details</a>;
  if (run === null)
    return job === undefined ? null : (
      <Card title="In progress">
        <p>
          {job.state === 'queued' ? 'A run was requested. It starts within a few seconds.' : 'The run is ending.'}{' '}
          {details}
        </p>
      </Card>
    );
  const { kind, name, started_at: started, phase, percent, bytes_per_second: rate, seconds_left: left } = run;
  const figures = [
    ...(rate === null ? [] : [`${formatBytes(rate)}/s`]),
    ...(left === null ? [] : [`about ${formatSeconds(Math.max(1, Math.round(left)))} left`]),
  ];
  return (
    <Card title={kind === 'proof' ? 'Proof in progress' : 'Backup in progress'} aside={details}>
      <div class="howfar">
        {percent === null ? (
          <progress aria-label="Progress" />
        ) : (
          <progress max="100" value={String(percent)} aria-label="Progress">
            {rounded(percent, 0)} %
          </progress>
        )}
        <p>
          {percent === null ? null : <strong>{rounded(percent, 0)} % - </strong>}
          {phase}
          {figures.length === 0 ? null : ` (${figures.join(', ')})`}
        </p>
        <p class="fine">
          Started <When at={started} clock={clock} relative />
          {name === null ? null : `: ${name}`}. You can leave this page.
        </p>
      </div>
    </Card>
  );
}

function RunNow({ view: { proof, history } }: { view: BackupsView }) {
  return (
    <Card title="Run now">
      <form method="post" action={PATH}>
        <p>Makes a backup while everything keeps running{proof === 'always' ? ', and proves it afterwards' : ''}.</p>
        {history ? (
          <Checks
            legend="Contents"
            name="without_history"
            choices={[{ value: 'true', label: 'Leave out the history of CoT and chat messages' }]}
            chosen={[]}
          />
        ) : null}
        <button type="submit">Run now</button>
      </form>
    </Card>
  );
}

function HowToRestore({ deps, archive }: { deps: Deps; archive: string }) {
  const { option, where } = keyOf(deps.settings);
  const isEmbedded = deps.monitored.wanted.container === undefined;
  return (
    <Card title="How to restore">
      <ol>
        <li>Take a machine with Holdfast {deps.release} or newer. Nothing of the old stack is needed.</li>
        <li>Copy the archive there, and write the key to a file that only you can read. {where}</li>
        <li>
          Run{' '}
          <Copyable
            id="restore-command"
            text={restoreCommand(archive, option, isEmbedded, deps.settings.CORE_RELEASE)}
          />
        </li>
      </ol>
      <p class="fine">
        A restore checks the whole archive first. Devices connect with the certificates that they have.{' '}
        <a href="/backups/emergency-sheet">Print the emergency sheet</a>, which works without this server.
      </p>
    </Card>
  );
}

function formatFree(target: BackupsView['target']): string {
  return target === null || target.free_bytes === null ? 'unknown' : formatBytes(target.free_bytes);
}

const PROOFS = { always: 'after every backup', weekly: 'once a week', off: 'never (BACKUP_PROOF=off)' };

function Configured({ view, clock }: { view: BackupsView; clock: Clock }) {
  const { target, encryption, proof, cron, time_zone: zone, next_at: next, history, keep_days: days } = view;
  const { keep_count: count } = view;
  return (
    <Card title="Settings">
      <Facts
        of={{
          Target: target?.place,
          'Free room': formatFree(target),
          Encryption: encryption ?? 'not set: no backup can be made',
          Proof: PROOFS[proof],
          Schedule: `${cron} (${zone})`,
          'Next backup': <When at={next} clock={clock} relative />,
          History: history ? 'included' : 'left out (BACKUP_HISTORY=false)',
          Kept: `for ${counted(days, 'day')}, and at least ${count}; permanent ones and the last proven one always`,
        }}
      />
      <p class="fine after">
        Set by the variables <code>BACKUP_*</code> in <code>.env</code>; a restart applies a change.
      </p>
    </Card>
  );
}

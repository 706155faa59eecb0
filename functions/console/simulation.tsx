// GET /simulation: starts simulated clients in a channel of their own, follows and stops them, and
// shows the last reports.

import { AppError } from '@holdfast/kit/app-error';
import { counted, formatBytes, grouped, rounded } from '@holdfast/kit/format';
import type { App } from '../../shared/http/context.ts';
import type { Deps } from '../../shared/http/deps.ts';
import { goTo } from '../../shared/http/page.tsx';
import { actingIn } from '../../shared/http/sign-in.ts';
import { openJob } from '../../shared/jobs/ordered-jobs.ts';
import type { OpsJob } from '../../shared/jobs/port.ts';
import { isToStop, readSimulationJob, SIMULATION_JOB, type SimulationMemory } from '../../shared/simulation/jobs.ts';
import {
  MAX_EVERY,
  MAX_MINUTES,
  MAX_RAMP,
  type SimulationBounds,
  simulationBounds,
  startSimulation,
  stopSimulation,
} from '../../shared/simulation/start.ts';
import { type Attempt, attempt, faultOf, type Form, formOf } from '../pages/form.ts';
import { framed } from '../pages/frame.tsx';
import { isAdmin, type PageContext, pagesOf } from '../pages/page-routes.ts';
import { Card, Facts } from '../pages/parts/card.tsx';
import { Field } from '../pages/parts/field.tsx';
import { Missing, Notice, Problem } from '../pages/parts/notice.tsx';
import { Table } from '../pages/parts/table.tsx';
import { type Clock, clockOf, When } from '../pages/parts/time.tsx';
import { JobProgress, stateOf } from './jobs/progress.tsx';
import { formatResult } from './jobs/result.tsx';

const PATH = '/simulation';
const LAST = 5;

const DONE = {
  started: 'Simulation requested. It starts within a few seconds.',
  stopping: 'Stopping. Everything of the simulation is removed within a minute.',
};

const FIELDS = ['clients', 'minutes', 'ramp', 'every'] as const;
const DEFAULTS = { clients: '50', minutes: '2', ramp: '10', every: '5' };

/** Adds the routes of this file. */
export function simulationPage(app: App, deps: Deps): void {
  const pages = pagesOf(app, deps, ['console']);
  pages.get(PATH, { access: 'viewer' }, (c) => showPage(c, deps));
  pages.post(PATH, { access: 'admin' }, async function start(c) {
    const form = await formOf(c);
    const [clients = 0, minutes = 0, ramp = 0, every = 0] = FIELDS.map((name) => numberIn(form, name));
    const { refused } = await attempt(() => startSimulation(actingIn(c, deps), { clients, minutes, ramp, every }));
    return refused === undefined ? goTo(c, `${PATH}?done=started`) : showPage(c, deps, refused, form);
  });
  pages.post(`${PATH}/stop`, { access: 'admin' }, async function stop(c) {
    const { refused } = await attempt(() => stopSimulation(actingIn(c, deps)), 'not_found');
    return refused === undefined ? goTo(c, `${PATH}?done=stopping`) : showPage(c, deps, refused);
  });
}

/** Whatever is no number is out of bounds. */
function numberIn(form: Form, name: string): number {
  const text = form.text(name);
  return /^\d{1,6}$/.test(text) ? Number(text) : Number.NaN;
}

async function showPage(c: PageContext, deps: Deps, refused?: AppError, form?: Form): Promise<Response> {
  const [job, { results: last }, bounds] = await Promise.all([
    openJob(deps.opsJobs, SIMULATION_JOB),
    deps.opsJobs.list({ kind: SIMULATION_JOB }, 0, LAST + 1),
    attempt(() => simulationBounds(deps), 'not_supported'),
  ]);
  const clock = clockOf(deps);
  const mayStart = isAdmin(c);
  const body = (
    <>
      <Notice c={c} sentences={DONE} />
      <Problem error={refused} />
      <div id="simulation" data-refresh {...(job === undefined ? {} : { 'data-live': 'self', 'data-every': '2' })}>
        {job === undefined ? null : <Running job={job} clock={clock} mayStop={mayStart} />}
        <Visibility />
        {job === undefined && mayStart ? <Start bounds={bounds} form={form} refused={refused} /> : null}
        <LastRuns jobs={last.filter(({ id }) => id !== job?.id).slice(0, LAST)} clock={clock} />
      </div>
    </>
  );
  return framed(c, deps, { title: 'Simulation', current: 'simulation', body, refused });
}

function Visibility() {
  return (
    <Card title="Visibility">
      <p>
        Simulated clients move, chat and set marks in the channel EXERCISE. It has no other members, so no person and no
        other device sees any of it. To let people watch, add them to the group EXERCISE while it runs, and remove them
        before the end.
      </p>
      <p class="fine">
        At the end, marks, account, certificate and channel are removed. Events stay in the history until the{' '}
        <a href="/database/retention">retention policy</a> deletes them.
      </p>
    </Card>
  );
}

interface StartProps {
  bounds: Attempt<SimulationBounds>;
  form: Form | undefined;
  refused: AppError | undefined;
}

function Start({ bounds: { done: bounds, refused: missing }, form, refused }: StartProps) {
  if (bounds === undefined)
    return (
      <Missing>
        Couldn’t prepare a simulation here. {missing?.message} From another machine:{' '}
        <code>./scripts/simulate.sh --url URL --clients 50</code>
      </Missing>
    );
  const value = (name: (typeof FIELDS)[number]): string => form?.text(name) ?? DEFAULTS[name];
  const field = { type: 'number', inputmode: 'numeric', required: true } as const;
  const error = (name: (typeof FIELDS)[number]) => faultOf(refused, name);
  const hint = `At most ${bounds.maxClients(5)} on this machine with a position every 5 s, ${bounds.maxClients(30)} every 30 s`;
  return (
    <Card title="Start simulation">
      <form method="post" action={PATH} class="stack">
        <Field
          {...field}
          name="clients"
          label="Clients"
          min={2}
          hint={hint}
          value={value('clients')}
          error={error('clients')}
        />
        <Field
          {...field}
          name="minutes"
          label="Minutes"
          min={1}
          max={MAX_MINUTES}
          value={value('minutes')}
          error={error('minutes')}
        />
        <Field
          {...field}
          name="ramp"
          label="Ramp (s)"
          hint="Time over which they connect, at most 20 a second"
          min={0}
          max={MAX_RAMP}
          value={value('ramp')}
          error={error('ramp')}
        />
        <Field
          {...field}
          name="every"
          label="Time between positions (s)"
          min={1}
          max={MAX_EVERY}
          value={value('every')}
          error={error('every')}
        />
        <button type="submit">Start simulation</button>
      </form>
    </Card>
  );
}

function Running({ job, clock, mayStop }: { job: OpsJob; clock: Clock; mayStop: boolean }) {
  const memory = readSimulationJob(job)?.memory;
  return (
    <Card title="Running" aside={<a href={`/jobs/${job.id}`}>Job</a>}>
      <noscript>Reload this page to see progress.</noscript>
      <JobProgress job={job} clock={clock} />
      <Live memory={memory} />
      {mayStop && !isToStop(job) && memory?.stage !== 'removing' ? (
        <form method="post" action={`${PATH}/stop`}>
          <button type="submit" class="danger">
            Stop simulation
          </button>
        </form>
      ) : null}
    </Card>
  );
}

function Live({ memory }: { memory: SimulationMemory | undefined }) {
  const report = memory?.report ?? null;
  if (memory === undefined || report === null) return null;
  const { delivered, expected, p50_ms: p50, p99_ms: p99 } = report;
  const lost = Math.max(0, expected - delivered);
  const share = memory.cpu?.share ?? null;
  return (
    <Facts
      of={{
        Connected: counted(report.connected, 'client'),
        Delivered: `${grouped(delivered)} of ${grouped(expected)}`,
        'Lost or on the way': `${grouped(lost)}${memory.thinning_seconds > 0 ? ', with positions that thinning leaves out' : ''}`,
        Latency: p50 === null || p99 === null ? 'none yet' : `p50 ${p50} ms, p99 ${p99} ms`,
        'CPU of the core': share === null ? undefined : `${rounded(share * 100, 1)} % of a processor`,
        'Memory of the core': memory.memory_bytes === null ? undefined : formatBytes(memory.memory_bytes),
      }}
    />
  );
}

function LastRuns({ jobs, clock }: { jobs: readonly OpsJob[]; clock: Clock }) {
  if (jobs.length === 0) return null;
  const rows = jobs.map((job) => [
    <a href={`/jobs/${job.id}`}>
      <When at={job.createdAt} clock={clock} />
    </a>,
    job.actor,
    stateOf(job).word,
    formatResult(job) ?? job.error ?? '-',
  ]);
  const columns = ['Started', 'By', 'Status', 'Report'].map((label) => ({ label }));
  return <Table caption="Last simulations" columns={columns} rows={rows} />;
}

// /database/retention: what is kept how long. A change is previewed first, with what it deletes for ever; only then it can be
// saved, and only while what is in force is still what the preview compared with.

import type { Child } from 'hono/jsx';
import { AppError } from '@holdfast/kit/app-error';
import { RETAINED, type RetentionUnit, toPolicyView } from '@holdfast/kit/retention';
import { capitalised } from '@holdfast/kit/text';
import type { Measurement } from '../../../shared/health/port.ts';
import type { App } from '../../../shared/http/context.ts';
import type { Deps } from '../../../shared/http/deps.ts';
import { goTo } from '../../../shared/http/page.tsx';
import { actingIn } from '../../../shared/http/sign-in.ts';
import { changeRetention } from '../../../shared/retention/change.ts';
import { retentionInForce } from '../../../shared/retention/in-force.ts';
import { knownUnit, type RetentionState, retentionState, type ArchivingView } from '../../../shared/retention/state.ts';
import { attempt, formOf } from '../../pages/form.ts';
import { framed } from '../../pages/frame.tsx';
import { isAdmin, type PageContext, pagesOf } from '../../pages/page-routes.ts';
import { Card, Facts } from '../../pages/parts/card.tsx';
import { Missing, Notice, Problem, StatusBadge, Warning } from '../../pages/parts/notice.tsx';
import { type Clock, clockOf, When } from '../../pages/parts/time.tsx';
import { DatabaseTabs } from '../database/tabs.tsx';
import { baseOf, type Draft, draftFrom, formatKept, targetOf, TYPE_WORDS } from './draft.ts';
import { RetentionEditor, scheduleNow } from './editor.tsx';
import { figuresOf, mustBeSeen, RetentionPreview } from './preview.tsx';

interface NowProps {
  state: RetentionState;
  /** The module retention as it was measured last. */
  health: Measurement | null;
  clock: Clock;
}

/** What is kept how long just now, when the next runs are, and what is odd about it. */
export function RetentionNow({ state, health, clock }: NowProps) {
  const [next] = state.next_runs;
  const limited = RETAINED.filter((type) => state.policy[type] !== null);
  return (
    <Card
      title="In force"
      class={health?.status ?? ''}
      aside={health === null || health.status === 'ok' ? undefined : <StatusBadge status={health.status} />}
    >
      {state.problem === null ? null : <Missing>{state.problem}</Missing>}
      {state.unit === null ? null : (
        <p class="figure-sentence">
          {limited.length === 0
            ? 'Everything is kept for ever: nothing is deleted by age.'
            : `Kept: ${limited.map((type) => `${TYPE_WORDS[type].name.toLowerCase()} ${formatKept(state.policy[type])}`).join(', ')}; everything else for ever.`}
        </p>
      )}
      <Oddities state={state} health={health} />
      <Facts
        of={{
          'Next run':
            next === undefined ? (
              'none: there is no schedule'
            ) : (
              <>
                <When at={next} clock={clock} relative />
                <details class="inline">
                  <summary>The next {state.next_runs.length}</summary>
                  <ul>
                    {state.next_runs.map((at) => (
                      <li>
                        <When at={at} clock={clock} />
                      </li>
                    ))}
                  </ul>
                </details>
              </>
            ),
          Schedule:
            state.cron === '-' ? (
              scheduleNow(state)
            ) : (
              <>
                {scheduleNow(state)} (<code>{state.cron}</code>)
              </>
            ),
          'Counted in': formatUnit(state),
          Missions: formatArchiving(state.mission_archiving),
        }}
      />
      {limited.length === 0 ? null : (
        <p>
          <a class="button" href="/database/retention/preview">
            What the next run deletes
          </a>
        </p>
      )}
    </Card>
  );
}

/** What health complains of and what is odd about the values, each once. */
function Oddities({ state, health }: Pick<NowProps, 'state' | 'health'>) {
  const complaints = health === null || health.status === 'ok' ? [] : health.details;
  const all = [...new Set([...complaints, ...state.notes])];
  if (all.length === 0) return null;
  return (
    <ul class="notice warn">
      {all.map((each) => (
        <li>{inPageTerms(each)}</li>
      ))}
    </ul>
  );
}

function formatUnit({ unit, in_force: from }: RetentionState): string {
  const stands = from === 'files' ? ' (as its files say: the core does not answer)' : '';
  if (unit === null) return 'not known: CORE_RETENTION_UNIT is not set';
  return unit === 'days' ? `days${stands}` : `days here, seconds at the core: it is a TAK Server release${stands}`;
}

function formatArchiving(archiving: ArchivingView | null): string {
  if (archiving === null) return 'when they are archived is not known: the core could not be asked';
  const { cron, time_to_archive_after_no_activity_days: idle, remove_from_archive_after_days: removed } = archiving;
  const { archive_mission_by_no_content_activity: content, archive_mission_by_no_subscription_activity: subscription } =
    archiving;
  if (cron === '-' || (!content && !subscription)) return 'are never archived by themselves';
  const what = [...(content ? ['new content'] : []), ...(subscription ? ['subscribers'] : [])].join(' or ');
  return `archived after ${idle} days without ${what}, removed from the archive after ${removed} days (${cron})`;
}

/** Health speaks to programs of addresses. */
function inPageTerms(sentence: string): string {
  const plain = sentence.replace(
    'look at GET /api/retention/preview before',
    'look below at what the next run deletes',
  );
  return capitalised(plain);
}

const SENTENCES = { saved: 'The policy is saved. Nothing is deleted before the next run.' };
const TITLE = 'What is kept how long';

/** Adds the routes of this file. */
export function retentionPage(app: App, deps: Deps): void {
  const pages = pagesOf(app, deps, ['console']);
  pages.get('/database/retention', { access: 'viewer' }, async function showRetention(c) {
    const { done: state, refused } = await attempt(() => retentionState(deps));
    if (state === undefined) return withoutState(c, deps, refused);
    const body = (
      <>
        <Notice c={c} sentences={SENTENCES} />
        <RetentionNow state={state} health={await healthOf(deps)} clock={clockOf(deps)} />
        <Editor state={state} draft={draftFrom((name) => c.req.query(name), state)} />
      </>
    );
    return shown(c, deps, body);
  });
  pages.get('/database/retention/preview', { access: 'viewer' }, async function previewRetention(c) {
    const { done: state, refused } = await attempt(() => retentionState(deps));
    if (state === undefined) return withoutState(c, deps, refused);
    return showPreview(
      c,
      deps,
      state,
      draftFrom((name) => c.req.query(name), state),
    );
  });
  pages.post('/database/retention', { access: 'admin' }, async function saveRetention(c) {
    const form = await formOf(c);
    const { done: state, refused: unavailable } = await attempt(() => retentionState(deps));
    if (state === undefined) return withoutState(c, deps, unavailable);
    const draft = draftFrom((name) => (form.has(name) ? form.text(name) : undefined), state);
    const { refused } = await attempt(async () => {
      if (form.text('base') !== baseOf(state)) throw changedMeanwhile();
      await save(c, deps, { state, draft, seen: form.text('rows') });
    });
    if (refused === undefined) return goTo(c, '/database/retention?done=saved');
    const { done: now = state } = await attempt(() => retentionState(deps));
    return showPreview(c, deps, now, draft, refused);
  });
}

interface Wanted {
  state: RetentionState;
  draft: Draft;
  /** The rows of the preview. */
  seen: string;
}

async function save(c: PageContext, deps: Deps, { state, draft, seen }: Wanted): Promise<void> {
  const unit = knownUnit(deps);
  const target = await targetOf(deps, state, unit, draft);
  if (target.input === undefined)
    throw new AppError('conflict', 'All of this is in force already: there is nothing to save.');
  await mustBeSeen(deps, state, target, unit, seen);
  const acting = actingIn(c, deps);
  const mustStillBeIn = async (): Promise<void> => {
    await acting.mustStillBeIn();
    await mustBeInForce(deps, unit, baseOf(state));
  };
  await changeRetention({ ...acting, mustStillBeIn }, target.input);
}

async function mustBeInForce(deps: Deps, unit: RetentionUnit, base: string): Promise<void> {
  const { policy, schedule } = await retentionInForce(deps, unit);
  if (baseOf({ policy: toPolicyView(policy), cron: schedule }) !== base) throw changedMeanwhile();
}

function changedMeanwhile(): AppError {
  return new AppError(
    'conflict',
    'Nothing was saved: somebody has changed what is in force since the preview. This is the preview against what is in force now.',
  );
}

async function showPreview(
  c: PageContext,
  deps: Deps,
  state: RetentionState,
  draft: Draft,
  refused?: AppError,
): Promise<Response> {
  const unit = await attempt(async () => knownUnit(deps));
  if (unit.done === undefined) return shown(c, deps, <Problem error={unit.refused} />, unit.refused);
  const counts = unit.done;
  const target = await attempt(() => targetOf(deps, state, counts, draft));
  if (target.done === undefined) {
    const editor = <RetentionEditor state={state} draft={draft} refused={target.refused} title="Change" />;
    const faults = (
      <>
        <Problem error={target.refused} />
        {editor}
      </>
    );
    return shown(c, deps, faults, target.refused);
  }
  const wanted = target.done;
  const figures = await attempt(() => figuresOf(deps, state, wanted, counts));
  const body = (
    <>
      <Problem error={refused} />
      <RetentionPreview
        state={state}
        draft={draft}
        target={wanted}
        figures={figures}
        clock={clockOf(deps)}
        isAdmin={isAdmin(c)}
      />
      <RetentionEditor state={state} draft={draft} title="Try other values" />
    </>
  );
  return shown(c, deps, body, refused);
}

function Editor({ state, draft }: { state: RetentionState; draft: Draft }) {
  if (state.unit !== null) return <RetentionEditor state={state} draft={draft} title="Change" />;
  return (
    <Warning>
      <p>
        Nothing can be changed here yet: it is not known whether this core counts days or seconds. Set{' '}
        <code>CORE_RETENTION_UNIT=days</code> for the embedded core, <code>CORE_RETENTION_UNIT=seconds</code> for a TAK
        Server release, in <code>.env</code>, and restart.
      </p>
    </Warning>
  );
}

async function healthOf(deps: Deps) {
  return (await deps.health.states()).find(({ module }) => module === 'retention')?.measurement ?? null;
}

function withoutState(c: PageContext, deps: Deps, refused: AppError | undefined): Promise<Response> {
  const body = (
    <>
      <Missing>What is in force cannot be read now: {refused?.message ?? ''}</Missing>
      <p>
        Nothing can be changed until the core answers. <a href="/health/core">See how the core is</a>, and reload this
        page in a minute.
      </p>
    </>
  );
  return shown(c, deps, body, refused);
}

function shown(c: PageContext, deps: Deps, body: Child, refused?: AppError): Promise<Response> {
  const content = (
    <>
      <DatabaseTabs current="/database/retention" />
      {body}
    </>
  );
  return framed(c, deps, { title: TITLE, current: 'database', body: content, refused });
}

// /database/retention: shows and changes the retention policy.
// A change must be previewed before it can be saved, and only while the current policy is unchanged
// since.

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
  /** The last measurement of the module retention. */
  health: Measurement | null;
  clock: Clock;
}

/** Shows the current policy, the next runs and any problems. */
export function RetentionNow({ state, health, clock }: NowProps) {
  const [next] = state.next_runs;
  const limited = RETAINED.filter((type) => state.policy[type] !== null);
  return (
    <Card
      title="Current policy"
      class={health?.status ?? ''}
      aside={health === null || health.status === 'ok' ? undefined : <StatusBadge status={health.status} />}
    >
      {state.problem === null ? null : <Missing>{state.problem}</Missing>}
      {state.unit === null ? null : (
        <p class="figure-sentence">
          {limited.length === 0
            ? 'Everything is kept forever. Nothing is deleted by age.'
            : `Kept: ${limited.map((type) => `${TYPE_WORDS[type].name.toLowerCase()} ${formatKept(state.policy[type])}`).join(', ')}. Everything else is kept forever.`}
        </p>
      )}
      <Oddities state={state} health={health} />
      <Facts
        of={{
          'Next run':
            next === undefined ? (
              'none (no schedule)'
            ) : (
              <>
                <When at={next} clock={clock} relative />
                <details class="inline">
                  <summary>Next {state.next_runs.length} runs</summary>
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
          Unit: formatUnit(state),
          Missions: formatArchiving(state.mission_archiving),
        }}
      />
      {limited.length === 0 ? null : (
        <p>
          <a class="button" href="/database/retention/preview">
            Preview next run
          </a>
        </p>
      )}
    </Card>
  );
}

/** Findings of health and notes on the values, each once. */
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
  const origin = from === 'files' ? ' (from its files: the core is unavailable)' : '';
  if (unit === null) return 'unknown: CORE_RETENTION_UNIT is not set';
  return unit === 'days' ? `days${origin}` : `days here, seconds in the core (TAK Server release)${origin}`;
}

function formatArchiving(archiving: ArchivingView | null): string {
  if (archiving === null) return 'archiving unknown: the core is unavailable';
  const { cron, time_to_archive_after_no_activity_days: idle, remove_from_archive_after_days: removed } = archiving;
  const { archive_mission_by_no_content_activity: content, archive_mission_by_no_subscription_activity: subscription } =
    archiving;
  if (cron === '-' || (!content && !subscription)) return 'never archived automatically';
  const what = [...(content ? ['new content'] : []), ...(subscription ? ['subscribers'] : [])].join(' or ');
  return `archived after ${idle} days without ${what}, removed from the archive after ${removed} days (${cron})`;
}

/** Replaces an API address in a finding with words for this page. */
function inPageTerms(sentence: string): string {
  const plain = sentence.replace('check GET /api/retention/preview first', 'check “Preview next run” below first');
  return capitalised(plain);
}

const SENTENCES = { saved: 'Policy saved. Nothing is deleted before the next run.' };
const TITLE = 'Retention policy';

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
    throw new AppError('conflict', 'These values are already in force. There is nothing to save.');
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
    'Nothing was saved: the policy was changed since the preview. This new preview compares with the current policy.',
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
    const editor = <RetentionEditor state={state} draft={draft} refused={target.refused} title="Change policy" />;
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
  if (state.unit !== null) return <RetentionEditor state={state} draft={draft} title="Change policy" />;
  return (
    <Warning>
      <p>
        The policy can’t be changed yet: the core’s unit, days or seconds, is unknown. In <code>.env</code>, set{' '}
        <code>CORE_RETENTION_UNIT=days</code> for the embedded core or <code>CORE_RETENTION_UNIT=seconds</code> for a
        TAK Server release, then restart.
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
      <Missing>Couldn’t load the current policy: {refused?.message ?? ''}</Missing>
      <p>
        The policy can’t be changed until the core answers. Check the <a href="/health/core">core status</a>, and reload
        this page in a minute.
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

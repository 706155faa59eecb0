// What a policy would do, before it is saved: the figures of the next run with it, beside those of the policy in force. What is
// saved are exactly these values, and only as long as what is in force is still the same.

import { AppError } from '@holdfast/kit/app-error';
import { cutoffAt, isKeepingAll, NEVER, type RetentionPolicy, type RetentionUnit } from '@holdfast/kit/retention';
import type { Deps } from '../../../shared/http/deps.ts';
import { type QuickPreview, quickPreview } from '../../../shared/retention/preview.ts';
import { nextRuns, type RetentionState } from '../../../shared/retention/state.ts';
import { attempt } from '../../pages/form.ts';
import { Card } from '../../pages/parts/card.tsx';
import { Missing } from '../../pages/parts/notice.tsx';
import { type Clock, When } from '../../pages/parts/time.tsx';
import { Consequences, formatAction, PreviewNotes } from './consequences.tsx';
import { baseOf, type Draft, formatRows, type Target } from './draft.ts';
import { scheduleNow } from './editor.tsx';

/** Figures of the next run by schedule, or of one that began now. */
export interface Figures {
  wanted: QuickPreview;
  now: QuickPreview;
  /** ISO 8601; undefined: no run is due. */
  nextRun: string | undefined;
  nextRuns: string[];
}

const NEXT_RUNS = 5;

/** Rejects with `unavailable` when the database of the core does not answer. */
export async function figuresOf(
  deps: Deps,
  state: RetentionState,
  target: Pick<Target, 'policy' | 'cron'>,
  unit: RetentionUnit,
): Promise<Figures> {
  const runs = nextRuns(deps, target.cron, unit, NEXT_RUNS);
  const [at = deps.now()] = runs;
  const countedOf = (policy: RetentionPolicy): Promise<QuickPreview> =>
    quickPreview(deps, { policy, unit, cutoff: cutoffAt(policy, at) });
  const [wanted, now] = await Promise.all([countedOf(target.policy), countedOf(state.policy)]);
  return { wanted, now, nextRun: runs[0]?.toISOString(), nextRuns: runs.map((each) => each.toISOString()) };
}

/** So many more than were shown are still the same figures: events come in meanwhile. */
const MARGIN_PART = 0.1;
const MARGIN_ROWS = 100;

/** Rejects unless the figures that somebody has seen are still those of the policy. `seen`: the rows of the preview. */
export async function mustBeSeen(
  deps: Deps,
  state: RetentionState,
  target: Target,
  unit: RetentionUnit,
  seen: string,
): Promise<void> {
  if (!target.deletesMore) return;
  if (!/^\d{1,15}$/.test(seen))
    throw new AppError('confirmation_needed', 'Nothing was saved: look at what this policy deletes before.');
  const { wanted } = await figuresOf(deps, state, target, unit);
  const most = Number(seen) * (1 + MARGIN_PART) + MARGIN_ROWS;
  if (wanted.rows <= most) return;
  throw new AppError(
    'confirmation_needed',
    `Nothing was saved: the preview said ${formatRows(Number(seen))}, and now it is ${formatRows(wanted.rows, wanted.exact)}. Look at the figures below, then save again.`,
  );
}

interface PreviewProps {
  state: RetentionState;
  draft: Draft;
  target: Target;
  figures: Awaited<ReturnType<typeof attempt<Figures>>>;
  clock: Clock;
  isAdmin: boolean;
}

export function RetentionPreview({ state, draft, target, figures, clock, isAdmin }: PreviewProps) {
  const { done, refused } = figures;
  const title = target.input === undefined ? 'What the policy in force deletes' : 'What would be deleted';
  return (
    <Card title={title} id="preview">
      {refused === undefined && done !== undefined ? (
        <Counted state={state} target={target} figures={done} clock={clock} />
      ) : (
        <Missing>
          What it would delete cannot be counted now: {refused?.message}{' '}
          {target.deletesMore ? 'It can be saved as soon as it can be counted: try again in a minute.' : null}
        </Missing>
      )}
      {target.input === undefined ? (
        <p>These are the values in force: there is nothing to save.</p>
      ) : (
        <Save state={state} draft={draft} target={target} rows={done?.wanted.rows} isAdmin={isAdmin} />
      )}
    </Card>
  );
}

function Counted({
  state,
  target,
  figures,
  clock,
}: {
  state: RetentionState;
  target: Target;
  figures: Figures;
  clock: Clock;
}) {
  const { wanted, now } = figures;
  const isSame = target.input === undefined;
  const deletes = wanted.rows > 0;
  return (
    <>
      <p class={deletes ? 'notice bad' : 'notice good'}>
        <Headline target={target} figures={figures} clock={clock} />
        {isSame ? null : ` With the policy in force it ${formatAction(now, state.policy)}.`}
        {deletes ? ' What is deleted does not come back.' : null}
      </p>
      <Consequences
        caption="Deleted by the next run, by type"
        policy={target.policy}
        preview={wanted}
        clock={clock}
        {...(isSame ? {} : { before: { policy: state.policy, preview: now } })}
      />
      <PreviewNotes preview={wanted} />
      <p class="fine">
        {target.cron === NEVER ? (
          'No schedule: no run is due.'
        ) : (
          <>
            Runs {scheduleNow({ cron: target.cron, dialect: state.dialect })}; the next ones:{' '}
            {figures.nextRuns.map((at, index) => (
              <>
                {index === 0 ? '' : ', '}
                <When at={at} clock={clock} />
              </>
            ))}
            .
          </>
        )}
      </p>
    </>
  );
}

function Headline({ target, figures, clock }: { target: Target; figures: Figures; clock: Clock }) {
  const { wanted, nextRun } = figures;
  if (isKeepingAll(target.policy)) return <strong>Everything is kept for ever: runs delete nothing.</strong>;
  if (nextRun === undefined)
    return <strong>No run is due without a schedule. One that began now {formatAction(wanted, target.policy)}.</strong>;
  return (
    <strong>
      The next run, <When at={nextRun} clock={clock} />, {formatAction(wanted, target.policy)}.
    </strong>
  );
}

interface SaveProps extends Pick<PreviewProps, 'state' | 'draft' | 'target' | 'isAdmin'> {
  rows: number | undefined;
}

function Save({ state, draft, target, rows, isAdmin }: SaveProps) {
  if (!isAdmin) return <p>Only administrators can save a policy.</p>;
  if (target.deletesMore && rows === undefined) return null;
  const { days, ...others } = draft;
  const hidden = { ...days, ...others, base: baseOf(state), rows: rows === undefined ? '' : String(rows) };
  const deletes = rows !== undefined && rows > 0;
  return (
    <form method="post" action="/database/retention" class="save">
      {Object.entries(hidden).map(([name, value]) => (
        <input type="hidden" name={name} value={value} />
      ))}
      <button type="submit" class={deletes ? 'danger' : undefined}>
        Save this policy
      </button>
      <a class="button" href="/database/retention">
        Leave it as it is
      </a>
    </form>
  );
}

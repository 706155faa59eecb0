// Previews a policy before it is saved: the figures of its next run beside those of the current
// policy. Exactly these values are saved, and only while the current policy is unchanged.

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

/** Figures of the next scheduled run, or of a run started now. */
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

/** Counts this much above the shown ones still pass: events arrive meanwhile. */
const MARGIN_PART = 0.1;
const MARGIN_ROWS = 100;

/**
 * Rejects if the policy would now delete more than the preview showed. `seen`: the rows of the
 * preview.
 */
export async function mustBeSeen(
  deps: Deps,
  state: RetentionState,
  target: Target,
  unit: RetentionUnit,
  seen: string,
): Promise<void> {
  if (!target.deletesMore) return;
  if (!/^\d{1,15}$/.test(seen))
    throw new AppError('confirmation_needed', 'Nothing was saved. Preview what this policy deletes first.');
  const { wanted } = await figuresOf(deps, state, target, unit);
  const most = Number(seen) * (1 + MARGIN_PART) + MARGIN_ROWS;
  if (wanted.rows <= most) return;
  throw new AppError(
    'confirmation_needed',
    `Nothing was saved. The preview showed ${formatRows(Number(seen))}, now it is ${formatRows(wanted.rows, wanted.exact)}. Check the figures below, then save again.`,
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
  const title = target.input === undefined ? 'Current policy preview' : 'Preview of changes';
  return (
    <Card title={title} id="preview">
      {refused === undefined && done !== undefined ? (
        <Counted state={state} target={target} figures={done} clock={clock} />
      ) : (
        <Missing>
          Couldn’t count what would be deleted: {refused?.message}{' '}
          {target.deletesMore ? 'The policy can be saved once the count works. Try again in a minute.' : null}
        </Missing>
      )}
      {target.input === undefined ? (
        <p>These values are already in force. There is nothing to save.</p>
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
        {isSame ? null : ` The current policy ${formatAction(now, state.policy)}.`}
        {deletes ? ' Deleted data can’t be recovered.' : null}
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
          'No schedule, so no run is due.'
        ) : (
          <>
            Runs {scheduleNow({ cron: target.cron, dialect: state.dialect })}. Next runs:{' '}
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
  if (isKeepingAll(target.policy)) return <strong>Everything is kept forever. Runs delete nothing.</strong>;
  if (nextRun === undefined)
    return <strong>Without a schedule no run is due. A run now {formatAction(wanted, target.policy)}.</strong>;
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
        Save policy
      </button>
      <a class="button" href="/database/retention">
        Cancel
      </a>
    </form>
  );
}

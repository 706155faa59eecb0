// /database/runs/new: what a run would delete now, and the order for exactly that, confirmed by typing the figure. The order
// carries rows and cutoff of what was shown: more is refused with new figures.

import { z } from '@hono/zod-openapi';
import { AppError } from '@holdfast/kit/app-error';
import { cutoffAt } from '@holdfast/kit/retention';
import type { App } from '../../../shared/http/context.ts';
import type { Deps } from '../../../shared/http/deps.ts';
import { goTo } from '../../../shared/http/page.tsx';
import { cutoffTime } from '../../../shared/http/schemas/retention.ts';
import { actingIn } from '../../../shared/http/sign-in.ts';
import { type QuickPreview, quickPreview } from '../../../shared/retention/preview.ts';
import { startRetentionRun } from '../../../shared/retention/start-run.ts';
import { knownUnit, type RetentionState, retentionState } from '../../../shared/retention/state.ts';
import { attempt, type Form, formOf, parsed } from '../../pages/form.ts';
import { framed } from '../../pages/frame.tsx';
import { type PageContext, pagesOf } from '../../pages/page-routes.ts';
import { Card, TypedConfirm } from '../../pages/parts/card.tsx';
import { Missing, Problem } from '../../pages/parts/notice.tsx';
import { Empty } from '../../pages/parts/table.tsx';
import { clockOf, When } from '../../pages/parts/time.tsx';
import { DatabaseTabs } from '../database/tabs.tsx';
import { Consequences, formatAction, PreviewNotes } from './consequences.tsx';
import { formatRows } from './draft.ts';

/** Adds the routes of this file. */
export function runOrderPage(app: App, deps: Deps): void {
  const pages = pagesOf(app, deps, ['console']);
  pages.get('/database/runs/new', { access: 'admin' }, (c) => showOrder(c, deps));
  pages.post('/database/runs', { access: 'admin' }, async function orderRun(c) {
    const form = await formOf(c);
    const { done: job, refused } = await attempt(() => order(c, deps, form));
    return job === undefined ? showOrder(c, deps, refused) : goTo(c, `/jobs/${job.id}`);
  });
}

const orderSchema = z.object({
  rows: z.string().regex(/^\d{1,15}$/, 'must be the number that was shown'),
  cutoff: cutoffTime,
});

async function order(c: PageContext, deps: Deps, form: Form) {
  const { rows, cutoff } = parsed(orderSchema, { rows: form.text('rows'), cutoff: form.text('cutoff') });
  const words = wordsFor(Number(rows));
  if (form.text('confirm') !== words) {
    const message = `must be exactly: ${words}`;
    throw new AppError('confirmation_needed', `Nothing was deleted. To confirm, type exactly: ${words}`, {
      fields: [{ path: 'confirm', message }],
    });
  }
  return startRetentionRun(actingIn(c, deps), deps.settings.CORE_RETENTION_UNIT, {
    confirmRows: Number(rows),
    cutoff: new Date(cutoff),
  });
}

/** What is to be typed: it names what goes. */
function wordsFor(rows: number): string {
  return `delete ${rows} ${rows === 1 ? 'row' : 'rows'}`;
}

interface Counted {
  state: RetentionState;
  preview: QuickPreview;
}

async function counted(deps: Deps): Promise<Counted> {
  const unit = knownUnit(deps);
  const state = await retentionState(deps);
  const cutoff = cutoffAt(state.policy, new Date(await deps.retentionFacts.now()));
  return { state, preview: await quickPreview(deps, { policy: state.policy, unit, cutoff }) };
}

async function showOrder(c: PageContext, deps: Deps, refused?: AppError): Promise<Response> {
  const { done, refused: unavailable } = await attempt(() => counted(deps));
  const body = (
    <>
      <DatabaseTabs current="/database/runs" />
      <Problem error={refused && inPageTerms(refused)} />
      {done === undefined ? (
        <Missing>
          What a run would delete cannot be counted now, so none can be ordered: {unavailable?.message} Try again in a
          minute.
        </Missing>
      ) : (
        <Order {...done} deps={deps} refused={refused} />
      )}
    </>
  );
  return framed(c, deps, { title: 'Run now', current: 'database', body, refused });
}

function Order({ state, preview, deps, refused }: Counted & { deps: Deps; refused: AppError | undefined }) {
  const clock = clockOf(deps);
  const { rows, exact } = better(preview, refused);
  if (rows === 0)
    return (
      <Empty>
        <p>Nothing is older than its days: a run would delete nothing.</p>
        <p>
          <a class="button" href="/database/retention">
            See what is kept how long
          </a>
        </p>
      </Empty>
    );
  return (
    <Card title="What it deletes">
      <p class="notice bad">
        <strong>A run now {formatAction({ ...preview, rows, exact }, state.policy)}.</strong> It does not come back.
        Make a backup before if anybody may still need it.
      </p>
      {preview.rows === 0 ? (
        <Missing>Of which types they are could not be counted in time.</Missing>
      ) : (
        <Consequences caption="Deleted by a run now, by type" policy={state.policy} preview={preview} clock={clock} />
      )}
      <PreviewNotes preview={preview} />
      <form method="post" action="/database/runs" class="narrow">
        <input type="hidden" name="rows" value={String(rows)} />
        <input type="hidden" name="cutoff" value={preview.cutoff} />
        <p class="fine">
          Counted <When at={clock.now.toISOString()} clock={clock} />. The run deletes at most {formatRows(rows)}; it
          ends with an error before it would delete more.
        </p>
        <TypedConfirm
          words={wordsFor(rows)}
          error={refused?.fields.some(({ path }) => path === 'confirm') ? refused.message : undefined}
        />
        <div class="row">
          <button type="submit" class="danger">
            Delete {formatRows(rows)} for ever
          </button>
          <a class="button" href="/database/runs">
            Delete nothing
          </a>
        </div>
      </form>
    </Card>
  );
}

/** The verb speaks to programs of their parameters. */
function inPageTerms(refused: AppError): AppError {
  const { rows, exact, confirm_rows: confirmed } = refused.figures ?? {};
  if (typeof rows !== 'number' || typeof confirmed !== 'number') return refused;
  const message = `Nothing was deleted: more would go than you have confirmed: ${formatRows(rows, exact === true)}, not ${formatRows(confirmed)}. Look at the figures below, then confirm them.`;
  return new AppError(refused.code, message);
}

/** Whoever counted longer for the order knows better than a preview that guesses. */
function better(preview: QuickPreview, refused: AppError | undefined): Pick<QuickPreview, 'rows' | 'exact'> {
  const { rows, exact } = refused?.figures ?? {};
  return typeof rows === 'number' && rows > preview.rows ? { rows, exact: exact === true } : preview;
}

// /database/runs/new: previews a run and starts exactly that one, confirmed by typing the number of
// rows. The form carries the rows and cutoff that were shown; a run that would delete more is
// rejected with new figures.

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
  rows: z.string().regex(/^\d{1,15}$/, 'must be the number shown'),
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

/** The text to type, which names what will be deleted. */
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
          Couldn’t count what a run would delete, so none can start: {unavailable?.message} Try again in a minute.
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
        <p>Nothing to delete: no data is older than the policy allows.</p>
        <p>
          <a class="button" href="/database/retention">
            Retention policy
          </a>
        </p>
      </Empty>
    );
  return (
    <Card title="Run preview">
      <p class="notice bad">
        <strong>A run now {formatAction({ ...preview, rows, exact }, state.policy)}.</strong> Deleted data can’t be
        recovered. Make a backup first if the data may still be needed.
      </p>
      {preview.rows === 0 ? (
        <Missing>Couldn’t count the rows by type in time.</Missing>
      ) : (
        <Consequences caption="Deleted by a run now, by type" policy={state.policy} preview={preview} clock={clock} />
      )}
      <PreviewNotes preview={preview} />
      <form method="post" action="/database/runs" class="narrow">
        <input type="hidden" name="rows" value={String(rows)} />
        <input type="hidden" name="cutoff" value={preview.cutoff} />
        <p class="fine">
          Counted <When at={clock.now.toISOString()} clock={clock} />. The run deletes at most {formatRows(rows)}. It
          stops with an error before it deletes more.
        </p>
        <TypedConfirm
          words={wordsFor(rows)}
          error={refused?.fields.some(({ path }) => path === 'confirm') ? refused.message : undefined}
        />
        <div class="row">
          <button type="submit" class="danger">
            Delete {formatRows(rows)}
          </button>
          <a class="button" href="/database/runs">
            Cancel
          </a>
        </div>
      </form>
    </Card>
  );
}

/** Replaces the API's parameter names with words for the page. */
function inPageTerms(refused: AppError): AppError {
  const { rows, exact, confirm_rows: confirmed } = refused.figures ?? {};
  if (typeof rows !== 'number' || typeof confirmed !== 'number') return refused;
  const message = `Nothing was deleted. A run would delete ${formatRows(rows, exact === true)}, but you confirmed ${formatRows(confirmed)}. Check the figures below, then confirm again.`;
  return new AppError(refused.code, message);
}

/** The count of the rejected request took longer and is better than an estimate. */
function better(preview: QuickPreview, refused: AppError | undefined): Pick<QuickPreview, 'rows' | 'exact'> {
  const { rows, exact } = refused?.figures ?? {};
  return typeof rows === 'number' && rows > preview.rows ? { rows, exact: exact === true } : preview;
}

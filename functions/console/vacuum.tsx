// /database/vacuum: first what a vacuum would give back, of which kind and of which tables (GET); then, with a kind named in the
// address, what just this one would do, asked once; POST begins it and leads to its job.

import type { AppError } from '../../shared/domain/app-error.ts';
import { actingIn } from '../../shared/http/acting.ts';
import type { Deps } from '../../shared/http/deps.ts';
import type { App } from '../../shared/http/env.ts';
import { goTo } from '../../shared/http/page.tsx';
import { VACUUM_MODES, type VacuumMode } from '../../shared/ports/vacuum-facts.ts';
import { previewVacuum } from '../../shared/verbs/preview-vacuum.ts';
import { previewVacuumOrder } from '../../shared/verbs/preview-vacuum-order.ts';
import { startVacuum } from '../../shared/verbs/start-vacuum.ts';
import { attempt, formOf } from '../pages/form.ts';
import { framed } from '../pages/frame.tsx';
import { isAdmin, type PageContext, pagesOf } from '../pages/page-routes.ts';
import { Missing, Problem } from '../pages/parts/notice.tsx';
import { DatabaseTabs } from './database-tabs.tsx';
import { VacuumChoice } from './vacuum-choice.tsx';
import { WhatModesDo } from './vacuum-modes.tsx';
import { FULL_WORD, unconfirmed, VacuumOrder } from './vacuum-order.tsx';

const VACUUM_PATH = '/database/vacuum';

interface Wish {
  mode: VacuumMode;
  /** Undefined: all that may be vacuumed. */
  names: string[] | undefined;
}

/** Adds the routes of this file. */
export function vacuumPage(app: App, deps: Deps): void {
  const pages = pagesOf(app, deps, ['console']);
  pages.get(VACUUM_PATH, { access: 'viewer' }, function showVacuum(c) {
    const wish = wishOf(c.req.query('mode'), c.req.queries('tables'));
    return wish === undefined || !isAdmin(c) ? showChoice(c, deps) : showOrder(c, deps, wish);
  });
  pages.post(VACUUM_PATH, { access: 'admin' }, async function begin(c) {
    const form = await formOf(c);
    const wish = wishOf(form.text('mode'), form.all('tables'));
    if (wish === undefined) return goTo(c, VACUUM_PATH);
    if (wish.mode === 'full' && form.text('confirm') !== FULL_WORD) return showOrder(c, deps, wish, unconfirmed());
    const { done, refused } = await attempt(() =>
      startVacuum(actingIn(c, deps, 'admin', 'rest'), { ...wish, mayVacuum: mayVacuum(deps) }),
    );
    return refused === undefined ? goTo(c, `/jobs/${done.id}`) : showOrder(c, deps, wish, refused);
  });
}

function wishOf(text: string | undefined, tables: string[] = []): Wish | undefined {
  const mode = VACUUM_MODES.find((each) => each === text);
  return mode && { mode, names: tables.length === 0 ? undefined : tables };
}

const mayVacuum = ({ settings }: Deps): boolean => settings.CORE_DATABASE_OWNER_URL !== undefined;

async function showChoice(c: PageContext, deps: Deps): Promise<Response> {
  const { done: preview, refused } = await attempt(() => deps.together('vacuum.preview', () => previewVacuum(deps)));
  const body =
    preview === undefined ? (
      <>
        <Missing>
          What a vacuum would give back is not known just now: {refused?.message} Nothing can be begun until that is
          mended; <a href="/">the overview</a> says what is wrong.
        </Missing>
        <WhatModesDo />
      </>
    ) : (
      <VacuumChoice preview={preview} action={VACUUM_PATH} may={isAdmin(c) ? mayVacuum(deps) : 'look'} />
    );
  const whole = (
    <>
      <DatabaseTabs current={VACUUM_PATH} />
      {body}
    </>
  );
  const actions = (
    <a class="button" href="/jobs">
      Earlier ones
    </a>
  );
  return framed(c, deps, { title: 'Vacuum', current: 'database', body: whole, actions });
}

async function showOrder(c: PageContext, deps: Deps, wish: Wish, refused?: AppError): Promise<Response> {
  const looked = await attempt(() => previewVacuumOrder(deps, wish));
  const title = wish.mode === 'full' ? 'Full vacuum' : 'Standard vacuum';
  const problem = refused ?? looked.refused;
  const body = (
    <>
      {problem !== undefined && problem !== refused ? <Problem error={problem} /> : null}
      {looked.done === undefined ? (
        <p>
          <a class="button" href={VACUUM_PATH}>
            Choose again
          </a>
        </p>
      ) : (
        <VacuumOrder {...wish} preview={looked.done} action={VACUUM_PATH} refused={refused} />
      )}
    </>
  );
  return framed(c, deps, {
    title,
    current: 'database',
    body,
    refused: problem,
  });
}

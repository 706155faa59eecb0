// /database/vacuum: GET shows what a vacuum would free, with a choice of mode and tables.
// GET with a mode in the address previews that vacuum and asks for confirmation. POST starts it and
// redirects to its job.

import { AppError } from '@holdfast/kit/app-error';
import { formatBytes, counted, formatSeconds } from '@holdfast/kit/format';
import { VACUUM_MODES, type VacuumMode } from '../../../shared/database/port.ts';
import { previewVacuum, previewVacuumOrder, type VacuumOrderPreview } from '../../../shared/database/vacuum/preview.ts';
import { startVacuum } from '../../../shared/database/vacuum/start.ts';
import type { App } from '../../../shared/http/context.ts';
import type { Deps } from '../../../shared/http/deps.ts';
import { goTo } from '../../../shared/http/page.tsx';
import { actingIn } from '../../../shared/http/sign-in.ts';
import { attempt, faultOf, formOf } from '../../pages/form.ts';
import { framed } from '../../pages/frame.tsx';
import { isAdmin, type PageContext, pagesOf } from '../../pages/page-routes.ts';
import { Card, Facts, TypedConfirm } from '../../pages/parts/card.tsx';
import { Missing, Problem, Warning } from '../../pages/parts/notice.tsx';
import { formatRows } from '../retention/draft.ts';
import { DatabaseTabs } from './tabs.tsx';
import { MODE_WORDS, VacuumChoice, WhatModesDo } from './vacuum-choice.tsx';

/** The word that confirms a full vacuum. */
export const FULL_WORD = 'full';

/** The error for a full vacuum without that word. */
export function unconfirmed(): AppError {
  const message = `Nothing was started. Type ${FULL_WORD} to confirm.`;
  return new AppError('invalid', message, { fields: [{ path: 'confirm', message }] });
}

interface VacuumOrderProps {
  mode: VacuumMode;
  /** As the address names them; undefined: all. */
  names: readonly string[] | undefined;
  preview: VacuumOrderPreview;
  action: string;
  refused: AppError | undefined;
}

export function VacuumOrder({ mode, names, preview, action, refused }: VacuumOrderProps) {
  const { tables, room } = preview;
  const hasRoom = room === undefined || room.isEnough === true;
  const isFaulty = faultOf(refused, 'confirm') !== undefined;
  return (
    <>
      {isFaulty ? null : <Refusal refused={refused} />}
      <Card title={names === undefined ? `All ${counted(tables.length, 'table')}` : counted(tables.length, 'table')}>
        <p>{MODE_WORDS[mode]}</p>
        <WhatComesOfIt mode={mode} preview={preview} />
        <details class="rest">
          <summary>Tables</summary>
          <p>{tables.join(', ')}</p>
        </details>
      </Card>
      {hasRoom ? null : refused?.code === 'not_enough_disk' ? null : (
        <Warning>
          <strong>Not enough disk space.</strong> {room.figures.reason}
        </Warning>
      )}
      {hasRoom && tables.length > 0 ? (
        <form method="post" action={action} class="narrow">
          <input type="hidden" name="mode" value={mode} />
          {(names ?? []).map((name) => (
            <input type="hidden" name="tables" value={name} />
          ))}
          {mode === 'full' ? <TypedConfirm words={FULL_WORD} error={faultOf(refused, 'confirm')} /> : null}
          <p class="row">
            <button type="submit" class={mode === 'full' ? 'danger' : undefined}>
              {mode === 'full' ? 'Start full vacuum' : 'Start standard vacuum'}
            </button>
            <a class="button" href={action}>
              Change selection
            </a>
          </p>
        </form>
      ) : (
        <p class="row">
          {mode === 'full' ? (
            <a class="button" href={`${action}?${orderQuery('standard', names)}`}>
              Use standard vacuum
            </a>
          ) : null}
          <a class="button" href={action}>
            Change selection
          </a>
        </p>
      )}
    </>
  );
}

function orderQuery(mode: VacuumMode, names: readonly string[] = []): string {
  return new URLSearchParams([['mode', mode], ...names.map((name): [string, string] => ['tables', name])]).toString();
}

function WhatComesOfIt({ mode, preview }: { mode: VacuumMode; preview: VacuumOrderPreview }) {
  const { bytes, reclaimable_bytes: reclaimable, dead_tuples: dead, lock_seconds: seconds, room } = preview;
  const { longest_lock: longest } = preview;
  const figures = room?.figures;
  const where = figures?.mount === null || figures === undefined ? '' : ` on ${figures.mount}`;
  const wait =
    preview.tables.length === 1
      ? `about ${formatSeconds(seconds)}`
      : `about ${formatSeconds(seconds)} in total, ${formatSeconds(longest.seconds)} for ${longest.table} alone`;
  return (
    <Facts
      of={{
        'Size now': `${formatBytes(bytes)}, with ${formatRows(dead, true, 'dead row')}`,
        'Space freed': mode === 'full' ? `about ${formatBytes(reclaimable)}` : 'none: new rows reuse the space',
        'Client impact':
          mode === 'full'
            ? `no history for ${wait}. The light core keeps devices connected and notifies them by chat. A TAK Server release may disconnect them until it is done.`
            : 'none',
        'Space needed': figures === undefined ? undefined : `${formatBytes(figures.needed_bytes)}${where}`,
        'Space free':
          figures === undefined ? undefined : figures.free_bytes === null ? 'unknown' : formatBytes(figures.free_bytes),
      }}
    />
  );
}

const FIGURES: Record<string, string> = {
  free_bytes: 'Free',
  needed_bytes: 'Needed',
  table_bytes: 'Table size',
};

/**
 * Shows why it was rejected, with figures if space is missing and a link to a job that blocks it.
 */
function Refusal({ refused }: { refused: AppError | undefined }) {
  if (refused === undefined) return null;
  const { figures = {}, code } = refused;
  const { job } = figures;
  const of = Object.fromEntries(
    Object.entries(FIGURES).flatMap(([key, label]) => {
      const value = figures[key];
      return typeof value === 'number' ? [[label, formatBytes(value)]] : [];
    }),
  );
  return (
    <>
      <Problem error={refused} />
      {code === 'not_enough_disk' && Object.keys(of).length > 0 ? (
        <Card title="Disk space">
          <Facts of={of} />
        </Card>
      ) : null}
      {typeof job !== 'string' ? null : (
        <p>
          <a class="button" href={`/jobs/${job}`}>
            See job progress
          </a>
        </p>
      )}
    </>
  );
}

const VACUUM_PATH = '/database/vacuum';

interface Input {
  mode: VacuumMode;
  /** Undefined: all that may be vacuumed. */
  names: string[] | undefined;
}

/** Adds the routes of this file. */
export function vacuumPage(app: App, deps: Deps): void {
  const pages = pagesOf(app, deps, ['console']);
  pages.get(VACUUM_PATH, { access: 'viewer' }, function showVacuum(c) {
    const input = inputOf(c.req.query('mode'), c.req.queries('tables'));
    return input === undefined || !isAdmin(c) ? showChoice(c, deps) : showOrder(c, deps, input);
  });
  pages.post(VACUUM_PATH, { access: 'admin' }, async function begin(c) {
    const form = await formOf(c);
    const requested = inputOf(form.text('mode'), form.all('tables'));
    if (requested === undefined) return goTo(c, VACUUM_PATH);
    if (requested.mode === 'full' && form.text('confirm') !== FULL_WORD)
      return showOrder(c, deps, requested, unconfirmed());
    const { done, refused } = await attempt(() =>
      startVacuum(actingIn(c, deps), { ...requested, mayVacuum: mayVacuum(deps) }),
    );
    return refused === undefined ? goTo(c, `/jobs/${done.id}`) : showOrder(c, deps, requested, refused);
  });
}

function inputOf(text: string | undefined, tables: string[] = []): Input | undefined {
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
          Couldn’t estimate a vacuum: {refused?.message} Nothing can start until this is fixed. Check the{' '}
          <a href="/">overview</a> for the cause.
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
      Earlier jobs
    </a>
  );
  return framed(c, deps, { title: 'Vacuum', current: 'database', body: whole, actions });
}

async function showOrder(c: PageContext, deps: Deps, input: Input, refused?: AppError): Promise<Response> {
  const looked = await attempt(() => previewVacuumOrder(deps, input));
  const title = input.mode === 'full' ? 'Full vacuum' : 'Standard vacuum';
  const problem = refused ?? looked.refused;
  const body = (
    <>
      {problem !== undefined && problem !== refused ? <Problem error={problem} /> : null}
      {looked.done === undefined ? (
        <p>
          <a class="button" href={VACUUM_PATH}>
            Change selection
          </a>
        </p>
      ) : (
        <VacuumOrder {...input} preview={looked.done} action={VACUUM_PATH} refused={refused} />
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

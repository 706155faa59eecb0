// Just before a vacuum begins: which tables, what comes of it, what stops meanwhile; asked once, for a full one with its word.

import { bytesInWords, counted, secondsInWords } from '../../shared/domain/amounts.ts';
import { AppError } from '../../shared/domain/app-error.ts';
import type { VacuumMode } from '../../shared/ports/vacuum-facts.ts';
import type { VacuumOrderPreview } from '../../shared/verbs/preview-vacuum-order.ts';
import { faultOf } from '../pages/form.ts';
import { Card, Facts } from '../pages/parts/card.tsx';
import { TypedConfirm } from '../pages/parts/confirm.tsx';
import { Problem, Warning } from '../pages/parts/notice.tsx';
import { MODE_WORDS } from './vacuum-modes.tsx';
import { rowsInWords } from './retention-words.ts';

export const FULL_WORD = 'full';

/** A full vacuum without its word. */
export function unconfirmed(): AppError {
  const message = `Nothing was begun: type the word ${FULL_WORD} to confirm.`;
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
          <summary>Which tables</summary>
          <p>{tables.join(', ')}</p>
        </details>
      </Card>
      {hasRoom ? null : refused?.code === 'not_enough_disk' ? null : (
        <Warning>
          <strong>There is not enough room for this.</strong> {room.figures.reason}
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
              {mode === 'full' ? 'Begin the full vacuum' : 'Begin the standard vacuum'}
            </button>
            <a class="button" href={action}>
              Choose again
            </a>
          </p>
        </form>
      ) : (
        <p class="row">
          {mode === 'full' ? (
            <a class="button" href={`${action}?${orderQuery('standard', names)}`}>
              Standard vacuum instead
            </a>
          ) : null}
          <a class="button" href={action}>
            Choose again
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
      ? `about ${secondsInWords(seconds)}`
      : `about ${secondsInWords(seconds)} in all, for ${longest.table} alone ${secondsInWords(longest.seconds)}`;
  return (
    <Facts
      of={{
        'Size now': `${bytesInWords(bytes)}, ${rowsInWords(dead, true, 'dead row')} in it`,
        'Back to the disk':
          mode === 'full' ? `about ${bytesInWords(reclaimable)}` : 'nothing; later rows use the room instead',
        'Clients wait':
          mode === 'full'
            ? `${wait}. The light core keeps devices connected and tells them by chat; a TAK Server release may disconnect them until it is done.`
            : 'for nothing: everybody works on',
        'Room needed': figures === undefined ? undefined : `${bytesInWords(figures.needed_bytes)}${where}`,
        'Room free':
          figures === undefined
            ? undefined
            : figures.free_bytes === null
              ? 'not known'
              : bytesInWords(figures.free_bytes),
      }}
    />
  );
}

const FIGURES: Record<string, string> = {
  free_bytes: 'Free',
  needed_bytes: 'Needed',
  table_bytes: 'The table has',
};

/** Why it was refused; with the figures where it is for want of room, and the way to the job that is in the way. */
function Refusal({ refused }: { refused: AppError | undefined }) {
  if (refused === undefined) return null;
  const { figures = {}, code } = refused;
  const { job } = figures;
  const of = Object.fromEntries(
    Object.entries(FIGURES).flatMap(([key, label]) => {
      const value = figures[key];
      return typeof value === 'number' ? [[label, bytesInWords(value)]] : [];
    }),
  );
  return (
    <>
      <Problem error={refused} />
      {code === 'not_enough_disk' && Object.keys(of).length > 0 ? (
        <Card title="What is missing">
          <Facts of={of} />
        </Card>
      ) : null}
      {typeof job !== 'string' ? null : (
        <p>
          <a class="button" href={`/jobs/${job}`}>
            See how far that job is
          </a>
        </p>
      )}
    </>
  );
}

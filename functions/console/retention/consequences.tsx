// Shows what a retention run would delete, by type: rows, time range, space and duration.

import { formatBytes, formatDuration } from '@holdfast/kit/format';
import { isKeepingAll, RETAINED, type Retained, type RetentionPolicy } from '@holdfast/kit/retention';
import type { QuickPreview } from '../../../shared/retention/preview.ts';
import { Table } from '../../pages/parts/table.tsx';
import { type Clock, When } from '../../pages/parts/time.tsx';
import { allRowsOf, formatKept, formatRows, TYPE_WORDS } from './draft.ts';

type Previewed = NonNullable<QuickPreview['types']['cot']>;

interface ConsequencesProps {
  caption: string;
  policy: RetentionPolicy;
  preview: QuickPreview;
  clock: Clock;
  /** The current policy, to compare with. */
  before?: { policy: RetentionPolicy; preview: QuickPreview };
}

export function Consequences({ caption, policy, preview, clock, before }: ConsequencesProps) {
  const limited = RETAINED.filter((type) => policy[type] !== null || (before?.policy[type] ?? null) !== null);
  const others = RETAINED.filter((type) => !limited.includes(type)).map((type) => TYPE_WORDS[type].name.toLowerCase());
  return (
    <>
      {limited.length === 0 ? null : <Limited {...{ caption, policy, preview, clock, limited }} before={before} />}
      {others.length === 0 ? null : (
        <p class="fine">
          Kept forever{before === undefined ? '' : ', before and after'}: {others.join(', ')}.
        </p>
      )}
    </>
  );
}

type LimitedProps = Omit<ConsequencesProps, 'before'> & {
  limited: readonly Retained[];
  before: ConsequencesProps['before'];
};

function Limited({ caption, policy, preview, clock, before, limited }: LimitedProps) {
  return (
    <Table
      caption={caption}
      columns={[
        { label: 'Type' },
        ...(before === undefined ? [] : [{ label: 'Kept now' }]),
        { label: before === undefined ? 'Kept' : 'Kept after' },
        { label: 'Deleted' },
        { label: 'Older than' },
        { label: 'Time range' },
        { label: 'Space', numeric: true },
        { label: 'Duration', numeric: true },
      ]}
      rows={limited.map((type) => {
        const of = preview.types[type];
        return [
          TYPE_WORDS[type].name,
          ...(before === undefined ? [] : [<Now days={before.policy[type]} of={before.preview.types[type]} />]),
          <span class={before !== undefined && before.policy[type] !== policy[type] ? 'changed' : undefined}>
            {formatKept(policy[type])}
          </span>,
          <Gone of={of} />,
          of === undefined ? null : <When at={of.limit} clock={clock} />,
          <Span of={of} clock={clock} />,
          of === undefined || of.bytes === 0 ? null : `about ${formatBytes(of.bytes)}`,
          of === undefined || of.rows === 0 ? null : aboutSeconds(of.estimated_seconds),
        ];
      })}
    />
  );
}

function Now({ days, of }: { days: number | null; of: Previewed | undefined }) {
  const rows = of === undefined ? 0 : allRowsOf(of);
  return (
    <span>
      {formatKept(days)}
      {rows === 0 || of === undefined ? null : <span class="fine"> ({formatRows(rows, of.exact)} deleted)</span>}
    </span>
  );
}

function Gone({ of }: { of: Previewed | undefined }) {
  if (of === undefined || allRowsOf(of) === 0) return <span class="fine">nothing</span>;
  const { cot, files } = of.included;
  return (
    <span class="gone">
      <strong>{formatRows(of.rows, of.exact)}</strong>
      {cot + files === 0
        ? null
        : ` with ${formatRows(cot, of.exact, 'event')} and ${formatRows(files, of.exact, 'file')}`}
    </span>
  );
}

function Span({ of, clock }: { of: Previewed | undefined; clock: Clock }) {
  if (of === undefined || of.oldest === null) return null;
  return (
    <span>
      <When at={of.oldest} clock={clock} /> to <When at={of.newest ?? of.limit} clock={clock} />
    </span>
  );
}

function aboutSeconds(seconds: number): string {
  return seconds < 60 ? `about ${Math.max(1, seconds)} s` : `about ${formatDuration(seconds * 1000)}`;
}

/** `permanently deletes 1,234 rows`, `deletes nothing`. */
export function formatAction(preview: QuickPreview, policy: RetentionPolicy): string {
  if (isKeepingAll(policy) || preview.rows === 0) return 'deletes nothing';
  return `permanently deletes ${formatRows(preview.rows, preview.exact)}`;
}

/** The notes of a preview, with the API's field name replaced by the word on the page. */
export function PreviewNotes({ preview }: { preview: QuickPreview }) {
  const notes = preview.notes.map((note) =>
    note.startsWith('Figures with "exact"')
      ? 'Figures with “about” are estimates. Counting takes too long, or is not possible now.'
      : note,
  );
  if (notes.length === 0) return null;
  return (
    <ul class="fine">
      {notes.map((note) => (
        <li>{note}</li>
      ))}
    </ul>
  );
}

// Runs of retention, newest first: when, what went of which type, what space that left, and what went wrong.

import { bytesInWords, durationInWords, grouped } from '../../shared/domain/amounts.ts';
import { RETAINED } from '../../shared/domain/retention.ts';
import type { Status } from '../../shared/domain/status.ts';
import type { RetentionRun } from '../../shared/ports/retention-book.ts';
import type { Clock } from '../pages/clock.ts';
import { StatusBadge } from '../pages/parts/status.tsx';
import { Table } from '../pages/parts/table.tsx';
import { When } from '../pages/parts/time.tsx';
import { rowsInWords, TYPE_WORDS } from './retention-words.ts';

const STATES: Readonly<Record<RetentionRun['state'], readonly [status: Status, word: string]>> = {
  running: ['note', 'Going on'],
  done: ['ok', 'Done'],
  failed: ['critical', 'Failed'],
  interrupted: ['warning', 'Interrupted'],
};

export function RunTable({ runs, clock }: { runs: readonly RetentionRun[]; clock: Clock }) {
  return (
    <Table
      caption="Runs of retention, newest first"
      columns={[
        { label: 'Began' },
        { label: 'Result' },
        { label: 'Deleted' },
        { label: 'Space for later', numeric: true },
        { label: 'Took', numeric: true },
        { label: 'By' },
      ]}
      rows={runs.map((run) => [
        <When at={run.startedAt} clock={clock} relative />,
        <Result run={run} />,
        <Deleted run={run} />,
        run.bytes === null ? null : `about ${bytesInWords(run.bytes)}`,
        tookInWords(run),
        run.trigger === 'schedule' ? 'the schedule' : 'order',
      ])}
    />
  );
}

function Result({ run: { state, error, source } }: { run: RetentionRun }) {
  const [status, word] = STATES[state];
  return (
    <span>
      <StatusBadge status={status}>{word}</StatusBadge>
      {error === null ? null : <span class="run-error">{error}</span>}
      {source === 'log' ? <span class="fine run-error">From the log of the core, which tells less.</span> : null}
    </span>
  );
}

function Deleted({ run }: { run: RetentionRun }) {
  const types = RETAINED.filter((type) => (run.rows[type] ?? 0) > 0);
  const { cot, files } = run.included;
  const withMissions = cot + files;
  if (types.length === 0 && withMissions === 0)
    return <span class="fine">{run.source === 'log' ? 'not known' : 'nothing'}</span>;
  const total = types.reduce((sum, type) => sum + (run.rows[type] ?? 0), withMissions);
  const parts = types.map((type) => `${TYPE_WORDS[type].name} ${grouped(run.rows[type] ?? 0)}`);
  const also = withMissions === 0 ? [] : [`with missions ${grouped(withMissions)}`];
  return (
    <span>
      <strong>
        {rowsInWords(total)}
        {run.state === 'running' && run.expected !== null ? ` of ${grouped(run.expected)}` : ''}
      </strong>
      <span class="fine run-error">{[...parts, ...also].join(', ')}</span>
    </span>
  );
}

function tookInWords({ startedAt, finishedAt }: RetentionRun): string | null {
  if (finishedAt === null) return null;
  const ms = Date.parse(finishedAt) - Date.parse(startedAt);
  return ms < 60_000 ? `${Math.max(1, Math.round(ms / 1000))} s` : durationInWords(ms);
}

// Shows what a vacuum would free, and lets an administrator choose its mode and tables.

import { formatBytes, counted, grouped, formatSeconds } from '@holdfast/kit/format';
import type { VacuumMode } from '../../../shared/database/port.ts';
import type { VacuumPreview } from '../../../shared/database/vacuum/preview.ts';
import { nameOf } from '../../../shared/database/vacuum/rules.ts';
import { Card, Facts } from '../../pages/parts/card.tsx';
import { Warning } from '../../pages/parts/notice.tsx';
import { type Column, Empty, Table } from '../../pages/parts/table.tsx';

interface VacuumChoiceProps {
  preview: VacuumPreview;
  action: string;
  /**
   * `look`: the viewer may not start one; false: the owner's URL is missing, so it can't run at
   * all.
   */
  may: boolean | 'look';
}

export function VacuumChoice({ preview, action, may }: VacuumChoiceProps) {
  const { tables, running } = preview;
  if (tables.length === 0) return <Empty>No tables yet. Check again once clients have connected.</Empty>;
  const canBegin = may === true && running === null;
  return (
    <>
      <Running job={running} />
      {may === false ? <NotSetUp /> : null}
      <WhatItGives preview={preview} />
      {canBegin ? (
        <form method="get" action={action}>
          <Modes />
          <Tables tables={tables} chooses />
          <p class="row sticky">
            <button type="submit">Continue</button> <span class="fine">Nothing starts yet.</span>
          </p>
        </form>
      ) : (
        <>
          <WhatModesDo />
          <Tables tables={tables} />
        </>
      )}
    </>
  );
}

function Running({ job }: { job: string | null }) {
  if (job === null) return null;
  return (
    <p class="notice warn">
      A vacuum is already running. Only one can run at a time. <a href={`/jobs/${job}`}>See progress</a>.
    </p>
  );
}

function NotSetUp() {
  return (
    <Warning>
      Only the owner of the core’s database may vacuum it, and <code>CORE_DATABASE_OWNER_URL</code> is not set. Set it
      to <code>CORE_DATABASE_URL</code> with the user and password of the owner, then restart.
    </Warning>
  );
}

/** A full vacuum is worth it from a tenth of the size and from 100 MB. */
function isWorthIt({ reclaimable_bytes: reclaimable, bytes }: VacuumPreview['total']): boolean {
  return reclaimable >= 100e6 && reclaimable >= bytes / 10;
}

function WhatItGives({ preview }: { preview: VacuumPreview }) {
  const { total, rate_from: rateFrom, bytes_per_second: rate, free_bytes: free, mount, reason } = preview;
  return (
    <Card title="Full vacuum estimate">
      <p>
        <span class="figure">about {formatBytes(total.reclaimable_bytes)}</span> returned to the disk, of{' '}
        {formatBytes(total.bytes)}. {isWorthIt(total) ? null : <strong>Not worth the wait now.</strong>}
      </p>
      <Facts
        of={{
          'Dead rows': `${grouped(total.dead_tuples)} (${grouped(total.live_tuples)} in use)`,
          'Client impact': `no history for about ${formatSeconds(total.lock_seconds)} in total`,
          'Space needed': `${formatBytes(preview.needed_bytes)}${mount === null ? '' : ` on ${mount}`}`,
          'Space free': free === null ? 'unknown' : formatBytes(free),
        }}
      />
      <p class="fine">
        All figures are estimates.{' '}
        {rateFrom === 'runs'
          ? `The duration is based on ${formatBytes(rate)} per second, measured here before.`
          : `The duration assumes a cautious ${formatBytes(rate)} per second: no full vacuum was measured here yet.`}
      </p>
      {reason === null ? null : (
        <Warning>
          <strong>A full vacuum of all tables isn’t possible now.</strong> {reason}
        </Warning>
      )}
    </Card>
  );
}

function Modes() {
  return (
    <fieldset class="choices">
      <legend>Mode</legend>
      {(['standard', 'full'] as VacuumMode[]).map((mode) => (
        <label class="card">
          <input type="radio" name="mode" value={mode} checked={mode === 'standard'} />
          <span>
            <strong>{MODE_NAMES[mode]}</strong>
            <span class="words">{MODE_WORDS[mode]}</span>
          </span>
        </label>
      ))}
    </fieldset>
  );
}

/** How many tables, largest first, are visible without unfolding. */
const SHOWN = 10;

const COLUMNS: Column[] = [
  { label: 'Table' },
  { label: 'Size', numeric: true },
  { label: 'Space freed', numeric: true },
  { label: 'Dead rows', numeric: true },
  { label: 'Lock time', numeric: true },
];

function Tables({ tables, chooses = false }: { tables: VacuumPreview['tables']; chooses?: boolean }) {
  const rest = tables.slice(SHOWN);
  const bytes = rest.reduce((sum, table) => sum + table.bytes, 0);
  return (
    <section class="compact" aria-labelledby="tables">
      <h2 id="tables">Tables</h2>
      {chooses ? <p>Select tables to vacuum only those. With none selected, all are vacuumed.</p> : null}
      <p class="fine">Freed space and lock times are for a full vacuum.</p>
      <Table caption="Tables, largest first" columns={COLUMNS} rows={tables.slice(0, SHOWN).map(rowOf(chooses))} />
      {rest.length === 0 ? null : (
        <details class="rest">
          <summary class="button">
            {counted(rest.length, 'smaller table')}, {formatBytes(bytes)} in total
          </summary>
          <Table caption="Smaller tables" columns={COLUMNS} rows={rest.map(rowOf(chooses))} />
        </details>
      )}
    </section>
  );
}

function rowOf(chooses: boolean) {
  return (table: VacuumPreview['tables'][number]) => {
    const { bytes, reclaimable_bytes: reclaimable, dead_tuples: dead, lock_seconds: seconds, allowed } = table;
    return [
      <TableName table={table} chooses={chooses} />,
      formatBytes(bytes),
      allowed ? (reclaimable === null ? 'unknown' : formatBytes(reclaimable)) : 'not allowed',
      grouped(dead),
      allowed ? formatSeconds(seconds) : '-',
    ];
  };
}

function TableName({ table, chooses }: { table: VacuumPreview['tables'][number]; chooses: boolean }) {
  const name = nameOf(table);
  if (!chooses) return <code class="whole">{name}</code>;
  return (
    <label class="tick">
      <input type="checkbox" name="tables" value={`${table.schema}.${table.table}`} disabled={!table.allowed} />
      <code class="whole">{name}</code>
    </label>
  );
}

// The two modes of a vacuum, each with its effect and its impact on clients.
export const MODE_NAMES: Record<VacuumMode, string> = { standard: 'Standard vacuum', full: 'Full vacuum' };

export const MODE_WORDS: Record<VacuumMode, string> = {
  standard:
    'Makes the space of deleted rows usable again inside the database. It can run at any time and blocks no clients. The files do not shrink, but they stop growing for a while.',
  full: 'Rewrites each table and returns its unused space to the disk. While a table is rewritten, clients get no positions and no chat from it. Meanwhile the disk must hold a copy of the table.',
};

/** The modes for viewers, who can't choose one. */
export function WhatModesDo() {
  return (
    <div class="cards">
      {(['standard', 'full'] as const).map((mode) => (
        <Card title={MODE_NAMES[mode]}>
          <p>{MODE_WORDS[mode]}</p>
        </Card>
      ))}
    </div>
  );
}

// What a vacuum would give back, and the choice of its kind and its tables.

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
  /** `look`: whoever looks may begin none; false: nobody can, for the owner's URL is missing. */
  may: boolean | 'look';
}

export function VacuumChoice({ preview, action, may }: VacuumChoiceProps) {
  const { tables, running } = preview;
  if (tables.length === 0)
    return (
      <Empty>
        The core’s database has no tables yet: there is nothing to vacuum. Look again once clients have connected.
      </Empty>
    );
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
            <button type="submit">Continue</button> <span class="fine">Nothing begins yet.</span>
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
      A vacuum runs already, and there is one at a time. <a href={`/jobs/${job}`}>See how far it is</a>.
    </p>
  );
}

function NotSetUp() {
  return (
    <Warning>
      Only the owner of the core’s database may vacuum it, and <code>CORE_DATABASE_OWNER_URL</code> is not set. Set it
      to the URL of <code>CORE_DATABASE_URL</code> with user and password of the owner, and restart.
    </Warning>
  );
}

/** Of ten GB one, and not for less than 100 MB. */
function isWorthIt({ reclaimable_bytes: reclaimable, bytes }: VacuumPreview['total']): boolean {
  return reclaimable >= 100e6 && reclaimable >= bytes / 10;
}

function WhatItGives({ preview }: { preview: VacuumPreview }) {
  const { total, rate_from: rateFrom, bytes_per_second: rate, free_bytes: free, mount, reason } = preview;
  return (
    <Card title="What a full vacuum of everything would give">
      <p>
        <span class="figure">about {formatBytes(total.reclaimable_bytes)}</span> back to the disk, of{' '}
        {formatBytes(total.bytes)}.{' '}
        {isWorthIt(total) ? null : <strong>That is little: a full vacuum is not worth the wait now.</strong>}
      </p>
      <Facts
        of={{
          'Dead rows': `${grouped(total.dead_tuples)}, beside ${grouped(total.live_tuples)} in use`,
          'Clients wait': `about ${formatSeconds(total.lock_seconds)} in all`,
          'Room needed': `${formatBytes(preview.needed_bytes)}${mount === null ? '' : ` on ${mount}`}`,
          'Room free': free === null ? 'not known' : formatBytes(free),
        }}
      />
      <p class="fine">
        All of it estimates.{' '}
        {rateFrom === 'runs'
          ? `The wait is told by the ${formatBytes(rate)} a second that were measured here before.`
          : `The wait is a cautious guess, ${formatBytes(rate)} a second: no full vacuum was measured here yet.`}
      </p>
      {reason === null ? null : (
        <Warning>
          <strong>A full vacuum of everything is not possible now.</strong> {reason}
        </Warning>
      )}
    </Card>
  );
}

function Modes() {
  return (
    <fieldset class="choices">
      <legend>Which kind</legend>
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

/** So many, the largest, are shown at once. */
const SHOWN = 10;

const COLUMNS: Column[] = [
  { label: 'Table' },
  { label: 'Size', numeric: true },
  { label: 'Gives back', numeric: true },
  { label: 'Dead rows', numeric: true },
  { label: 'Locked for', numeric: true },
];

function Tables({ tables, chooses = false }: { tables: VacuumPreview['tables']; chooses?: boolean }) {
  const rest = tables.slice(SHOWN);
  const bytes = rest.reduce((sum, table) => sum + table.bytes, 0);
  return (
    <section class="compact" aria-labelledby="tables">
      <h2 id="tables">Which tables</h2>
      {chooses ? <p>Tick tables to vacuum only those. With none ticked it is all of them.</p> : null}
      <p class="fine">What a table gives back and how long it is locked is said of a full vacuum.</p>
      <Table caption="Tables, the largest first" columns={COLUMNS} rows={tables.slice(0, SHOWN).map(rowOf(chooses))} />
      {rest.length === 0 ? null : (
        <details class="rest">
          <summary class="button">
            {counted(rest.length, 'smaller table')}, {formatBytes(bytes)} in all
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
      allowed ? (reclaimable === null ? 'unknown' : formatBytes(reclaimable)) : 'not ours',
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

// The two kinds of vacuum in two sentences each: what stops meanwhile, and what comes of it.
export const MODE_NAMES: Record<VacuumMode, string> = { standard: 'Standard vacuum', full: 'Full vacuum' };

export const MODE_WORDS: Record<VacuumMode, string> = {
  standard:
    'Makes the room of deleted rows usable again inside the database; nobody is kept waiting, and it can be done at any time. The files do not get smaller, but they stop growing for a while.',
  full: 'Writes each table anew and gives its unused room back to the disk. While a table is written, everybody who needs it waits: clients get no positions and no chat out of it until it is done, and meanwhile the disk must hold a copy of it.',
};

/** For those who cannot choose. */
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

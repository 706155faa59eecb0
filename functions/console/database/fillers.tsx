// Shows what fills the database: event types, devices and growing tables.

import type { Child } from 'hono/jsx';
import { formatBytes, counted, grouped } from '@holdfast/kit/format';
import type { Filler, Fillers } from '../../../shared/database/port.ts';
import type { DatabaseGrowth } from '../../../shared/health/modules/database.ts';
import type { Measurement } from '../../../shared/health/port.ts';
import { Card } from '../../pages/parts/card.tsx';
import { Missing } from '../../pages/parts/notice.tsx';
import { Table } from '../../pages/parts/table.tsx';

export function DatabaseFillers({ database }: { database: Measurement | null }) {
  const data = (database?.data ?? {}) as Partial<DatabaseGrowth>;
  const { fillers, fillers_problem: problem, grown_tables: tables = [] } = data;
  return (
    <Card title="Largest sources">
      {fillers === undefined && problem === undefined ? (
        <Missing>Couldn’t load the largest sources: {database?.message ?? 'not measured yet.'}</Missing>
      ) : null}
      {problem === undefined || problem === null ? null : (
        <Missing>Couldn’t load the largest senders: {problem}.</Missing>
      )}
      <div class="columns">
        {fillers === undefined || fillers === null ? null : <Talkers fillers={fillers} />}
        <Grown tables={tables} />
      </div>
    </Card>
  );
}

function Talkers({ fillers }: { fillers: Fillers }) {
  const when = fillers.seconds >= 86_400 ? 'last day' : `last ${counted(Math.round(fillers.seconds / 60), 'minute')}`;
  if (fillers.sampled === 0) return <p>No data arrived in the {when}.</p>;
  return (
    <>
      <div>
        <h3>By device, {when}</h3>
        <Shares caption={`Largest senders, ${when}`} what="Callsign" of={fillers.uids} name={callsignOf} />
      </div>
      <div>
        <h3>By type, {when}</h3>
        <Shares caption={`Types, ${when}`} what="Type" of={fillers.types} name={({ name }) => name} />
      </div>
    </>
  );
}

function callsignOf({ name, callsign }: Filler): Child {
  if (!callsign) return name;
  return (
    <>
      {callsign} <span class="fine">{name}</span>
    </>
  );
}

const FIRST = 5;

interface SharesProps {
  caption: string;
  what: string;
  of: readonly Filler[];
  name: (filler: Filler) => Child;
}

function Shares({ of, ...props }: SharesProps) {
  const more = of.slice(FIRST);
  return (
    <>
      <ShareTable {...props} of={of.slice(0, FIRST)} />
      {more.length === 0 ? null : (
        <details>
          <summary>Show {more.length} more</summary>
          <ShareTable {...props} caption={`${props.caption}, continued`} of={more} />
        </details>
      )}
    </>
  );
}

function ShareTable({ caption, what, of, name }: SharesProps) {
  return (
    <Table
      caption={caption}
      columns={[{ label: what }, { label: 'Share' }, { label: 'Amount' }]}
      rows={of.map((filler) => [
        name(filler),
        <Share part={filler.share} />,
        `about ${formatBytes(filler.bytes)} in ${grouped(filler.rows)} events`,
      ])}
    />
  );
}

const BAR = 100;

/** A bar whose length repeats the figure beside it. */
export function Share({ part, bad = false }: { part: number; bad?: boolean }) {
  const width = Math.ceil(Math.min(1, Math.max(0, part)) * BAR);
  return (
    <span class="share">
      <svg
        viewBox={`0 0 ${BAR} 8`}
        class={bad ? 'bad' : undefined}
        aria-hidden="true"
        focusable="false"
        preserveAspectRatio="none"
      >
        <rect class="whole" width={BAR} height="8" />
        <rect class="part" width={width} height="8" />
      </svg>
      {percent(part)}
    </span>
  );
}

function percent(part: number): string {
  const value = part * 100;
  return value > 0 && value < 1 ? '< 1 %' : `${Math.round(value)} %`;
}

function Grown({ tables }: { tables: DatabaseGrowth['grown_tables'] }) {
  if (tables.length === 0) return <p class="fine">Table growth is known after two days.</p>;
  const more = tables.slice(FIRST);
  return (
    <div>
      <h3>Table growth</h3>
      <GrownTable caption="Fastest-growing tables" tables={tables.slice(0, FIRST)} />
      {more.length === 0 ? null : (
        <details>
          <summary>Show {more.length} more</summary>
          <GrownTable caption="Other growing tables" tables={more} />
        </details>
      )}
    </div>
  );
}

function GrownTable({ caption, tables }: { caption: string; tables: DatabaseGrowth['grown_tables'] }) {
  return (
    <Table
      caption={caption}
      columns={[{ label: 'Table' }, { label: 'Growth', numeric: true }, { label: 'Size', numeric: true }]}
      rows={tables.map(({ schema, table, bytes, grown_bytes: grown, grown_days: days }) => [
        `${schema}.${table}`,
        `${formatBytes(grown)} in ${counted(days, 'day')}`,
        formatBytes(bytes),
      ])}
    />
  );
}

// Tables with dead rows: how many, when autovacuum came last, what a full vacuum would give back, and who keeps it from its work.

import { bytesInWords, grouped } from '../../shared/domain/amounts.ts';
import type { TableStatistics, VacuumHolder } from '../../shared/ports/core-database.ts';
import type { Measurement } from '../../shared/ports/health-cache.ts';
import type { VacuumTable } from '../../shared/ports/vacuum-facts.ts';
import { holderInWords, holderRemedy } from '../../shared/health/autovacuum-holders.ts';
import type { Clock } from '../pages/clock.ts';
import type { Attempt } from '../pages/form.ts';
import { Card } from '../pages/parts/card.tsx';
import { Missing, Warning } from '../pages/parts/notice.tsx';
import { StatusBadge } from '../pages/parts/status.tsx';
import { Table } from '../pages/parts/table.tsx';
import { When } from '../pages/parts/time.tsx';
import { Share } from './database-fillers.tsx';

type SeenTable = Omit<TableStatistics, 'options'> & { dead_pct: number };

interface TablesProps {
  autovacuum: Measurement | null;
  tables: Attempt<VacuumTable[]>;
  /** Tables with fewer dead rows need nothing. */
  least: number;
  all: boolean;
  clock: Clock;
}

const FIRST = 5;

export function DatabaseTables({ autovacuum, tables, least, all, clock }: TablesProps) {
  const { tables: seen, holders = [] } = (autovacuum?.data ?? {}) as Partial<{
    tables: SeenTable[];
    holders: VacuumHolder[];
  }>;
  return (
    <Card
      title="Dead rows"
      id="tables"
      class={autovacuum?.status ?? ''}
      aside={autovacuum === null ? undefined : <StatusBadge status={autovacuum.status} />}
    >
      <p class="fine">
        What was deleted or replaced leaves dead rows. The database clears them away by itself; below {grouped(least)}{' '}
        they do not matter.
      </p>
      {autovacuum === null || autovacuum.status === 'ok' || seen === undefined ? null : <p>{autovacuum.message}</p>}
      <Holders holders={holders} />
      {seen === undefined ? (
        <Missing>The tables cannot be looked at now: {autovacuum?.message ?? 'they were not measured yet.'}</Missing>
      ) : (
        <Listed seen={seen} tables={tables} least={least} all={all} clock={clock} />
      )}
      {seen !== undefined && tables.refused !== undefined ? (
        <Missing>How large they are is not known now: {tables.refused.message}</Missing>
      ) : null}
    </Card>
  );
}

function Holders({ holders }: { holders: readonly VacuumHolder[] }) {
  if (holders.length === 0) return null;
  return (
    <Warning>
      <p>Something keeps dead rows from being cleared away:</p>
      <ul>
        {holders.map((holder) => (
          <li>
            {holderInWords(holder).replace(/^t/, 'T')}. {holderRemedy(holder)}
          </li>
        ))}
      </ul>
    </Warning>
  );
}

function Listed({ seen, tables, least, all, clock }: Omit<TablesProps, 'autovacuum'> & { seen: readonly SeenTable[] }) {
  const sizes = new Map((tables.done ?? []).map((table) => [keyOf(table), table]));
  const worstFirst = seen.toSorted((a, b) => b.dead_tuples - a.dead_tuples);
  const shown = all ? worstFirst : worstFirst.filter(({ dead_tuples: dead }) => dead >= least / 10).slice(0, FIRST);
  return (
    <>
      {shown.length === 0 ? (
        <p>No table has enough of them to matter.</p>
      ) : (
        <Table
          caption="Tables, those with most dead rows first"
          columns={[
            { label: 'Table' },
            { label: 'Dead rows' },
            { label: 'Cleared last' },
            { label: 'Size', numeric: true },
            { label: 'A full vacuum gives back', numeric: true },
          ]}
          rows={shown.map((table) => {
            const size = sizes.get(keyOf(table));
            const room = size?.reclaimable_bytes ?? null;
            return [
              keyOf(table),
              <span>
                <Share part={table.dead_pct / 100} bad={table.dead_tuples >= least} />{' '}
                <span class="fine">
                  {grouped(table.dead_tuples)} of {grouped(table.dead_tuples + table.live_tuples)}
                </span>
              </span>,
              <When at={later(table.last_autovacuum, table.last_vacuum)} clock={clock} relative />,
              size === undefined ? null : bytesInWords(size.bytes),
              room === null || room === 0 ? null : `about ${bytesInWords(room)}`,
            ];
          })}
        />
      )}
      <div class="row">
        <a class="button" href="/database/vacuum">
          Vacuum
        </a>
        {all || seen.length <= shown.length ? null : (
          <a class="button" href="/database?tables=all#tables">
            All {seen.length} tables
          </a>
        )}
      </div>
    </>
  );
}

function keyOf({ schema, table }: { schema: string; table: string }): string {
  return `${schema}.${table}`;
}

function later(a: string | null, b: string | null): string | null {
  if (a === null || b === null) return a ?? b;
  return Date.parse(a) > Date.parse(b) ? a : b;
}

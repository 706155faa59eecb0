// GET /database: shows the size of the core's database, its forecast, what fills it and the next
// steps. Data that is unavailable is named in its place.

import { formatBytes, counted, grouped, percentageOf } from '@holdfast/kit/format';
import { DAY_MS } from '@holdfast/kit/time';
import { withTimeout } from '@holdfast/kit/timeout';
import type { DatabaseSize, TableStatistics, VacuumHolder } from '../../../shared/core/database/port.ts';
import { holdingPolicy } from '../../../shared/database/growth/policy.ts';
import { type GrowthReport, growthReport } from '../../../shared/database/growth/report.ts';
import type { HoldingPolicy } from '../../../shared/database/holding-policy.ts';
import type { VacuumTable } from '../../../shared/database/port.ts';
import { limitsOf } from '../../../shared/health/evaluate.ts';
import { formatHolder, holderRemedy } from '../../../shared/health/modules/autovacuum.ts';
import type { VolumeData } from '../../../shared/health/modules/database-server.ts';
import type { Measurement } from '../../../shared/health/port.ts';
import type { App } from '../../../shared/http/context.ts';
import type { Deps } from '../../../shared/http/deps.ts';
import { type Attempt, attempt } from '../../pages/form.ts';
import { framed } from '../../pages/frame.tsx';
import { type PageContext, pagesOf } from '../../pages/page-routes.ts';
import { Card, Facts } from '../../pages/parts/card.tsx';
import { Missing, StatusBadge, Warning } from '../../pages/parts/notice.tsx';
import { Table } from '../../pages/parts/table.tsx';
import { type Clock, clockOf, When } from '../../pages/parts/time.tsx';
import { DatabaseFillers, Share } from './fillers.tsx';
import { DatabaseNext } from './next.tsx';
import { DatabaseSizes } from './sizes.tsx';
import { DatabaseTabs } from './tabs.tsx';

type SeenTable = Omit<TableStatistics, 'options'> & { dead_pct: number };

interface TablesProps {
  autovacuum: Measurement | null;
  tables: Attempt<VacuumTable[]>;
  /** Tables with fewer dead rows need no action. */
  least: number;
  all: boolean;
  clock: Clock;
}

const FIRST = 5;

/**
 * Lists tables with dead rows: the last autovacuum, the space a full vacuum frees, and what blocks
 * the cleanup.
 */
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
        Deleted and replaced data leaves dead rows. The database clears them by itself. Fewer than {grouped(least)} per
        table do not matter.
      </p>
      {autovacuum === null || autovacuum.status === 'ok' || seen === undefined ? null : <p>{autovacuum.message}</p>}
      <Holders holders={holders} />
      {seen === undefined ? (
        <Missing>Couldn’t load the tables: {autovacuum?.message ?? 'not measured yet.'}</Missing>
      ) : (
        <Listed seen={seen} tables={tables} least={least} all={all} clock={clock} />
      )}
      {seen !== undefined && tables.refused !== undefined ? (
        <Missing>Couldn’t load the table sizes: {tables.refused.message}</Missing>
      ) : null}
    </Card>
  );
}

function Holders({ holders }: { holders: readonly VacuumHolder[] }) {
  if (holders.length === 0) return null;
  return (
    <Warning>
      <p>Dead rows can’t be cleared because of:</p>
      <ul>
        {holders.map((holder) => (
          <li>
            {formatHolder(holder).replace(/^t/, 'T')}. {holderRemedy(holder)}
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
        <p>No table has enough dead rows to matter.</p>
      ) : (
        <Table
          caption="Tables by dead rows"
          columns={[
            { label: 'Table' },
            { label: 'Dead rows' },
            { label: 'Last cleared' },
            { label: 'Size', numeric: true },
            { label: 'Full vacuum frees', numeric: true },
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
              size === undefined ? null : formatBytes(size.bytes),
              room === null || room === 0 ? null : `about ${formatBytes(room)}`,
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
            Show all {seen.length} tables
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

// Further figures of the database: live data, write-ahead log, archive and disk.
type Seen = DatabaseSize & VolumeData & { overhead_bytes: number; lost_events: number | null };

interface FactsProps {
  database: Measurement | null;
  report: GrowthReport;
  clock: Clock;
}

export function DatabaseFacts({ database, report, clock }: FactsProps) {
  const data = (database?.data ?? {}) as Partial<Seen>;
  if (database === null || data.total_bytes === undefined)
    return (
      <Card title="Figures">
        <Missing>Couldn’t load the figures: {database?.message ?? 'not measured yet.'}</Missing>
      </Card>
    );
  return (
    <Card title="Figures">
      <Facts
        of={{
          'Live data': data.live_bytes === undefined ? undefined : formatBytes(data.live_bytes),
          Overhead:
            data.overhead_bytes === undefined
              ? undefined
              : `${formatBytes(Math.max(0, data.overhead_bytes))}: catalogs, and space a full vacuum would free`,
          'Write-ahead log (WAL)': formatWal(data),
          Archive: formatArchive(data),
          Disk: formatDisk(report),
          Volume: formatVolume(data),
          'Events lost': formatLost(data.lost_events),
          PostgreSQL: data.version,
          Measured: <When at={database.updated_at} clock={clock} />,
        }}
      />
    </Card>
  );
}

function formatWal({ wal_bytes: bytes, max_wal_bytes: most }: Partial<Seen>): string | undefined {
  if (bytes === undefined || most === undefined) return undefined;
  if (bytes === null) return 'unknown: the role of Holdfast lacks pg_monitor';
  return `${formatBytes(bytes)} (grows up to about ${formatBytes(most)}, no matter what is stored)`;
}

function formatArchive({ archive_mode: mode, archive_failing: failing }: Partial<Seen>): string | undefined {
  if (mode === undefined) return undefined;
  if (failing === true) return 'failing: WAL will fill the disk until this is fixed';
  return mode === 'off' ? 'off' : `${mode}, working`;
}

function formatDisk({ mounts }: GrowthReport): string | undefined {
  const holding = mounts.find(({ holdsDatabase }) => holdsDatabase);
  if (holding === undefined) return undefined;
  const { mount, total_bytes: total, free_bytes: free } = holding.sample;
  return `${mount}: ${formatBytes(free)} of ${formatBytes(total)} free (${Math.round(percentageOf(total - free, total))} % used)`;
}

function formatVolume({ volume, volume_detail: detail }: Partial<Seen>): string | undefined {
  if (volume === undefined || volume === 'not applicable') return undefined;
  return detail === null || detail === undefined ? volume : `${volume}: ${detail}`;
}

function formatLost(lost: number | null | undefined): string | undefined {
  if (lost === undefined || lost === null) return undefined;
  return lost === 0
    ? 'none in the last 24 hours'
    : `${counted(lost, 'event')} in the last 24 hours (missing in the history)`;
}

export const RANGES = [7, 30, 90, 400] as const;
const TABLES_WITHIN_MS = 800;
/** Fraction of the warning threshold: at the threshold it is already too much. */
const BELOW = 0.95;
const POLICY_WITHIN_MS = 500;
const SAMPLES_WITHIN_MS = 3_000;

/** Adds the route of this file. */
export function databasePage(app: App, deps: Deps): void {
  pagesOf(app, deps, ['console']).get('/database', { access: 'viewer' }, async function showDatabase(c) {
    const days = rangeOf(c);
    const clock = clockOf(deps);
    const since = new Date(clock.now.getTime() - days * DAY_MS).toISOString();
    const own = deps.thresholds.modules['database'];
    const limits = limitsOf(own ?? { interval: 60, alert_min_level: 'warning' });
    const report = await growthReport(deps);
    const [states, policy, samples, tables] = await Promise.all([
      deps.health.states(),
      attempt(() => policyBelow(deps, report, limits.warning)),
      attempt(() => withTimeout(SAMPLES_WITHIN_MS, "Holdfast's own database", () => deps.growthHistory.samples(since))),
      attempt(() => withTimeout(TABLES_WITHIN_MS, "The core's database", () => deps.vacuumFacts.tables())),
    ]);
    const measurementOf = (name: string) => states.find(({ module }) => module === name)?.measurement ?? null;
    const [database, autovacuum] = [measurementOf('database'), measurementOf('autovacuum')];
    const body = (
      <>
        <DatabaseTabs current="/database" />
        <div id="database" data-live="/api/health?view=status" data-every="30">
          <DatabaseNext database={database} thresholds={own} policy={policy.done} tables={tables} />
          <DatabaseSizes days={days} samples={samples} report={report} limits={limits} clock={clock} />
          <DatabaseFillers database={database} />
          <DatabaseTables
            autovacuum={autovacuum}
            tables={tables}
            least={deps.thresholds.AUTOVACUUM_MIN_DEAD_TUPLES}
            all={c.req.query('tables') === 'all'}
            clock={clock}
          />
          <DatabaseFacts database={database} report={report} clock={clock} />
        </div>
        <noscript>
          <p class="fine">Scripts are off. Reload this page to see changes.</p>
        </noscript>
      </>
    );
    return framed(c, deps, { title: 'Database', current: 'database', body });
  });
}

/** A policy that keeps the database below the warnings of its size and of its disk. */
function policyBelow(deps: Deps, report: GrowthReport, warningBytes: number): Promise<HoldingPolicy> {
  const percent = Number(deps.thresholds.modules['disk']?.['warning']);
  return withTimeout(POLICY_WITHIN_MS, 'Holdfast', () =>
    holdingPolicy(deps.monitored, report, percent, warningBytes * BELOW),
  );
}

function rangeOf(c: PageContext): (typeof RANGES)[number] {
  return RANGES.find((days) => String(days) === c.req.query('days')) ?? 30;
}

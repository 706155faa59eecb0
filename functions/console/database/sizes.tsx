// Shows the database size over time as a chart and a table, with its forecast.

import { formatBytes } from '@holdfast/kit/format';
import { DAY_MS, HOUR_MS } from '@holdfast/kit/time';
import { formatFull } from '../../../shared/database/forecast.ts';
import { formatGrowth } from '../../../shared/database/growth/fillers.ts';
import type { GrowthReport } from '../../../shared/database/growth/report.ts';
import type { GrowthSample } from '../../../shared/database/port.ts';
import { lastOfEach, type Reach, reachOf, type SizeThen } from '../../../shared/database/size-forecast.ts';
import type { Limits } from '../../../shared/health/evaluate.ts';
import type { Attempt } from '../../pages/form.ts';
import { Card, Facts } from '../../pages/parts/card.tsx';
import { Missing } from '../../pages/parts/notice.tsx';
import { SizeChart } from '../../pages/parts/size-chart.tsx';
import { Table } from '../../pages/parts/table.tsx';
import { type Clock, timeInZone } from '../../pages/parts/time.tsx';

const RANGE_NAMES: Readonly<Record<number, string>> = { 7: '7 days', 30: '30 days', 90: '90 days', 400: '13 months' };
/** Rows in the table of figures, by days. */
const ROWS: Readonly<Record<number, number>> = { 7: 14, 30: 30, 90: 30, 400: 27 };
/** Samples that are older than two months are a day apart. */
const HOURLY_DAYS = 60;

interface SizesProps {
  days: number;
  samples: Attempt<GrowthSample[]>;
  report: GrowthReport;
  limits: Limits;
  clock: Clock;
}

export function DatabaseSizes(props: SizesProps) {
  const { days, samples, report, clock } = props;
  return (
    <Card title="Size over time" id="size" aside={<Ranges days={days} />}>
      {samples.done === undefined ? (
        <Missing>Couldn’t load the size history: {samples.refused?.message}</Missing>
      ) : (
        <Sizes {...props} samples={samples.done} />
      )}
      {report.problem === null ? null : <Missing>{capital(report.problem)}.</Missing>}
      <p class="fine">Times are in {clock.timeZone}.</p>
    </Card>
  );
}

function Ranges({ days }: { days: number }) {
  return (
    <nav class="ranges" aria-label="Time range">
      {Object.entries(RANGE_NAMES).map(([each, name]) => (
        <a href={`/database?days=${each}#size`} aria-current={Number(each) === days ? 'true' : undefined}>
          {name}
        </a>
      ))}
    </nav>
  );
}

function Sizes({ days, samples, report, limits, clock }: Omit<SizesProps, 'samples'> & { samples: GrowthSample[] }) {
  const nowMs = clock.now.getTime();
  const fromMs = nowMs - days * DAY_MS;
  const points = samples.map(({ at, database_bytes: bytes }) => ({ atMs: Date.parse(at), bytes }));
  const known = points.filter((point): point is SizeThen => point.bytes !== null && point.atMs <= nowMs);
  const { growth } = report.database;
  if (known.length < 2)
    return (
      <p class="fine">Not enough samples for a chart yet. One is taken every minute. Growth is known after 6 hours.</p>
    );
  const firstMs = Math.max(fromMs, (known[0]?.atMs ?? fromMs) - HOUR_MS);
  // The forecast reaches ahead half as far as the samples reach back.
  const toMs = growth === undefined ? nowMs : nowMs + (nowMs - firstMs) / 2;
  return (
    <>
      <SizeChart
        points={points.filter(({ atMs }) => atMs <= nowMs)}
        fromMs={firstMs}
        nowMs={nowMs}
        toMs={toMs}
        growth={growth}
        limits={limits}
        apartMs={days > HOURLY_DAYS ? 50 * HOUR_MS : 3 * HOUR_MS}
        timeZone={clock.timeZone}
      />
      <Ahead report={report} limits={limits} clock={clock} />
      <Figures known={known} fromMs={fromMs} rows={ROWS[days] ?? 30} clock={clock} />
    </>
  );
}

function Ahead({ report, limits, clock }: Pick<SizesProps, 'report' | 'limits' | 'clock'>) {
  const { database, databaseBytes } = report;
  const { growth, full, reason } = database;
  const nowMs = clock.now.getTime();
  const isPace = growth?.basis === 'pace';
  const reach = (limit: number): string => formatReach(reachOf(growth, databaseBytes, limit, nowMs), clock, reason);
  return (
    <Facts
      of={{
        Growth:
          growth === undefined
            ? (reason ?? 'unknown yet')
            : growth.bytesPerDay <= 0
              ? 'not growing'
              : `${formatGrowth(growth.bytesPerDay)}${isPace ? ' (pace of the last minutes)' : ''}`,
        [`Warning, ${formatBytes(limits.warning)}`]: reach(limits.warning),
        [`Critical, ${formatBytes(limits.critical)}`]: reach(limits.critical),
        'Disk full': full === undefined ? (reason ?? 'unknown yet') : `in ${formatFull(full)}`,
      }}
    />
  );
}

function formatReach(reach: Reach, { timeZone }: Clock, reason: string | null): string {
  const day = (ms: number): string => timeInZone(new Date(ms).toISOString(), timeZone).slice(0, 10);
  if (reach.state === 'reached') return 'reached';
  if (reach.state === 'never') return 'not within 2 years at this pace';
  if (reach.state === 'unknown') return reason ?? 'unknown yet';
  const { atMs, earliestMs, latestMs } = reach;
  const latest = latestMs === null ? 'or never' : `latest ${day(latestMs)}`;
  return `about ${day(atMs)} (earliest ${day(earliestMs)}, ${latest})`;
}

interface FiguresProps {
  known: readonly SizeThen[];
  fromMs: number;
  rows: number;
  clock: Clock;
}

function Figures({ known, fromMs, rows, clock }: FiguresProps) {
  const few = lastOfEach(known, fromMs, clock.now.getTime(), rows);
  return (
    <details id="size-figures">
      <summary>Show as table</summary>
      <Table
        caption="Size of the database over time"
        columns={[{ label: 'Time' }, { label: 'Size', numeric: true }, { label: 'Change', numeric: true }]}
        rows={few
          .map(({ atMs, bytes }, at) => [
            timeInZone(new Date(atMs).toISOString(), clock.timeZone),
            formatBytes(bytes),
            formatChange(bytes, few[at - 1]?.bytes),
          ])
          .toReversed()}
      />
    </details>
  );
}

function formatChange(bytes: number, before: number | undefined): string | null {
  if (before === undefined) return null;
  const change = bytes - before;
  return `${change < 0 ? '−' : '+'}${formatBytes(Math.abs(change))}`;
}

function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

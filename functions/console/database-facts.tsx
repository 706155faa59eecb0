// The other figures of the database: what is live, what the write-ahead log takes, the archive, the disk.

import { bytesInWords, counted, percentageOf } from '../../shared/domain/amounts.ts';
import type { VolumeData } from '../../shared/health/database-volume.ts';
import type { DatabaseSize } from '../../shared/ports/core-database.ts';
import type { Measurement } from '../../shared/ports/health-cache.ts';
import type { GrowthReport } from '../../shared/verbs/growth-report.ts';
import type { Clock } from '../pages/clock.ts';
import { Card, Facts } from '../pages/parts/card.tsx';
import { Missing } from '../pages/parts/notice.tsx';
import { When } from '../pages/parts/time.tsx';

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
        <Missing>They are not known now: {database?.message ?? 'nothing was measured yet.'}</Missing>
      </Card>
    );
  return (
    <Card title="Figures">
      <Facts
        of={{
          'Live data': data.live_bytes === undefined ? undefined : bytesInWords(data.live_bytes),
          Overhead:
            data.overhead_bytes === undefined
              ? undefined
              : `${bytesInWords(Math.max(0, data.overhead_bytes))}: catalogues, and what a full vacuum would give back`,
          'Write-ahead log (WAL)': walInWords(data),
          Archive: archiveInWords(data),
          'Its disk': diskInWords(report),
          'Where its files lie': volumeInWords(data),
          'Events not stored': lostInWords(data.lost_events),
          PostgreSQL: data.version,
          Measured: <When at={database.updated_at} clock={clock} />,
        }}
      />
    </Card>
  );
}

function walInWords({ wal_bytes: bytes, max_wal_bytes: most }: Partial<Seen>): string | undefined {
  if (bytes === undefined || most === undefined) return undefined;
  if (bytes === null) return 'cannot be seen: the role of Holdfast lacks pg_monitor';
  return `${bytesInWords(bytes)}; it grows up to about ${bytesInWords(most)} whatever is stored`;
}

function archiveInWords({ archive_mode: mode, archive_failing: failing }: Partial<Seen>): string | undefined {
  if (mode === undefined) return undefined;
  if (failing === true) return 'fails: WAL will fill the disk until it works again';
  return mode === 'off' ? 'off' : `${mode}, and it takes what it gets`;
}

function diskInWords({ mounts }: GrowthReport): string | undefined {
  const holding = mounts.find(({ holdsDatabase }) => holdsDatabase);
  if (holding === undefined) return undefined;
  const { mount, total_bytes: total, free_bytes: free } = holding.sample;
  return `${mount}: ${bytesInWords(free)} of ${bytesInWords(total)} free (${Math.round(percentageOf(total - free, total))} % used)`;
}

function volumeInWords({ volume, volume_detail: detail }: Partial<Seen>): string | undefined {
  if (volume === undefined || volume === 'not applicable') return undefined;
  return detail === null || detail === undefined ? volume : `${volume}: ${detail}`;
}

function lostInWords(lost: number | null | undefined): string | undefined {
  if (lost === undefined || lost === null) return undefined;
  return lost === 0
    ? 'none in the last 24 hours'
    : `${counted(lost, 'event')} in the last 24 hours: missing in the history`;
}

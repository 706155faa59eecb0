// Shows the result of a finished job in words and figures.

import { z } from '@hono/zod-openapi';
import { formatBytes, counted, grouped, formatSeconds, rounded } from '@holdfast/kit/format';
import { BACKUP_JOB, type BackupResult, readResult as readBackupResult } from '../../../shared/backups/jobs.ts';
import { LEVEL_WORDS } from '../../../shared/backups/rules.ts';
import { readResult, VACUUM_JOB, type VacuumedTable, type VacuumResult } from '../../../shared/database/vacuum/jobs.ts';
import { nameOf } from '../../../shared/database/vacuum/rules.ts';
import type { OpsJob } from '../../../shared/jobs/port.ts';
import { RETENTION_JOB } from '../../../shared/retention/jobs.ts';
import {
  readResult as readSimulationResult,
  SIMULATION_JOB,
  type SimulationResult,
} from '../../../shared/simulation/jobs.ts';
import type { Status } from '../../../shared/settings/status.ts';
import { Facts } from '../../pages/parts/card.tsx';
import { StatusBadge } from '../../pages/parts/notice.tsx';
import { Table } from '../../pages/parts/table.tsx';
import { formatRows } from '../retention/draft.ts';

const retentionSchema = z.object({
  rows: z.record(z.string(), z.number()),
  included: z.object({ cot: z.number(), files: z.number() }),
  bytes: z.number().nullable(),
  seconds: z.number().nullable(),
});
type RetentionResult = z.infer<typeof retentionSchema>;

function retentionResultOf({ kind, result }: OpsJob): RetentionResult | undefined {
  return kind === RETENTION_JOB ? retentionSchema.safeParse(result).data : undefined;
}

function vacuumResultOf(job: OpsJob): VacuumResult | undefined {
  return job.kind === VACUUM_JOB ? readResult(job) : undefined;
}

function backupResultOf(job: OpsJob): BackupResult | undefined {
  return job.kind === BACKUP_JOB ? readBackupResult(job) : undefined;
}

function simulationResultOf(job: OpsJob): SimulationResult | undefined {
  return job.kind === SIMULATION_JOB ? readSimulationResult(job) : undefined;
}

function levelOf({ level }: BackupResult): string {
  return level === null ? 'Not proven' : `Proven: ${LEVEL_WORDS[level].title}`;
}

/** A short summary; undefined if there is no result. */
export function formatResult(job: OpsJob): string | undefined {
  const vacuum = vacuumResultOf(job);
  if (vacuum !== undefined) {
    const { mode, bytes_given_back: given, tables } = vacuum;
    const done = tables.filter(({ state }) => state === 'done').length;
    const all = counted(tables.length, 'table');
    const many = `${done === tables.length ? all : `${done} of ${all}`} vacuumed`;
    if (mode === 'standard' && given === 0) return `${many}. New rows can reuse the space of dead rows.`;
    return `${many}. ${given === 0 ? 'No space' : formatBytes(given)} returned to the disk.`;
  }
  const backup = backupResultOf(job);
  if (backup !== undefined) return `${formatBytes(backup.bytes)}. ${levelOf(backup)}.`;
  const simulation = simulationResultOf(job);
  if (simulation !== undefined) {
    const { clients, delivered, expected, p99_ms: p99 } = simulation;
    const latency = p99 === null ? '' : `, p99 ${p99} ms`;
    return `${counted(clients, 'client')}: ${grouped(delivered)} of ${grouped(expected)} deliveries${latency}.`;
  }
  const retention = retentionResultOf(job);
  if (retention === undefined) return undefined;
  const rows = deletedBy(retention);
  if (rows === 0) return 'Nothing was deleted.';
  const { bytes } = retention;
  const freed = bytes === null || bytes === 0 ? '' : ` About ${formatBytes(bytes)} free for new rows.`;
  return `${formatRows(rows)} deleted.${freed}`;
}

function deletedBy({ rows, included }: RetentionResult): number {
  return Object.values(rows).reduce((sum, each) => sum + each, 0) + included.cot + included.files;
}

/** The figures behind the summary. */
export function JobResult({ job }: { job: OpsJob }) {
  const vacuum = vacuumResultOf(job);
  if (vacuum !== undefined) return <Vacuumed result={vacuum} />;
  const backup = backupResultOf(job);
  if (backup !== undefined) return <BackedUp result={backup} />;
  const simulation = simulationResultOf(job);
  if (simulation !== undefined) return <Simulated result={simulation} />;
  const retention = retentionResultOf(job);
  return retention === undefined ? null : <Deleted result={retention} />;
}

function BackedUp({ result }: { result: BackupResult }) {
  const { name, bytes, rows, seconds } = result;
  return (
    <Facts
      of={{
        Backup: <a href="/backups">{name}</a>,
        Size: formatBytes(bytes),
        Rows: grouped(rows),
        Duration: formatSeconds(seconds),
        Level: levelOf(result),
      }}
    />
  );
}

function Simulated({ result }: { result: SimulationResult }) {
  const { thinning_seconds: seconds, members_left: left, core_cpu_share: cpu, core_memory_bytes: memory } = result;
  const thinned = `${grouped(result.lost)} with positions left out (thinning: ${seconds} s), ${grouped(result.lost_urgent)} of chat and marks`;
  const ms = (value: number | null): string | undefined => (value === null ? undefined : `${value} ms`);
  return (
    <Facts
      of={{
        Clients: `${grouped(result.clients)} connected at the end, ${grouped(result.ended)} disconnected`,
        'Events sent': grouped(result.sent),
        Delivered: `${grouped(result.delivered)} of ${grouped(result.expected)}`,
        Lost: seconds > 0 ? thinned : grouped(result.lost),
        'Latency, half of the deliveries': ms(result.p50_ms),
        'Latency, 99 %': ms(result.p99_ms),
        'CPU of the core': cpu === null ? undefined : `${rounded(cpu * 100, 1)} % of a processor`,
        'Memory of the core': memory === null ? undefined : formatBytes(memory),
        'Channel kept for': left.length === 0 ? undefined : left.join(', '),
      }}
    />
  );
}

const TYPES: Record<string, string> = {
  cot: 'CoT events',
  geochat: 'Chat messages',
  files: 'Files',
  missionpackages: 'Mission packages',
  missions: 'Missions',
};

function Deleted({ result }: { result: RetentionResult }) {
  const { rows, included, seconds } = result;
  const deleted = Object.entries(rows).map(([type, count]) => [TYPES[type] ?? type, grouped(count)]);
  const withMissions = [
    ...(included.cot > 0 ? [`${grouped(included.cot)} CoT events`] : []),
    ...(included.files > 0 ? [counted(included.files, 'file')] : []),
  ].join(' and ');
  return (
    <Facts
      of={{
        ...Object.fromEntries(deleted),
        'Deleted with missions': withMissions === '' ? undefined : withMissions,
        Duration: seconds === null ? undefined : formatSeconds(seconds),
      }}
    />
  );
}

const ENDS: Record<VacuumedTable['state'], [status: Status, word: string]> = {
  done: ['ok', 'Done'],
  not_begun: ['note', 'Not started'],
  skipped: ['warning', 'Skipped'],
  failed: ['critical', 'Failed'],
  interrupted: ['warning', 'Interrupted'],
};

/** How many tables are visible without unfolding. */
const SHOWN = 5;

/** Tables with problems first, then the largest. */
function Vacuumed({ result }: { result: VacuumResult }) {
  const tables = result.tables.toSorted(
    (a, b) => Number(a.state === 'done') - Number(b.state === 'done') || b.bytes_before - a.bytes_before,
  );
  const rest = tables.slice(SHOWN);
  return (
    <div class="compact">
      <Ended caption="Results by table" tables={tables.slice(0, SHOWN)} />
      {rest.length === 0 ? null : (
        <details class="rest" id="rest">
          <summary>{counted(rest.length, 'more table')}</summary>
          <Ended caption="Results of the other tables" tables={rest} />
        </details>
      )}
    </div>
  );
}

function Ended({ caption, tables }: { caption: string; tables: readonly VacuumedTable[] }) {
  return (
    <Table
      caption={caption}
      columns={[
        { label: 'Table' },
        { label: 'Result' },
        { label: 'Before', numeric: true },
        { label: 'After', numeric: true },
        { label: 'Duration', numeric: true },
      ]}
      rows={tables.map((table) => {
        const [status, word] = ENDS[table.state];
        const { bytes_before: before, bytes_after: after, seconds, error } = table;
        return [
          <code class="whole">{nameOf(table)}</code>,
          <div>
            <StatusBadge status={status}>{word}</StatusBadge>
            {error === null ? null : <div class="fine">{error}</div>}
          </div>,
          formatBytes(before),
          after === null ? '-' : formatBytes(after),
          seconds === null ? '-' : formatSeconds(seconds),
        ];
      })}
    />
  );
}

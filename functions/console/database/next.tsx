// What to do next about the database: how it is, why, and the two levers: keep less, or give room back to the disk.

import { formatBytes, counted, percentageOf } from '@holdfast/kit/format';
import { capitalised, ended } from '@holdfast/kit/text';
import type { HoldingPolicy } from '../../../shared/database/holding-policy.ts';
import type { VacuumTable } from '../../../shared/database/port.ts';
import { limitsOf } from '../../../shared/health/evaluate.ts';
import type { DatabaseGrowth } from '../../../shared/health/modules/database.ts';
import type { Measurement } from '../../../shared/health/port.ts';
import type { ModuleThresholds } from '../../../shared/settings/status.ts';
import type { Attempt } from '../../pages/form.ts';
import { Card } from '../../pages/parts/card.tsx';
import { StatusBadge } from '../../pages/parts/notice.tsx';

type Seen = Partial<DatabaseGrowth & { total_bytes: number }>;

/** Nothing about what was not measured. */
export function whyTheDatabase(data: Record<string, unknown>, thresholds: ModuleThresholds | undefined): string[] {
  const seen = data as Seen;
  if (seen.total_bytes === undefined || thresholds === undefined) return [];
  return [againstLimits(seen.total_bytes, thresholds), ...forecast(seen), ...fillers(seen), ...grown(seen)];
}

function againstLimits(total: number, thresholds: ModuleThresholds): string {
  const { warning, critical } = limitsOf(thresholds);
  const size = formatBytes(total);
  if (total >= critical) return `${size} is beyond ${formatBytes(critical)}, from which it is critical.`;
  if (total >= warning)
    return `${size} is beyond ${formatBytes(warning)}, from which it is a warning; from ${formatBytes(critical)} it is critical.`;
  return `${size} of ${formatBytes(warning)}, from which it is a warning (${Math.round(percentageOf(total, warning))} %).`;
}

function forecast({ growth_bytes_per_day: perDay, full_in_days: days, growth_reason: reason }: Seen): string[] {
  if (perDay === undefined || perDay === null)
    return reason ? [`When the disk is full is not known yet: ${ended(reason)}`] : [];
  if (perDay <= 0) return ['It does not grow.'];
  const pace = `It grows by ${formatBytes(perDay)} a day`;
  if (days === undefined || days === null)
    return [reason ? `${pace}. When its disk is full: ${ended(reason)}` : `${pace}.`];
  return [`${pace}: its disk is full in ${days < 1 ? 'less than a day' : counted(Math.floor(days), 'day')}.`];
}

function fillers({ fillers: seen }: Seen): string[] {
  const [type] = seen?.types ?? [];
  const [uid] = seen?.uids ?? [];
  if (type === undefined || uid === undefined || seen === null || seen === undefined) return [];
  const time = seen.seconds >= 86_400 ? 'the last day' : 'the last minutes';
  const who = uid.callsign ? `${uid.callsign} (${uid.name})` : uid.name;
  return [`Most of ${time}: ${type.name} (${percent(type.share)}), and the client ${who} (${percent(uid.share)}).`];
}

function grown({ grown_tables: tables }: Seen): string[] {
  const [first] = tables ?? [];
  if (first === undefined || first.grown_bytes <= 0) return [];
  const { schema, table, grown_bytes: bytes, grown_days: days } = first;
  return [`The table ${schema}.${table} grew most: by ${formatBytes(bytes)} in ${counted(Math.round(days), 'day')}.`];
}

function percent(share: number): string {
  return `${Math.round(share * 100)} %`;
}

interface NextProps {
  database: Measurement | null;
  thresholds: ModuleThresholds | undefined;
  /** Which retention would hold it below its warning. */
  policy: HoldingPolicy | undefined;
  tables: Attempt<VacuumTable[]>;
}

/** Of that the reasons below tell more. */
const OF_SIZE = 'the database: ';

export function DatabaseNext({ database, thresholds, policy, tables }: NextProps) {
  if (database === null)
    return (
      <Card title="What to do next">
        <p>The database has not been looked at yet: a measurement comes within a minute.</p>
      </Card>
    );
  const data = database.data as Partial<DatabaseGrowth & { total_bytes: number }>;
  const { status } = database;
  return (
    <Card
      title={status === 'ok' ? 'Nothing to do' : 'What to do next'}
      class={status}
      aside={<StatusBadge status={status} />}
    >
      {data.total_bytes === undefined ? null : <p class="figure">{formatBytes(data.total_bytes)}</p>}
      {status === 'ok' || database.message.startsWith(OF_SIZE) ? null : <p>{ended(capitalised(database.message))}</p>}
      <ul class="why">
        {whyTheDatabase(database.data, thresholds).map((each) => (
          <li>{each}</li>
        ))}
      </ul>
      <div class="levers">
        <KeepLess policy={policy ?? data.policy} database={database} />
        <GiveBack tables={tables} />
      </div>
      {status === 'ok' ? null : (
        <p class="after">
          <a href="/health/database">Everything that was measured, with commands that help</a>
        </p>
      )}
    </Card>
  );
}

interface KeepLessProps {
  policy: HoldingPolicy | undefined;
  database: Measurement;
}

function KeepLess({ policy, database }: KeepLessProps) {
  return (
    <section class="lever">
      <h3>Keep less</h3>
      <p>{formatKeepLess(policy, database)}</p>
      <PreviewLink policy={policy} />
      <a class="button" href="/database/retention">
        What is kept how long
      </a>
    </section>
  );
}

function formatKeepLess(policy: HoldingPolicy | undefined, { status, data }: Measurement): string {
  if (policy === undefined) return 'Delete what is old by itself: events, chat and files.';
  const { state, cot_days: cot, geochat_days: chat, holds_bytes: holds } = policy;
  if (state === 'suggested' && cot !== null && holds !== null) {
    const also = chat === null ? '' : ` and chat for ${counted(chat, 'day')}`;
    return `Keeping positions and events for ${counted(cot, 'day')}${also} would hold it at about ${formatBytes(holds)}. ${beyond(holds, data['total_bytes'])}See what that deletes before you decide.`;
  }
  if (state === 'in_force' && holds !== null)
    return `The policy in force holds it at about ${formatBytes(holds)}: no need to keep less.`;
  if (state === 'not_needed' && status !== 'ok')
    return 'It does not grow, and stays as large as it is until old rows are deleted and a full vacuum gives their room back.';
  if (state === 'not_needed') return `No need: ${ended(policy.says)}`;
  return ended(capitalised(policy.says));
}

function beyond(holds: number, now: unknown): string {
  return typeof now === 'number' && now > holds
    ? 'What it takes beyond that now, only a full vacuum gives back to the disk. '
    : '';
}

function PreviewLink({ policy }: { policy: HoldingPolicy | undefined }) {
  if (policy?.state !== 'suggested' || policy.cot_days === null) return null;
  const chat = policy.geochat_days === null ? '' : `&geochat=${policy.geochat_days}`;
  return (
    <a class="button primary" href={`/database/retention/preview?cot=${policy.cot_days}${chat}`}>
      Preview {counted(policy.cot_days, 'day')}
    </a>
  );
}

/** Less than this part, or than so many bytes, is not worth locking anybody out. */
const WORTH_IT = 0.1;
const MIN_BYTES = 100e6;

function GiveBack({ tables: { done, refused } }: { tables: Attempt<VacuumTable[]> }) {
  return (
    <section class="lever">
      <h3>Give room back to the disk</h3>
      <p>
        {done === undefined
          ? `What a vacuum would give back is not known now: ${refused?.message}`
          : formatGivenBack(done)}
      </p>
      <a class="button" href="/database/vacuum">
        Vacuum
      </a>
    </section>
  );
}

function formatGivenBack(tables: readonly VacuumTable[]): string {
  const bytes = tables.reduce((sum, table) => sum + table.bytes, 0);
  const room = tables.filter(({ allowed }) => allowed).reduce((sum, table) => sum + (table.reclaimable_bytes ?? 0), 0);
  if (room < Math.max(MIN_BYTES, bytes * WORTH_IT))
    return `Hardly worth it: a full vacuum would give back about ${formatBytes(room)}.`;
  return `Deleted rows leave room that only new rows use. A full vacuum would give back about ${formatBytes(room)} to the disk; clients get no history while it goes on.`;
}

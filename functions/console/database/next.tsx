// Shows the state of the database with reasons and two next steps: keep less data, or free disk
// space.

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

/** Leaves out what was not measured. */
export function whyTheDatabase(data: Record<string, unknown>, thresholds: ModuleThresholds | undefined): string[] {
  const seen = data as Seen;
  if (seen.total_bytes === undefined || thresholds === undefined) return [];
  return [againstLimits(seen.total_bytes, thresholds), ...forecast(seen), ...fillers(seen), ...grown(seen)];
}

function againstLimits(total: number, thresholds: ModuleThresholds): string {
  const { warning, critical } = limitsOf(thresholds);
  const size = formatBytes(total);
  if (total >= critical) return `${size} has reached the critical threshold of ${formatBytes(critical)}.`;
  if (total >= warning)
    return `${size} has reached the warning threshold of ${formatBytes(warning)} (critical: ${formatBytes(critical)}).`;
  return `${size} is ${Math.round(percentageOf(total, warning))} % of the warning threshold (${formatBytes(warning)}).`;
}

function forecast({ growth_bytes_per_day: perDay, full_in_days: days, growth_reason: reason }: Seen): string[] {
  if (perDay === undefined || perDay === null) return reason ? [`No disk forecast yet: ${ended(reason)}`] : [];
  if (perDay <= 0) return ['Not growing.'];
  const pace = `Growing ${formatBytes(perDay)} a day`;
  if (days === undefined || days === null) return [reason ? `${pace}; ${ended(reason)}` : `${pace}.`];
  return [`${pace}; disk full in ${days < 1 ? 'less than a day' : counted(Math.floor(days), 'day')}.`];
}

function fillers({ fillers: seen }: Seen): string[] {
  const [type] = seen?.types ?? [];
  const [uid] = seen?.uids ?? [];
  if (type === undefined || uid === undefined || seen === null || seen === undefined) return [];
  const time = seen.seconds >= 86_400 ? 'the last day' : 'the last minutes';
  const who = uid.callsign ? `${uid.callsign} (${uid.name})` : uid.name;
  return [`Largest in ${time}: type ${type.name} (${percent(type.share)}), client ${who} (${percent(uid.share)}).`];
}

function grown({ grown_tables: tables }: Seen): string[] {
  const [first] = tables ?? [];
  if (first === undefined || first.grown_bytes <= 0) return [];
  const { schema, table, grown_bytes: bytes, grown_days: days } = first;
  return [`Fastest-growing table: ${schema}.${table}, ${formatBytes(bytes)} in ${counted(Math.round(days), 'day')}.`];
}

function percent(share: number): string {
  return `${Math.round(share * 100)} %`;
}

interface NextProps {
  database: Measurement | null;
  thresholds: ModuleThresholds | undefined;
  /** The retention that would hold it below its warning. */
  policy: HoldingPolicy | undefined;
  tables: Attempt<VacuumTable[]>;
}

/** Messages about size are left out: the reasons below say more. */
const OF_SIZE = 'the database: ';

export function DatabaseNext({ database, thresholds, policy, tables }: NextProps) {
  if (database === null)
    return (
      <Card title="Next steps">
        <p>Not measured yet. The first measurement comes within a minute.</p>
      </Card>
    );
  const data = database.data as Partial<DatabaseGrowth & { total_bytes: number }>;
  const { status } = database;
  return (
    <Card
      title={status === 'ok' ? 'No action needed' : 'Next steps'}
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
          <a href="/health/database">All measurements and commands</a>
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
        Retention policy
      </a>
    </section>
  );
}

function formatKeepLess(policy: HoldingPolicy | undefined, { status, data }: Measurement): string {
  if (policy === undefined) return 'Delete old events, chat and files automatically.';
  const { state, cot_days: cot, geochat_days: chat, holds_bytes: holds } = policy;
  if (state === 'suggested' && cot !== null && holds !== null) {
    const also = chat === null ? '' : ` and chat for ${counted(chat, 'day')}`;
    return `Keeping positions and events for ${counted(cot, 'day')}${also} would hold the size at about ${formatBytes(holds)}. ${beyond(holds, data['total_bytes'])}Preview what that deletes first.`;
  }
  if (state === 'in_force' && holds !== null)
    return `The current policy holds the size at about ${formatBytes(holds)}. No need to keep less.`;
  if (state === 'not_needed' && status !== 'ok')
    return 'The database is not growing. It stays this large until old rows are deleted and a full vacuum frees the space.';
  if (state === 'not_needed') return `Not needed: ${ended(policy.says)}`;
  return ended(capitalised(policy.says));
}

function beyond(holds: number, now: unknown): string {
  return typeof now === 'number' && now > holds ? 'Only a full vacuum frees the space already used beyond that. ' : '';
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

/** A full vacuum that frees less than this fraction, or fewer bytes, is not worth the lock. */
const WORTH_IT = 0.1;
const MIN_BYTES = 100e6;

function GiveBack({ tables: { done, refused } }: { tables: Attempt<VacuumTable[]> }) {
  return (
    <section class="lever">
      <h3>Free disk space</h3>
      <p>{done === undefined ? `Couldn’t estimate what a vacuum frees: ${refused?.message}` : formatGivenBack(done)}</p>
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
    return `Not worth it: a full vacuum would free only about ${formatBytes(room)}.`;
  return `Deleted rows leave space that only new rows can use. A full vacuum would free about ${formatBytes(room)} on the disk. Clients get no history while it runs.`;
}

// Shows all data of a health module: amounts with units, times in the stack's zone, lists as
// tables.

import type { Child } from 'hono/jsx';
import { formatBytes, counted, grouped, rounded } from '@holdfast/kit/format';
import { capitalised, ended } from '@holdfast/kit/text';
import { Card, Facts } from '../../pages/parts/card.tsx';
import { type Column, Table } from '../../pages/parts/table.tsx';
import { type Clock, When } from '../../pages/parts/time.tsx';

const WORDS: Readonly<Record<string, string>> = {
  total_bytes: 'Size',
  live_bytes: 'Live data',
  overhead_bytes: 'Overhead',
  wal_bytes: 'WAL',
  max_wal_bytes: 'WAL limit',
  lost_events: 'Events lost (24 h)',
  growth_bytes_per_day: 'Growth per day',
  full_in_days: 'Disk full in',
  full_in_days_earliest: 'Earliest in',
  full_in_days_latest: 'Latest in',
  growth_basis: 'Forecast basis',
  growth_reason: 'No forecast because',
  growth_since: 'Samples since',
  fillers: 'Largest senders',
  uids: 'Clients (UID)',
  types: 'CoT types',
  grown_tables: 'Tables that grew',
  policy: 'Suggested retention',
  dead_tuples: 'Dead rows',
  live_tuples: 'Live rows',
  dead_pct: 'Dead',
  used_pct: 'Used',
  free_bytes: 'Free',
  inodes_used_pct: 'Inodes used',
  mounts: 'Disks',
  settings_wanted: 'Expected settings',
  settings_differ: 'Different settings',
  holders: 'Blocking the cleanup',
  issued: 'Next to expire',
  issued_count: 'Issued certificates',
  least_days_left: 'First expires in',
  unproven: 'Unproven revocations',
  bases: 'Directory bases',
  authenticator: 'Authenticator',
  memory_pct: 'Memory used',
  milliseconds: 'Duration',
  latency_seconds: 'End to end',
  worst_offset_seconds: 'Largest difference',
};

/**
 * `settings_stock` becomes `Settings stock`; a unit at the end is dropped, as the value shows it.
 */
export function formatMember(key: string): string {
  const known = WORDS[key];
  if (known !== undefined) return known;
  const words = key
    .replace(/_(bytes|pct|seconds)$/, '')
    .replace(/_at$/, '')
    .replaceAll('_', ' ');
  return words.charAt(0).toUpperCase() + words.slice(1);
}

type Members = Readonly<Record<string, unknown>>;

/** The member that sorts a list, and whether the largest value comes first. */
const ORDER: Readonly<Record<string, readonly [member: string, largestFirst: boolean]>> = {
  tables: ['dead_tuples', true],
  mounts: ['used_pct', true],
  certificates: ['days_left', false],
  issued: ['days_left', false],
  endpoints: ['days_left', false],
};
/** The member that names a row is the first column. */
const NAMING = ['name', 'node', 'table', 'mount', 'file', 'username', 'stage', 'base'];
const MAX_ROWS = 50;
const ISO = /^\d{4}-\d\d-\d\dT\d\d:\d\d/;
/** Names of members that count days. */
const DAYS = /(^|_)days(_|$)/;

interface MeasuredDataProps {
  module: string;
  data: Members;
  clock: Clock;
}

export function MeasuredData({ module, data, clock }: MeasuredDataProps) {
  const entries = Object.entries(data).filter(([, value]) => isKnown(value));
  const plain = entries.filter(([, value]) => isPlain(value) || isPlainList(value));
  const others = entries.filter((entry) => !plain.includes(entry));
  return (
    <>
      {plain.length === 0 ? null : (
        <Card title="Measured" class="measured">
          <FactsOf members={Object.fromEntries(plain)} clock={clock} />
        </Card>
      )}
      {others.map(([key, value]) => (
        <Card title={formatMember(key)} class="measured">
          <Structure module={module} name={key} value={value} clock={clock} />
        </Card>
      ))}
    </>
  );
}

/** Unknown values are left out; the API shows them. */
function isKnown(value: unknown): boolean {
  return value !== null && value !== undefined && value !== '';
}

function isPlain(value: unknown): boolean {
  return value === null || typeof value !== 'object';
}

function FactsOf({ members, clock }: { members: Members; clock: Clock }) {
  const facts = Object.entries(members).map(([key, value]) => [formatMember(key), shown(key, value, clock)]);
  return <Facts of={Object.fromEntries(facts) as Record<string, Child>} />;
}

interface StructureProps {
  module: string;
  name: string;
  value: unknown;
  clock: Clock;
}

function Structure({ module, name, value, clock }: StructureProps): Child {
  if (Array.isArray(value)) return <List module={module} name={name} list={value} clock={clock} />;
  const { says, ...members } = value as Members;
  const entries = Object.entries(members).filter(([, each]) => isKnown(each));
  const plain = entries.filter(([, each]) => isPlain(each) || isPlainList(each) || isSmall(each));
  return (
    <>
      {typeof says === 'string' ? <p>{ended(capitalised(says))}</p> : null}
      <FactsOf members={Object.fromEntries(plain)} clock={clock} />
      {entries
        .filter((entry) => !plain.includes(entry))
        .map(([key, each]) => (
          <>
            <h3>{formatMember(key)}</h3>
            <Structure module={module} name={key} value={each} clock={clock} />
          </>
        ))}
    </>
  );
}

function isPlainList(value: unknown): boolean {
  return Array.isArray(value) && value.every(isPlain);
}

/** True if the value fits on one line: `off (command line)`. */
function isSmall(value: unknown): boolean {
  return !Array.isArray(value) && JSON.stringify(value).length < 200;
}

function List({ module, name, list, clock }: Omit<StructureProps, 'value'> & { list: readonly unknown[] }) {
  if (list.every(isPlain)) return <p>{list.join(', ')}</p>;
  const rows = sorted(name, list as readonly Members[]);
  const members = [...new Set(rows.flatMap((row) => Object.keys(row)))];
  const naming = NAMING.find((each) => members.includes(each));
  const keys = naming === undefined ? members : [naming, ...members.filter((each) => each !== naming)];
  const columns = keys.map((key): Column => ({
    label: formatMember(key),
    numeric: rows.some((row) => typeof row[key] === 'number'),
  }));
  const cells = rows.slice(0, MAX_ROWS).map((row) => keys.map((key) => shown(key, row[key] ?? null, clock)));
  return (
    <>
      <Table caption={formatMember(name)} columns={columns} rows={cells} />
      {rows.length > MAX_ROWS ? (
        <p class="fine">
          {counted(rows.length - MAX_ROWS, 'more row')} in <a href={`/api/health/${module}`}>/api/health/{module}</a>.
        </p>
      ) : null}
    </>
  );
}

function sorted(name: string, rows: readonly Members[]): readonly Members[] {
  const [member, largestFirst] = ORDER[name] ?? [];
  if (member === undefined) return rows;
  const weight = (row: Members): number => Number(row[member] ?? Number.NEGATIVE_INFINITY);
  return rows.toSorted((a, b) => (largestFirst === true ? weight(b) - weight(a) : weight(a) - weight(b)));
}

function shown(key: string, value: unknown, clock: Clock): Child {
  if (value === null || value === undefined || value === '') return <span class="fine">–</span>;
  if (typeof value === 'boolean') return value ? 'yes' : 'no';
  if (typeof value === 'number') return numberShown(key, value, clock);
  if (typeof value === 'string') return ISO.test(value) ? <When at={value} clock={clock} /> : value;
  if (Array.isArray(value)) return value.length === 0 ? 'none' : value.map(asText).join(', ');
  return asText(value);
}

function asText(value: unknown): string {
  if (typeof value === 'boolean') return value ? 'yes' : 'no';
  if (typeof value === 'string' || typeof value === 'number') return String(value);
  if (value === null || typeof value !== 'object') return '–';
  return Object.entries(value)
    .filter(([, each]) => isKnown(each))
    .map(([key, each]) => (key === 'value' ? asText(each) : `${formatMember(key).toLowerCase()} ${asText(each)}`))
    .join(', ');
}

function numberShown(key: string, value: number, clock: Clock): Child {
  if (key.endsWith('timestamp_seconds')) return <When at={new Date(value * 1000).toISOString()} clock={clock} />;
  if (key.includes('bytes')) return value < 0 ? `−${formatBytes(-value)}` : formatBytes(value);
  if (key.endsWith('_pct')) return `${rounded(value, 1)} %`;
  if (key === 'share') return `${rounded(value * 100, 1)} %`;
  if (key === 'milliseconds') return `${Math.round(value)} ms`;
  if (/(^|_)seconds$/.test(key)) return `${rounded(value, 3)} s`;
  if (DAYS.test(key)) return counted(rounded(value, 1), 'day');
  return grouped(rounded(value, 2));
}

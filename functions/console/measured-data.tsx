// Everything that a health module has measured, whatever it is: amounts with their unit, times in the zone of the stack, lists as
// tables.

import type { Child } from 'hono/jsx';
import { bytesInWords, counted, rounded } from '../../shared/domain/amounts.ts';
import type { Clock } from '../pages/clock.ts';
import { Card, Facts } from '../pages/parts/card.tsx';
import { type Column, Table } from '../pages/parts/table.tsx';
import { When } from '../pages/parts/time.tsx';

type Members = Readonly<Record<string, unknown>>;

/** The member by which a list is sorted, and whether the largest comes first. */
const ORDER: Readonly<Record<string, readonly [member: string, largestFirst: boolean]>> = {
  tables: ['dead_tuples', true],
  mounts: ['used_pct', true],
  certificates: ['days_left', false],
  issued: ['days_left', false],
  endpoints: ['days_left', false],
};
const MOST_ROWS = 50;
const ISO = /^\d{4}-\d\d-\d\dT\d\d:\d\d/;
/** A date far away is no time of day. */
const DAYS = /(^|_)days(_|$)/;

interface MeasuredDataProps {
  module: string;
  data: Members;
  clock: Clock;
}

export function MeasuredData({ module, data, clock }: MeasuredDataProps) {
  const entries = Object.entries(data);
  const plain = entries.filter(([, value]) => isPlain(value));
  const others = entries.filter(([, value]) => !isPlain(value));
  return (
    <>
      {plain.length === 0 ? null : (
        <Card title="Measured">
          <FactsOf members={Object.fromEntries(plain)} clock={clock} />
        </Card>
      )}
      {others.map(([key, value]) => (
        <Card title={inWords(key)}>
          <Structure module={module} name={key} value={value} clock={clock} />
        </Card>
      ))}
    </>
  );
}

function isPlain(value: unknown): boolean {
  return value === null || typeof value !== 'object';
}

function FactsOf({ members, clock }: { members: Members; clock: Clock }) {
  const facts = Object.entries(members).map(([key, value]) => [inWords(key), shown(key, value, clock)]);
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
  const entries = Object.entries(value as Members);
  const plain = entries.filter(([, each]) => isPlain(each) || isPlainList(each) || isSmall(each));
  return (
    <>
      <FactsOf members={Object.fromEntries(plain)} clock={clock} />
      {entries
        .filter((entry) => !plain.includes(entry))
        .map(([key, each]) => (
          <>
            <h3>{inWords(key)}</h3>
            <Structure module={module} name={key} value={each} clock={clock} />
          </>
        ))}
    </>
  );
}

function isPlainList(value: unknown): boolean {
  return Array.isArray(value) && value.every(isPlain);
}

/** Short enough for one line: `off (command line)`. */
function isSmall(value: unknown): boolean {
  return !Array.isArray(value) && JSON.stringify(value).length < 200;
}

function List({ module, name, list, clock }: Omit<StructureProps, 'value'> & { list: readonly unknown[] }) {
  if (list.length === 0) return <p class="fine">None.</p>;
  if (list.every(isPlain)) return <p>{list.join(', ')}</p>;
  const rows = sorted(name, list as readonly Members[]);
  const keys = [...new Set(rows.flatMap((row) => Object.keys(row)))];
  const columns = keys.map((key): Column => ({
    label: inWords(key),
    numeric: rows.some((row) => typeof row[key] === 'number'),
  }));
  const cells = rows.slice(0, MOST_ROWS).map((row) => keys.map((key) => shown(key, row[key] ?? null, clock)));
  return (
    <>
      <Table caption={inWords(name)} columns={columns} rows={cells} />
      {rows.length > MOST_ROWS ? (
        <p class="fine">
          {counted(rows.length - MOST_ROWS, 'more row')} in <a href={`/api/health/${module}`}>/api/health/{module}</a>.
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
    .map(([key, each]) => `${inWords(key).toLowerCase()} ${asText(each)}`)
    .join(', ');
}

function numberShown(key: string, value: number, clock: Clock): Child {
  if (key.endsWith('timestamp_seconds')) return <When at={new Date(value * 1000).toISOString()} clock={clock} />;
  if (key.includes('bytes')) return value < 0 ? `−${bytesInWords(-value)}` : bytesInWords(value);
  if (key.endsWith('_pct')) return `${rounded(value, 1)} %`;
  if (key === 'share') return `${rounded(value * 100, 1)} %`;
  if (key === 'milliseconds') return `${Math.round(value)} ms`;
  if (/(^|_)seconds$/.test(key)) return `${rounded(value, 3)} s`;
  if (DAYS.test(key)) return counted(rounded(value, 1), 'day');
  return rounded(value, 2).toLocaleString('en-GB').replaceAll(',', ' ');
}

/** `least_days_left` is `Least days left`, `total_bytes` is `Total`. */
function inWords(key: string): string {
  const words = key
    .replace(/_(bytes|pct)$/, '')
    .replace(/_at$/, '')
    .replaceAll('_', ' ');
  return words.charAt(0).toUpperCase() + words.slice(1);
}

// Reads and edits retention-policy.yml. Reading is strict, because a wrong number deletes the wrong
// data.

import { isMap, isScalar, isSeq, type Node, type YAMLMap } from 'yaml';
import { inUnit, KEEP_ALL, RETAINED, type Retained, type RetentionUnit } from '@holdfast/kit/retention';
import {
  colonOf,
  endOfLine,
  entriesOf,
  type Entry,
  headOf,
  isNothing,
  lineBreak,
  type OpenYaml,
  openYaml,
  withEntry,
  withHeadLine,
  withMoreEntries,
  YamlFault,
} from '@holdfast/kit/yaml-edit';
import type { CoreRetentionPolicy } from '../core/port.ts';

const MAP = 'dataRetentionMap';
/** A release stores it in 32 bits. */
const MOST = 2 ** 31 - 1;

export interface ReadPolicy {
  policy: CoreRetentionPolicy;
  exemptKeywords: string[];
  /** As stated in the comment on top; undefined if it is not. */
  unit: RetentionUnit | undefined;
}

/** Throws a YamlFault. */
export function readPolicy(text: string): ReadPolicy {
  const yaml = openYaml(text);
  const top = entriesOf(yaml.root, yaml);
  const { entries } = mapOf(top, yaml);
  const policy = { ...KEEP_ALL };
  for (const { name, key, value } of entries) {
    const type = RETAINED.find((each) => each === name);
    if (type === undefined)
      throw new YamlFault(`${name} is not a type of data; types: ${RETAINED.join(', ')}`, yaml.lineOf(key));
    policy[type] = amountOf(type, value, yaml.lineOf(value ?? key));
  }
  const [, message] = /unit of dataRetentionMap is (DAYS|SECONDS)/i.exec(headOf(text)) ?? [];
  const unit = message === undefined ? undefined : message.toUpperCase() === 'DAYS' ? 'days' : 'seconds';
  return { policy, exemptKeywords: exemptOf(top, yaml), unit };
}

function mapOf(
  top: readonly Entry[],
  yaml: OpenYaml,
): { entry: Entry | undefined; map: YAMLMap | undefined; entries: Entry[] } {
  const entry = top.find(({ name }) => name === MAP);
  const value = entry?.value ?? null;
  if (isMap(value)) return { entry, map: value, entries: entriesOf(value, yaml) };
  if (isNothing(value)) return { entry, map: undefined, entries: [] };
  throw new YamlFault(`${MAP} is not a map of names and values`, yaml.lineOf(value));
}

/** In plain decimal digits: readers differ on any other way to write a number. */
function amountOf(type: Retained, value: Node | null, line: number): number | null {
  if (isNothing(value)) return null;
  const text = isScalar(value) && value.type === 'PLAIN' && value.tag === undefined ? (value.source ?? '') : '';
  if (/^[1-9]\d{0,9}$/.test(text) && Number(text) <= MOST) return Number(text);
  throw new YamlFault(`${type} is neither empty nor a whole number from 1 to ${MOST}`, line);
}

function exemptOf(top: readonly Entry[], yaml: OpenYaml): string[] {
  let within: readonly Entry[] = top;
  for (const name of ['retentionSettings', 'files']) {
    const value = within.find((entry) => entry.name === name)?.value ?? null;
    if (isNothing(value)) return [];
    if (!isMap(value)) throw new YamlFault(`${name} is not a map of names and values`, yaml.lineOf(value));
    within = entriesOf(value, yaml);
  }
  const list = within.find(({ name }) => name === 'exemptKeywords')?.value ?? null;
  if (isNothing(list)) return [];
  if (!isSeq(list)) throw new YamlFault('exemptKeywords is not a list', yaml.lineOf(list));
  return (list.items as (Node | null)[]).map((item) => {
    if (isScalar(item) && typeof item.value === 'string') return item.value;
    throw new YamlFault('exemptKeywords has an entry that is not text', yaml.lineOf(item));
  });
}

export type DaysChange = Partial<Record<Retained, number | null>>;

/**
 * Returns the text with these days in the unit of the core and a comment on top that names it.
 * Throws a YamlFault.
 */
export function withDays(text: string, change: DaysChange, unit: RetentionUnit | undefined): string {
  const before = readPolicy(text);
  let next = withAllTypes(text);
  const wanted = { ...before.policy };
  for (const [name, days] of Object.entries(change) as [Retained, number | null][]) {
    wanted[name] = inUnit(days, unit ?? 'days');
    const { map, entries } = opened(next);
    const entry = entries.find((each) => each.name === name);
    if (map === undefined || entry === undefined) throw unwritable();
    const remark = days === null || unit !== 'seconds' ? undefined : `${days} ${days === 1 ? 'day' : 'days'}`;
    next = withEntry(next, map, entry, wanted[name] === null ? '' : String(wanted[name]), remark);
  }
  next = withHeadLine(next, UNIT_WORDS, unitLine(unit ?? before.unit));
  const after = readPolicy(next);
  const same = RETAINED.every((type) => after.policy[type] === wanted[type]);
  if (!same || after.exemptKeywords.join('\n') !== before.exemptKeywords.join('\n')) throw unwritable();
  return next;
}

function opened(text: string) {
  const yaml = openYaml(text);
  return mapOf(entriesOf(yaml.root, yaml), yaml);
}

function unwritable(): YamlFault {
  return new YamlFault("its format can't be changed automatically; give each name its own line", 1);
}

/** Missing types are added, empty. */
function withAllTypes(text: string): string {
  const { entry, map, entries } = opened(text);
  const missing = RETAINED.filter((type) => !entries.some(({ name }) => name === type)).map((type) => `${type}:`);
  if (missing.length === 0) return text;
  if (map !== undefined) return withMoreEntries(text, map, entries, missing);
  const lines = missing.map((line) => `  ${line}`);
  const end = lineBreak(text);
  const { root } = openYaml(text);
  if (entry === undefined) {
    const start = text.lastIndexOf('\n', (root.range?.[0] ?? 0) - 1) + 1;
    return [text.slice(0, start), ...[`${MAP}:`, ...lines].map((line) => `${line}${end}`), text.slice(start)].join('');
  }
  const emptied = withEntry(text, root, entry, '');
  const at = endOfLine(emptied, colonOf(emptied, entry));
  return `${emptied.slice(0, at)}${lines.map((line) => `${end}${line}`).join('')}${emptied.slice(at)}`;
}

const UNIT_WORDS = 'unit of dataRetentionMap';

export function unitLine(unit: RetentionUnit | undefined): string {
  const ends = 'no value keeps forever.';
  if (unit === undefined)
    return `# The unit of dataRetentionMap is that of the core, DAYS (embedded core) or SECONDS (TAK Server release); ${ends}`;
  const named = unit === 'days' ? 'DAYS (embedded core)' : 'SECONDS (TAK Server release)';
  return `# The unit of dataRetentionMap is ${named}; ${ends}`;
}

/** The content of a new file: nothing is ever deleted. */
export function newPolicy(unit: RetentionUnit | undefined): string {
  const types = RETAINED.map((type) => `  ${type}:\n`).join('');
  return `${unitLine(unit)}\n${MAP}:\n${types}retentionSettings:\n  files:\n    exemptKeywords: []\n`;
}

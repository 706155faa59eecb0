// Turns every number and boolean in the data of health modules into a metric
// `holdfast_<module>_<member>`, in base units. An entry of a list is named after the list and
// identified by its labels.

import { type Labels, RESERVED_END, type Sample, type SimpleFamily } from './open-metrics.ts';

/** The data of one module, as the API shows it. */
export interface ModuleData {
  module: string;
  data: unknown;
}

/**
 * Texts that identify an entry of a list. No other text becomes a label, because messages change.
 */
const IDENTIFYING: readonly string[] = [
  'name',
  'node',
  'schema',
  'table',
  'mount',
  'host',
  'endpoint',
  'module',
  'product',
  'stage',
  'kind',
  'file',
  'path',
  'username',
  'group',
  'serial',
  'uid',
  'id',
];

/** The end of the help of each of these metrics, after the member. */
export const OF_HEALTH = ' in /api/health';

/** Words that are units, with the base unit and its factor. */
const UNITS: Readonly<Record<string, readonly [base: string, one: number]>> = {
  bytes: ['bytes', 1],
  seconds: ['seconds', 1],
  ratio: ['ratio', 1],
  minutes: ['seconds', 60],
  hours: ['seconds', 3600],
  days: ['seconds', 86_400],
};
/** Words for a fraction of the base unit, with how many make one. */
const PARTS: Readonly<Record<string, readonly [base: string, parts: number]>> = {
  ms: ['seconds', 1000],
  milliseconds: ['seconds', 1000],
  pct: ['ratio', 100],
};

interface Place {
  /** The prefix of the metric's name. */
  prefix: string;
  labels: Labels;
  /** The identity of the labels. */
  key: string;
  /** Its place in the API's answer, with `[]` for any entry of a list. */
  member: string;
  /** The same with the index of each entry, which is unique. */
  path: string;
}

type Keep = (place: Place, figure: Figure) => void;

interface Figure {
  name: string;
  unit: string | undefined;
  value: number;
}

/** One family per numeric member. No two samples have the same name and labels. */
export function healthFigures(modules: readonly ModuleData[]): SimpleFamily[] {
  const families = new Map<string, SimpleFamily & { samples: Sample[] }>();
  const seen = new Set<string>();

  function keep({ labels, key, member, path }: Place, { name, unit, value }: Figure): void {
    const own = seen.has(name + key) ? { ...labels, member: path } : labels;
    seen.add(name + key);
    const family = families.get(name) ?? { name, type: 'gauge', unit, help: `${member}${OF_HEALTH}`, samples: [] };
    families.set(name, family);
    family.samples.push({ labels: own, value });
  }

  for (const { module, data } of modules)
    walk(data, { prefix: `holdfast_${spelled(module)}`, labels: {}, key: '', member: module, path: module }, keep);
  return [...families.values()];
}

function walk(data: unknown, place: Place, keep: Keep): void {
  if (typeof data !== 'object' || data === null) return;
  for (const [key, value] of Object.entries(data)) {
    const member = { ...place, member: `${place.member}.${key}`, path: `${place.path}.${key}` };
    if (typeof value === 'number' || typeof value === 'boolean') keep(member, figureOf(place, key, value, data));
    else if (Array.isArray(value)) walkList(value, key, member, keep);
    else walk(value, { ...member, prefix: `${place.prefix}_${spelled(key)}` }, keep);
  }
}

function walkList(list: readonly unknown[], key: string, place: Place, keep: Keep): void {
  const item = singular(spelled(key));
  const named = list.map((entry) => identifying(entry, item, place.labels));
  const identities = named.map(identity);
  const times = Map.groupBy(identities, (each) => each);
  list.forEach((entry, index) => {
    const own = identities[index] ?? '';
    const known = own !== '' && times.get(own)?.length === 1;
    const entryLabel = known ? {} : { [free('entry', item, place.labels)]: String(index) };
    const labels = { ...place.labels, ...named[index], ...entryLabel };
    const at: Place = {
      prefix: place.prefix,
      labels,
      key: identity(labels),
      member: `${place.member}[]`,
      path: `${place.path}.${index}`,
    };
    if (typeof entry === 'number' || typeof entry === 'boolean') keep(at, figureOf(at, key, entry, {}));
    else if (Array.isArray(entry)) walkList(entry, key, at, keep);
    else walk(entry, { ...at, prefix: `${place.prefix}_${item}` }, keep);
  });
}

/**
 * The labels of an entry; a label that an outer entry has already is prefixed with the list. Empty
 * labels are dropped.
 */
function identifying(entry: unknown, item: string, outer: Labels): Record<string, string> {
  if (typeof entry !== 'object' || entry === null) return {};
  const texts = entry as Record<string, unknown>;
  return Object.fromEntries(
    IDENTIFYING.flatMap((key) => {
      const text = texts[key];
      return typeof text === 'string' && text !== '' ? [[free(key, item, outer), text.toWellFormed()]] : [];
    }),
  );
}

function free(label: string, item: string, outer: Labels): string {
  return label in outer ? `${item}_${label}` : label;
}

/** Equal for equal labels in any order; empty without labels. */
function identity(labels: Labels): string {
  const texts = Object.entries(labels).map((label) => JSON.stringify(label));
  return texts.length < 2 ? (texts[0] ?? '') : texts.toSorted().join('');
}

/**
 * A unit may be anywhere in a name; the base unit goes to its end: `days_left` becomes
 * `left_seconds`.
 */
function figureOf({ prefix }: Place, key: string, raw: number | boolean, siblings: object): Figure {
  const words = spelled(countedItem(key, siblings)).split('_');
  const at = words.findLastIndex((word) => Object.hasOwn(UNITS, word) || Object.hasOwn(PARTS, word));
  const plain = typeof raw === 'boolean' || at < 0 || words.includes('per');
  const unit = plain ? undefined : baseOf(words[at] ?? '', raw);
  const name = [prefix, ...(unit === undefined ? words : [...words.toSpliced(at, 1), unit[0]])].join('_');
  return {
    name: RESERVED_END.test(name) ? `${name}_value` : name,
    unit: unit?.[0],
    value: unit?.[1] ?? Number(raw),
  };
}

/** 17.3 % is 0.173, not 0.17300000000000001. */
function baseOf(word: string, raw: number): [base: string, value: number] {
  const [base, one] = UNITS[word] ?? ['', 1];
  const [ofParts, parts] = PARTS[word] ?? ['', 1];
  return [base || ofParts, Number(((raw * one) / parts).toPrecision(15))];
}

const COUNT = '_count';

/**
 * `table_count` beside a list `tables` is `tables`, `newer_count` is `newer`: a gauge must not end
 * with `_count`.
 */
function countedItem(key: string, siblings: object): string {
  if (!key.endsWith(COUNT)) return key;
  const item = key.slice(0, -COUNT.length);
  return [`${item}s`, `${item}es`].find((list) => list in siblings) ?? item;
}

/** Converts to the characters of a metric name. */
function spelled(name: string): string {
  const letters = (name.toLowerCase().match(/[a-z0-9]+/g) ?? []).join('_');
  return /^[a-z]/.test(letters) ? letters : `n${letters}`;
}

function singular(list: string): string {
  if (list.endsWith('ies')) return `${list.slice(0, -3)}y`;
  if (/(ss|x|ch|sh)es$/.test(list)) return list.slice(0, -2);
  return /[^su]s$/.test(list) ? list.slice(0, -1) : list;
}

// Reads OpenMetrics text 1.0 and refuses what the specification forbids. Written from the specification alone: it shares
// nothing with the product.

export interface ParsedSample {
  name: string;
  labels: Record<string, string>;
  value: number;
}

export interface ParsedFamily {
  name: string;
  type: string;
  unit: string;
  help: string;
  samples: ParsedSample[];
}

/** The endings that samples of a type may have. */
const ENDINGS: Record<string, string[]> = {
  gauge: [''],
  unknown: [''],
  stateset: [''],
  counter: ['_total', '_created'],
  info: ['_info'],
  histogram: ['_bucket', '_count', '_sum', '_created'],
  gaugehistogram: ['_bucket', '_gcount', '_gsum'],
  summary: ['', '_count', '_sum', '_created'],
};
const METADATA = ['TYPE', 'UNIT', 'HELP'];
const NUMBER = /^(?:[+-]?(?:\d+(?:\.\d*)?|\d*\.\d+)(?:e[+-]?\d+)?|[+-]?inf(?:inity)?|nan)$/i;

/** Every family by its name. Throws with the line when the text is not valid. */
export function parseOpenMetrics(text: string): Map<string, ParsedFamily> {
  if (!text.endsWith('\n')) throw new Error('the text does not end with a line feed');
  const lines = text.slice(0, -1).split('\n');
  if (lines.pop() !== '# EOF') throw new Error('the text does not end with # EOF');
  const families = new Map<string, ParsedFamily>();
  let current: ParsedFamily | undefined;
  let described: string[] = [];
  for (const line of lines) {
    const fail = (why: string): never => {
      throw new Error(`${why}: ${JSON.stringify(line)}`);
    };
    if (line.includes('\r')) fail('a carriage return');
    const metadata = /^# (TYPE|UNIT|HELP) ([a-zA-Z_:][a-zA-Z0-9_:]*) (.*)$/s.exec(line);
    if (metadata === null) {
      if (line.startsWith('#')) fail('neither metadata nor the end');
      readSample(line, current, fail);
      continue;
    }
    const [, kind = '', name = '', value = ''] = metadata;
    if (current?.name !== name) {
      if (families.has(name)) fail('the family is there already');
      current = { name, type: 'unknown', unit: '', help: '', samples: [] };
      families.set(name, current);
      described = [];
    }
    if (current.samples.length > 0) fail('metadata after samples');
    if (METADATA.indexOf(kind) <= METADATA.indexOf(described.at(-1) ?? '')) fail('metadata twice or out of order');
    described.push(kind);
    if (kind === 'TYPE') current.type = value in ENDINGS ? value : fail('no such type');
    if (kind === 'UNIT')
      current.unit = name.endsWith(`_${value}`) ? value : fail('the name does not end with the unit');
    if (kind === 'HELP') current.help = unescaped(value, fail);
  }
  for (const family of families.values()) checkFamily(family);
  refuseClashes([...families.values()]);
  return families;
}

type Fail = (why: string) => never;

function readSample(line: string, family: ParsedFamily | undefined, fail: Fail): void {
  const match = /^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{((?:[^"\\]|\\.|"(?:[^"\\]|\\.)*")*)\})? (\S+)$/.exec(line);
  const [, name = '', labels = '', number = ''] = match ?? fail('no sample');
  if (!NUMBER.test(number)) fail('no number');
  const known = family ?? fail('a sample before its family');
  if (!(ENDINGS[known.type] ?? []).some((ending) => name === known.name + ending)) fail(`not of ${known.name}`);
  known.samples.push({ name, labels: readLabels(labels, fail), value: numberOf(number) });
}

function readLabels(text: string, fail: Fail): Record<string, string> {
  const labels: Record<string, string> = {};
  let rest = text;
  while (rest !== '') {
    const [all = '', name = '', value = '', comma = ''] =
      /^([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\.)*)"(,|$)/.exec(rest) ?? fail('no label');
    if (name in labels) fail(`the label ${name} twice`);
    if (name.startsWith('__')) fail(`the label ${name} is reserved`);
    labels[name] = unescaped(value, fail);
    rest = rest.slice(all.length);
    if (comma === ',' && rest === '') fail('a comma after the last label');
  }
  return labels;
}

function unescaped(text: string, fail: Fail): string {
  if (/(?<!\\)(?:\\\\)*"/.test(text)) fail('a quotation mark that is not escaped');
  return text.replaceAll(/\\(.?)/g, (_, next: string) => {
    if (next === 'n') return '\n';
    return next === '"' || next === '\\' ? next : fail('an unknown escape');
  });
}

function numberOf(text: string): number {
  const lower = text.toLowerCase();
  if (lower === 'nan') return Number.NaN;
  if (lower.includes('inf')) return lower.startsWith('-') ? Number.NEGATIVE_INFINITY : Number.POSITIVE_INFINITY;
  return Number(text);
}

/** A label set without some of its labels, as a text. An empty label is none. */
export function labelKey(labels: Record<string, string>, without: string[] = []): string {
  const kept = Object.entries(labels).filter(([name, value]) => value !== '' && !without.includes(name));
  return JSON.stringify(kept.toSorted(([a], [b]) => (a < b ? -1 : 1)));
}

function checkFamily(family: ParsedFamily): void {
  const { name, type, unit, samples } = family;
  const seen = new Set<string>();
  for (const sample of samples) {
    const key = sample.name + labelKey(sample.labels);
    if (seen.has(key)) throw new Error(`a label set twice: ${key}`);
    seen.add(key);
    if (sample.name === `${name}_total` && !(sample.value >= 0)) throw new Error(`${name}_total is ${sample.value}`);
    if (type === 'info' && sample.value !== 1) throw new Error(`${sample.name} is ${sample.value}`);
  }
  if (unit !== '' && (type === 'info' || type === 'stateset')) throw new Error(`${name} has a unit`);
  refuseInterleaved(family);
  if (type === 'histogram')
    for (const point of Map.groupBy(samples, ({ labels }) => labelKey(labels, ['le'])).values())
      checkHistogram(name, point);
}

/** All samples of one label set stand together. */
function refuseInterleaved({ name, type, samples }: ParsedFamily): void {
  const done = new Set<string>();
  let before: string | undefined;
  for (const { labels } of samples) {
    const key = labelKey(labels, type === 'histogram' ? ['le'] : []);
    if (key !== before && done.has(key)) throw new Error(`the metrics of ${name} are interleaved`);
    done.add((before = key));
  }
}

function checkHistogram(name: string, point: readonly ParsedSample[]): void {
  const buckets = point.filter((sample) => sample.name === `${name}_bucket`);
  const limits = buckets.map(({ labels }) => numberOf(labels['le'] ?? ''));
  if (limits.at(-1) !== Number.POSITIVE_INFINITY) throw new Error(`${name} has no bucket for everything`);
  buckets.forEach(({ labels, value }, index) => {
    const le = labels['le'] ?? '';
    if (!/^(\d+\.\d+|\d(\.\d+)?e[+-]\d{2,}|\+Inf)$/.test(le)) throw new Error(`${name} has the limit ${le}`);
    if (!Number.isInteger(value)) throw new Error(`${name} has a bucket of ${value}`);
    if (index === 0) return;
    if (!((limits[index - 1] ?? 0) < (limits[index] ?? 0))) throw new Error(`the buckets of ${name} are not in order`);
    if ((buckets[index - 1]?.value ?? 0) > value) throw new Error(`the buckets of ${name} are not cumulative`);
  });
  const one = (suffix: string): number | undefined => point.find((sample) => sample.name === name + suffix)?.value;
  if ((one('_sum') === undefined) !== (one('_count') === undefined)) throw new Error(`${name} needs _sum and _count`);
  if (one('_count') !== buckets.at(-1)?.value) throw new Error(`${name}_count is not the last bucket`);
  if (!((one('_sum') ?? 0) >= 0)) throw new Error(`${name}_sum is ${one('_sum')}`);
}

/** No family may have a name that a sample of another one could have. */
function refuseClashes(families: readonly ParsedFamily[]): void {
  const owners = new Map<string, string>();
  for (const { name, type } of families)
    for (const each of new Set([name, ...(ENDINGS[type] ?? []).map((ending) => name + ending)])) {
      if (owners.has(each)) throw new Error(`${each} may belong to ${name} and to ${owners.get(each)}`);
      owners.set(each, name);
    }
}

// Metric families as OpenMetrics text 1.0. What the format forbids throws: a text that is only almost right would lose
// every figure at the one who reads it.

export const OPEN_METRICS_TYPE = 'application/openmetrics-text; version=1.0.0; charset=utf-8';

export type Labels = Readonly<Record<string, string>>;

export interface Sample {
  labels: Labels;
  value: number;
}

/** How often something took how long; the counts are each bucket's own, not cumulative. */
export interface HistogramSample {
  labels: Labels;
  /** One for each limit, and one for what is beyond the last. */
  counts: readonly number[];
  sum: number;
}

interface Described {
  /** Without `_total`, `_bucket` and the like, which follow from the type; ends with the unit. */
  name: string;
  help: string;
}

/** A value that may fall, and one that only grows. */
export interface SimpleFamily extends Described {
  type: 'gauge' | 'counter';
  unit?: string | undefined;
  samples: readonly Sample[];
}

/** Texts as labels; its value is always 1. */
export interface InfoFamily extends Described {
  type: 'info';
  samples: readonly { labels: Labels }[];
}

export interface HistogramFamily extends Described {
  type: 'histogram';
  unit: string;
  /** Upper limits, inclusive and growing, from 0.0001 to 100000. */
  limits: readonly number[];
  samples: readonly HistogramSample[];
}

export type MetricFamily = SimpleFamily | InfoFamily | HistogramFamily;

const NAME = /^[a-zA-Z_:][a-zA-Z0-9_:]*$/;
const LABEL_NAME = /^(?!__)[a-zA-Z_][a-zA-Z0-9_]*$/;
/** What the samples of each type are called after the name of their family. */
const SUFFIXES: Record<MetricFamily['type'], readonly string[]> = {
  gauge: [''],
  counter: ['_total', '_created'],
  info: ['_info'],
  histogram: ['_bucket', '_count', '_sum', '_created'],
};
/** The end of a name that would make a gauge look like a part of something else. */
export const RESERVED_END = /_(total|count|sum|bucket|gcount|gsum|created|info)$/;

/** The whole text, with its end. Throws when the families are not valid together. */
export function renderOpenMetrics(families: readonly MetricFamily[]): string {
  const taken = new Set<string>();
  const lines: string[] = [];
  const known = new Map<Labels, string>();
  for (const family of families) {
    refuseName(family, taken);
    describe(family, lines);
    renderSamples(family, labelTexts(family, known), lines);
  }
  lines.push('# EOF\n');
  return lines.join('\n');
}

function refuseName({ name, type }: MetricFamily, taken: Set<string>): void {
  if (!NAME.test(name)) throw new Error(`${name} is no name of a metric`);
  if (RESERVED_END.test(name)) throw new Error(`${name} ends like a sample of another type`);
  for (const each of new Set([name, ...SUFFIXES[type].map((suffix) => name + suffix)])) {
    if (taken.has(each)) throw new Error(`the metric ${each} is there twice`);
    taken.add(each);
  }
}

/** The labels of each sample as text. Samples of one thing share their labels, which are rendered once. */
function labelTexts({ name, samples }: MetricFamily, known: Map<Labels, string>): string[] {
  const seen = new Set<string>();
  return samples.map((sample) => {
    const labels = known.get(sample.labels) ?? renderLabels(sample.labels);
    known.set(sample.labels, labels);
    if (seen.has(labels)) throw new Error(`the metric ${name} has the labels {${labels}} twice`);
    seen.add(labels);
    return labels;
  });
}

function describe(family: MetricFamily, lines: string[]): void {
  const { name, type, help } = family;
  const unit = 'unit' in family ? family.unit : undefined;
  lines.push(`# TYPE ${name} ${type}`);
  if (unit !== undefined) {
    if (!name.endsWith(`_${unit}`)) throw new Error(`the metric ${name} does not end with its unit ${unit}`);
    lines.push(`# UNIT ${name} ${unit}`);
  }
  lines.push(`# HELP ${name} ${escaped(help)}`);
}

function renderSamples(family: MetricFamily, texts: readonly string[], lines: string[]): void {
  const { name } = family;
  switch (family.type) {
    case 'gauge':
      family.samples.forEach(({ value }, index) => lines.push(line(name, texts[index], value)));
      break;
    case 'counter':
      family.samples.forEach(({ value }, index) => {
        if (!(value >= 0)) throw new Error(`the counter ${name} is ${value}`);
        lines.push(line(`${name}_total`, texts[index], value));
      });
      break;
    case 'info':
      for (const labels of texts) lines.push(line(`${name}_info`, labels, 1));
      break;
    case 'histogram':
      family.samples.forEach((sample, index) => renderHistogram(family, sample, texts[index], lines));
  }
}

function renderHistogram(
  { name, limits }: HistogramFamily,
  { labels, counts, sum }: HistogramSample,
  text: string | undefined,
  lines: string[],
): void {
  if ('le' in labels) throw new Error(`the histogram ${name} has a label le of its own`);
  let cumulative = 0;
  [...limits, Number.POSITIVE_INFINITY].forEach((limit, index) => {
    cumulative += counts[index] ?? 0;
    const bound = `le="${canonical(limit)}"`;
    lines.push(line(`${name}_bucket`, text ? `${text},${bound}` : bound, cumulative));
  });
  lines.push(line(`${name}_count`, text, cumulative), line(`${name}_sum`, text, sum));
}

function line(name: string, labels: string | undefined, value: number): string {
  return labels ? `${name}{${labels}} ${numberText(value)}` : `${name} ${numberText(value)}`;
}

/** In the order of their names and without empty ones, which are the same as none: the same labels are the same text. */
function renderLabels(labels: Labels): string {
  return Object.keys(labels)
    .toSorted()
    .flatMap((name) => {
      if (!LABEL_NAME.test(name)) throw new Error(`${name} is no name of a label`);
      const value = labels[name] ?? '';
      return value === '' ? [] : [`${name}="${escaped(value)}"`];
    })
    .join(',');
}

const ESCAPES: Record<string, string> = { '\\': '\\\\', '\n': '\\n', '"': '\\"' };

/** Half of a character outside the basic plane becomes U+FFFD, as it does in UTF-8. */
function escaped(text: string): string {
  return text.toWellFormed().replaceAll(/[\\\n"]/g, (character) => ESCAPES[character] ?? character);
}

function numberText(value: number): string {
  if (Number.isFinite(value)) return String(value);
  if (Number.isNaN(value)) return 'NaN';
  return value > 0 ? '+Inf' : '-Inf';
}

/** Limits of buckets are texts to their reader: always the same one for the same number. */
function canonical(limit: number): string {
  return Number.isInteger(limit) ? `${limit}.0` : numberText(limit);
}

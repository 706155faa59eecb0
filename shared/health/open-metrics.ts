// Renders metric families as OpenMetrics text 1.0. Anything that the format forbids throws, because
// readers reject the whole text for one fault.

export const OPEN_METRICS_TYPE = 'application/openmetrics-text; version=1.0.0; charset=utf-8';

export type Labels = Readonly<Record<string, string>>;

export interface Sample {
  labels: Labels;
  value: number;
}

/** A histogram of durations; counts are per bucket, not cumulative. */
export interface HistogramSample {
  labels: Labels;
  /** One per limit, and one for everything above the last. */
  counts: readonly number[];
  sum: number;
}

interface Described {
  /**
   * Without suffixes such as `_total` or `_bucket`, which follow from the type; ends with the unit.
   */
  name: string;
  help: string;
}

/** A gauge, which may fall, or a counter, which only grows. */
export interface SimpleFamily extends Described {
  type: 'gauge' | 'counter';
  unit?: string | undefined;
  samples: readonly Sample[];
}

/** Labels only; the value is always 1. */
export interface InfoFamily extends Described {
  type: 'info';
  samples: readonly { labels: Labels }[];
}

export interface HistogramFamily extends Described {
  type: 'histogram';
  unit: string;
  /** Inclusive upper limits, ascending, from 0.0001 to 100000. */
  limits: readonly number[];
  samples: readonly HistogramSample[];
}

export type MetricFamily = SimpleFamily | InfoFamily | HistogramFamily;

const NAME = /^[a-zA-Z_:][a-zA-Z0-9_:]*$/;
const LABEL_NAME = /^(?!__)[a-zA-Z_][a-zA-Z0-9_]*$/;
/** The suffixes of sample names for each type. */
const SUFFIXES: Record<MetricFamily['type'], readonly string[]> = {
  gauge: [''],
  counter: ['_total', '_created'],
  info: ['_info'],
  histogram: ['_bucket', '_count', '_sum', '_created'],
};
/** Suffixes that would make a gauge look like a sample of another type. */
export const RESERVED_END = /_(total|count|sum|bucket|gcount|gsum|created|info)$/;

/** The complete text. Throws if the families are not valid together. */
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
  if (!NAME.test(name)) throw new Error(`${name} is not a valid metric name`);
  if (RESERVED_END.test(name)) throw new Error(`${name} has the suffix of another type`);
  for (const each of new Set([name, ...SUFFIXES[type].map((suffix) => name + suffix)])) {
    if (taken.has(each)) throw new Error(`duplicate metric ${each}`);
    taken.add(each);
  }
}

/** The labels of each sample as text; shared label objects are rendered once. */
function labelTexts({ name, samples }: MetricFamily, known: Map<Labels, string>): string[] {
  const seen = new Set<string>();
  return samples.map((sample) => {
    const labels = known.get(sample.labels) ?? renderLabels(sample.labels);
    known.set(sample.labels, labels);
    if (seen.has(labels)) throw new Error(`the metric ${name} has duplicate labels {${labels}}`);
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
  if ('le' in labels) throw new Error(`the histogram ${name} has its own label le`);
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

/** Sorted by name, without empty labels, so that equal labels give equal text. */
function renderLabels(labels: Labels): string {
  return Object.keys(labels)
    .toSorted()
    .flatMap((name) => {
      if (!LABEL_NAME.test(name)) throw new Error(`${name} is not a valid label name`);
      const value = labels[name] ?? '';
      return value === '' ? [] : [`${name}="${escaped(value)}"`];
    })
    .join(',');
}

const ESCAPES: Record<string, string> = { '\\': '\\\\', '\n': '\\n', '"': '\\"' };

/** A lone surrogate becomes U+FFFD, as in UTF-8. */
function escaped(text: string): string {
  return text.toWellFormed().replaceAll(/[\\\n"]/g, (character) => ESCAPES[character] ?? character);
}

function numberText(value: number): string {
  if (Number.isFinite(value)) return String(value);
  if (Number.isNaN(value)) return 'NaN';
  return value > 0 ? '+Inf' : '-Inf';
}

/** Readers compare bucket limits as text, so a number always has the same text. */
function canonical(limit: number): string {
  return Number.isInteger(limit) ? `${limit}.0` : numberText(limit);
}

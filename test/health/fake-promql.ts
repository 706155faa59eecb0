// Reads of a PromQL expression what it asks for: names of metrics, matchers, labels that it groups by. No judge of the rest.

import type { ParsedFamily } from './fake-open-metrics-parser.ts';

/** Sample name to label name to the values that it has. */
export type KnownMetrics = Map<string, Map<string, Set<string>>>;

/** What Prometheus adds to each sample, and the metrics that it makes itself. */
const TARGET_LABELS = ['job', 'instance'];
const OWN_METRICS = ['up'];
const WORDS = ['and', 'or', 'unless', 'bool', 'offset', 'inf', 'nan', 'atan2'];
const GROUPING = /\b(?:by|without|on|ignoring|group_left|group_right)\s*\(([^)]*)\)/g;
const BRACES = /\{(?:[^"}]|"(?:[^"\\]|\\.)*")*\}/g;
const MATCHER = /([a-zA-Z_]\w*)\s*(=~|!~|!=|=)\s*"((?:[^"\\]|\\.)*)"/g;

export function knownMetrics(families: Iterable<ParsedFamily>): KnownMetrics {
  const known: KnownMetrics = new Map(OWN_METRICS.map((name) => [name, new Map()]));
  for (const { samples } of families)
    for (const { name, labels } of samples) {
      const of = known.get(name) ?? new Map<string, Set<string>>();
      known.set(name, of);
      for (const [label, value] of Object.entries(labels)) of.set(label, (of.get(label) ?? new Set()).add(value));
    }
  return known;
}

interface Selector {
  metric: string;
  matchers: { label: string; operator: string; value: string }[];
}

function selectorsOf(expression: string): Selector[] {
  const bare = expression.replaceAll(GROUPING, ' ').replaceAll(/\[[^\]]*\]/g, ' ');
  const outside = bare.replaceAll(BRACES, (braces) => ' '.repeat(braces.length));
  return [...outside.matchAll(/(?<![\w.])([a-zA-Z_:][\w:]*)(?!\w|\s*\()/g)]
    .filter(([, word = '']) => !WORDS.includes(word.toLowerCase()))
    .map(({ 0: metric, index }) => ({ metric, matchers: matchersAt(bare.slice(index + metric.length)) }));
}

function matchersAt(rest: string): Selector['matchers'] {
  const [braces = ''] = /^\s*\{/.test(rest) ? (rest.match(BRACES) ?? []) : [];
  return [...braces.matchAll(MATCHER)].map(([, label = '', operator = '', value = '']) => ({ label, operator, value }));
}

/** The names of the metrics in an expression. */
export function metricsIn(expression: string): string[] {
  return selectorsOf(expression).map(({ metric }) => metric);
}

/** What is asked for and is not there, in the expression and in the text that shows its labels. */
export function complaints(expression: string, shown: string, known: KnownMetrics): string[] {
  const selectors = selectorsOf(expression);
  if (selectors.length === 0) return [`no metric in ${expression}`];
  const labels = new Set([
    ...TARGET_LABELS,
    ...selectors.flatMap(({ metric }) => [...(known.get(metric)?.keys() ?? [])]),
  ]);
  const used = [
    ...[...expression.matchAll(GROUPING)].flatMap(([, list = '']) => list.split(',').map((label) => label.trim())),
    ...[...shown.matchAll(/\{\{\s*(?:\$labels\.)?([a-zA-Z_]\w*)\s*\}\}/g)].map(([, label = '']) => label),
  ].filter((label) => label !== '');
  return [
    ...selectors.flatMap((selector) => complaintsAbout(selector, known)),
    ...used.filter((label) => !labels.has(label)).map((label) => `no label ${label} in ${expression}`),
  ];
}

function complaintsAbout({ metric, matchers }: Selector, known: KnownMetrics): string[] {
  const labels = known.get(metric);
  if (labels === undefined) return [`no metric ${metric}`];
  return matchers.flatMap(({ label, operator, value }) => {
    if (TARGET_LABELS.includes(label)) return [];
    const values = labels.get(label);
    if (values === undefined) return [`no label ${label} on ${metric}`];
    return operator === '=' && !values.has(value) ? [`no ${label}="${value}" on ${metric}`] : [];
  });
}

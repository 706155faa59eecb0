// Renders the tables of docs/metrics.md.

import { OF_HEALTH } from './figures.ts';
import { collectMetrics, type MetricsDeps } from './metrics.ts';
import type { MetricFamily } from './open-metrics.ts';

const ENDINGS: Record<MetricFamily['type'], string> = { gauge: '', counter: '_total', info: '_info', histogram: '' };

/**
 * In Markdown, without a final line break: `process` lists what the program counts itself, `health`
 * the figures of the health modules. `deps`: of a process in which everything has happened once.
 */
export async function renderMetricsTables(deps: MetricsDeps): Promise<{ process: string; health: string }> {
  const families = await collectMetrics(deps);
  const [own = [], figures = []] = [false, true].map((isFigure) =>
    families.filter(({ help }) => help.endsWith(OF_HEALTH) === isFigure),
  );
  const process = own.map(
    (family) => `| ${formatName(family)} | ${family.type} | ${labelNames(family)} | ${family.help} |`,
  );
  const health = figures.map(
    (family) => `| \`${family.help.slice(0, -OF_HEALTH.length)}\` | ${formatName(family)} | ${labelNames(family)} |`,
  );
  return {
    process: ['| Metric | Type | Labels | Meaning |', '|---|---|---|---|', ...process].join('\n'),
    health: ['| In `/api/health` | In `/metrics` | Labels |', '|---|---|---|', ...health].join('\n'),
  };
}

function formatName({ name, type }: MetricFamily): string {
  return `\`${name}${ENDINGS[type]}\``;
}

function labelNames({ samples }: MetricFamily): string {
  const names = new Set(samples.flatMap(({ labels }) => Object.keys(labels)));
  return [...names].map((name) => `\`${name}\``).join(', ');
}

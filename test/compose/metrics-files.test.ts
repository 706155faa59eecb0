// The dashboard and the alert rules in compose/metrics: every name and every label in them is one
// that /metrics has.

import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { collectMetrics } from '../../shared/health/metrics.ts';
import { renderOpenMetrics } from '../../shared/health/open-metrics.ts';
import { parseOpenMetrics } from '../health/fake-open-metrics-parser.ts';
import { populatedDeps } from '../health/fake-populated.ts';
import { complaints, knownMetrics, metricsIn } from '../health/fake-promql.ts';

const root = resolve(import.meta.dirname, '../..');
const place = join(root, 'compose/metrics');

interface Rule {
  alert: string;
  expr: string;
  for: string;
  labels: { severity: string };
  annotations: Record<string, string>;
}
interface Panel {
  id: number;
  type: string;
  title: string;
  gridPos: { x: number; y: number; w: number; h: number };
  targets?: { refId: string; expr: string; legendFormat: string }[];
}
interface Dashboard {
  uid: string;
  title: string;
  panels: Panel[];
  templating: { list: { name: string; type: string; definition?: string }[] };
}

const { groups } = parse(readFileSync(join(place, 'alert-rules.yml'), 'utf8')) as {
  groups: { name: string; rules: Rule[] }[];
};
const rules = groups.flatMap((group) => group.rules);
const dashboard = JSON.parse(readFileSync(join(place, 'dashboard.json'), 'utf8')) as Dashboard;
const panels = dashboard.panels.filter(({ type }) => type !== 'row');
const targets = panels.flatMap(({ title, targets: of = [] }) => of.map((target) => ({ title, ...target })));

const text = renderOpenMetrics(await collectMetrics(await populatedDeps()));
const known = knownMetrics(parseOpenMetrics(text).values());

describe('the alert rules', () => {
  it.each(rules.map((rule): [string, Rule] => [rule.alert, rule]))('%s asks for what is there', (_, rule) =>
    expect(complaints(rule.expr, Object.values(rule.annotations).join('\n'), known)).toEqual([]),
  );

  it('have a name of their own, a severity, a pause, what it is and what to do', () => {
    expect(new Set(rules.map(({ alert }) => alert)).size).toBe(rules.length);
    for (const { alert, labels, annotations, for: pause } of rules) {
      expect(alert).toMatch(/^Holdfast[A-Z][A-Za-z]+$/);
      expect(['warning', 'critical']).toContain(labels.severity);
      expect([alert, annotations['summary']]).toEqual([alert, expect.stringMatching(/\w/)]);
      expect([alert, annotations['description']]).toEqual([
        alert,
        expect.stringMatching(/\b(GET|Look|look|Renew|Add|The log)\b/),
      ]);
      expect([alert, pause]).toEqual([alert, expect.stringMatching(/^[1-9]\d*[smhd]$/)]);
    }
  });

  it('notice that management is gone, modules, alerts, jobs and disks', () => {
    const requested = new Set(rules.flatMap(({ expr }) => metricsIn(expr)));
    expect([...requested]).toEqual(
      expect.arrayContaining([
        'up',
        'holdfast_health_status',
        'holdfast_health_updated_timestamp_seconds',
        'holdfast_alerts_oldest_pending_seconds',
        'holdfast_alerts_partly_sent',
        'holdfast_alerts_failed',
        'holdfast_alerts_failed_unreached',
        'holdfast_job_last_seen_timestamp_seconds',
        'holdfast_job_failures_in_row',
        'holdfast_disk_mount_free_bytes',
      ]),
    );
  });

  it('expect the scrape job that the example has', () => {
    const example = parse(readFileSync(join(place, 'prometheus.example.yml'), 'utf8')) as {
      rule_files: string[];
      scrape_configs: Record<string, unknown>[];
    };
    const jobs = new Set(rules.flatMap(({ expr }) => [...expr.matchAll(/job="([^"]*)"/g)].map(([, job]) => job)));
    expect([...jobs]).toEqual(example.scrape_configs.map((each) => each['job_name']));
    expect(example.rule_files).toEqual(['alert-rules.yml']);
    expect(example.scrape_configs[0]).toMatchObject({
      metrics_path: '/metrics',
      scheme: 'http',
      authorization: { type: 'Bearer', credentials_file: expect.stringMatching(/^\//) },
    });
  });
});

describe('several management processes', () => {
  const manual = readFileSync(join(place, 'README.md'), 'utf8');
  const [override, scrape] = [...manual.matchAll(/^```yaml\n([^`]+)^```$/gm)].map(
    ([, block = '']) => parse(block) as unknown,
  );
  const { services } = override as { services: Record<string, { ports: string[] }> };
  const composed = ['compose.yaml', 'compose.cluster.yaml'].map(
    (file) =>
      parse(readFileSync(join(root, 'compose', file), 'utf8'), { merge: true }) as {
        services: Record<string, { command?: string[]; environment?: Record<string, string> }>;
      },
  );

  it('each have a port in the manual, and it is a target', () => {
    const processes = composed.flatMap(({ services: all }) =>
      Object.entries(all).flatMap(([name, { command, environment = {} }]) =>
        command?.[0] === 'management' ? [[name, environment['API_PORT']] as const] : [],
      ),
    );
    expect(processes.map(([name]) => name)).toEqual(['management', 'management-2']);
    expect(Object.keys(services)).toEqual(processes.map(([name]) => name));
    const published = Object.entries(services).map(([name, { ports }]) => {
      const [, target = '', port] = /^(127\.0\.0\.1:\d+):(\d+)$/.exec(ports[0] ?? '') ?? [];
      expect([name, port]).toEqual(processes.find(([of]) => of === name));
      return target;
    });
    expect(new Set(published).size).toBe(2);
    expect(scrape).toEqual({ static_configs: [{ targets: published }] });
  });

  it('and every core node are in the dashboard, a node once', () => {
    const ofNodes = targets.filter(({ expr }) => expr.includes('holdfast_core_node_'));
    expect(ofNodes.map(({ title }) => title)).toEqual(['Memory of the core', 'Devices of each core node']);
    for (const { expr } of ofNodes) expect(expr).toMatch(/^max by \(node\) /);
  });
});

describe('the dashboard', () => {
  it.each(targets.map(({ title, refId, ...target }): [string, string, typeof target] => [title, refId, target]))(
    '%s (%s) asks for what is there',
    (_, __, { expr, legendFormat }) => expect(complaints(expr, legendFormat, known)).toEqual([]),
  );

  it('can be imported: a data source and an instance to choose, each panel once and in a place of its own', () => {
    const [datasource, instance] = dashboard.templating.list;
    expect([datasource?.type, instance?.name]).toEqual(['datasource', 'instance']);
    expect(complaints(/\((\w+),/.exec(instance?.definition ?? '')?.[1] ?? '', '', known)).toEqual([]);
    const cells = dashboard.panels.flatMap(({ gridPos: { x, y, w, h } }) =>
      Array.from({ length: w * h }, (_, cell) => `${x + (cell % w)} ${y + Math.floor(cell / w)}`),
    );
    expect(new Set(cells).size).toBe(cells.length);
    expect(dashboard.panels.every(({ gridPos: { x, w } }) => x + w <= 24)).toBe(true);
    expect(new Set(dashboard.panels.map(({ id }) => id)).size).toBe(dashboard.panels.length);
    expect(panels.every((panel) => (panel.targets ?? []).length > 0)).toBe(true);
  });

  it('shows every instance that was chosen, and no other data source', () => {
    for (const { expr } of targets)
      expect([expr, expr.match(/instance=~"\$instance"/g)?.length]).toEqual([expr, metricsIn(expr).length]);
    const sources = JSON.stringify(dashboard.panels).match(/"uid":"[^"]*"/g);
    expect(new Set(sources)).toEqual(new Set(['"uid":"${datasource}"']));
  });
});

describe('the check itself', () => {
  it.each([
    ['rate(holdfast_http_request_total[5m])', '', 'no metric holdfast_http_request_total'],
    ['up == 0 or holdfast_disk_used > 1', '', 'no metric holdfast_disk_used'],
    ['sum(holdfast_http_requests)', '', 'no metric holdfast_http_requests'],
    ['holdfast_health_status{modul="disk"} > 1', '', 'no label modul on holdfast_health_status'],
    ['holdfast_health_status{module="disks"} > 1', '', 'no module="disks" on holdfast_health_status'],
    ['sum by (mode) (holdfast_http_requests_total)', '', 'no label mode in'],
    ['holdfast_health_status > 1', 'see {{ $labels.name }}', 'no label name in holdfast_health_status'],
    ['holdfast_health_status > 1', '{{mount}}', 'no label mount in holdfast_health_status'],
    ['vector(1)', '', 'no metric in vector(1)'],
  ])('finds what is wrong in %s %s', (expression, shown, complaint) =>
    expect(complaints(expression, shown, known)).toEqual([expect.stringContaining(complaint)]),
  );

  it('reads names, and nothing else', () =>
    expect(
      metricsIn(
        'histogram_quantile(0.9, sum by (le) (rate(a_bucket{x="b_c{}", y=~"d|e"}[$__rate_interval] offset 5m))) > bool 1e3 and on (f) g:h unless time() - i < 2 * 86400',
      ),
    ).toEqual(['a_bucket', 'g:h', 'i']));
});

// What the alert rules mean: Prometheus itself judges them, over the series in
// test/compose/metrics-rules. Its promtool (Debian's package prometheus) is not needed: without it
// only the series and what is covered are checked.

import { execFileSync, spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { collectMetrics } from '../../shared/health/metrics.ts';
import { renderOpenMetrics } from '../../shared/health/open-metrics.ts';
import { parseOpenMetrics } from '../health/fake-open-metrics-parser.ts';
import { populatedDeps } from '../health/fake-populated.ts';
import { complaints, knownMetrics } from '../health/fake-promql.ts';

interface RuleTests {
  tests: {
    name: string;
    input_series: { series: string; values: string }[];
    promql_expr_test: { expr: string; eval_time: string; exp_samples: unknown[] }[];
  }[];
}

const place = resolve(import.meta.dirname, '../../compose/metrics');
const cases = join(import.meta.dirname, 'metrics-rules');
const files = readdirSync(cases).toSorted();
const tests = files.flatMap((file) => (parse(readFileSync(join(cases, file), 'utf8')) as RuleTests).tests);

const { groups } = parse(readFileSync(join(place, 'alert-rules.yml'), 'utf8')) as {
  groups: { rules: { alert: string }[] }[];
};
const alerts = groups.flatMap(({ rules }) => rules.map(({ alert }) => alert));

describe('the cases of the alert rules', () => {
  it('are of every rule: at least one that fires, and one that does not', () => {
    const requests = tests.flatMap((test) => test.promql_expr_test);
    const covered = Map.groupBy(
      requests,
      ({ expr }) => /alertname="(\w+)",alertstate="firing"/.exec(expr)?.[1] ?? expr,
    );
    expect([...covered.keys()].toSorted()).toEqual(alerts.toSorted());
    for (const [alert, of] of covered) {
      const fires = new Set(of.map(({ exp_samples: samples }) => samples.length > 0));
      expect([alert, fires.size]).toEqual([alert, 2]);
    }
  });

  it('are made of series that /metrics has', async () => {
    const text = renderOpenMetrics(await collectMetrics(await populatedDeps()));
    const known = knownMetrics(parseOpenMetrics(text).values());
    const series = new Set(tests.flatMap((test) => test.input_series.map((each) => each.series)));
    for (const each of series) expect(complaints(each.replaceAll('="', '=~"'), '', known)).toEqual([]);
  });
});

const missing = spawnSync('promtool', ['--version']).error !== undefined;

describe.skipIf(missing)(missing ? 'promtool is not installed: not asked' : 'promtool', () => {
  const promtool = (...args: string[]): string => execFileSync('promtool', args, { encoding: 'utf8', cwd: cases });

  it.each(files)('finds that the rules do what %s says', (file) =>
    expect(promtool('test', 'rules', file)).toContain('SUCCESS'),
  );

  it('takes the rules, and the example beside them', () => {
    expect(promtool('check', 'rules', join(place, 'alert-rules.yml'))).toContain(`${alerts.length} rules found`);
    expect(promtool('check', 'config', '--syntax-only', join(place, 'prometheus.example.yml'))).toContain('SUCCESS');
  });
});

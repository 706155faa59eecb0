import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { describeProblem } from '../../shared/settings/setting.ts';
import { DEFAULT_THRESHOLDS } from '../../shared/settings/status.ts';
import { loadThresholds } from '../../shared/settings/thresholds.ts';

const FILE = 'monitor/config/thresholds.yml';
const shipped = readFileSync(resolve(import.meta.dirname, '../..', FILE), 'utf8');

function load(document: unknown, values: Record<string, string> = {}) {
  return loadThresholds(document, FILE, [{ source: 'environment', values }]);
}

describe('thresholds', () => {
  it('shipped in the file are exactly the defaults, every one of them', () => {
    expect(parse(shipped)).toEqual(DEFAULT_THRESHOLDS);
    expect(load(parse(shipped))).toEqual({ thresholds: DEFAULT_THRESHOLDS, problems: [] });
  });

  it('of an empty file are the defaults', () => expect(load(null).thresholds).toEqual(DEFAULT_THRESHOLDS));

  it.each([
    ['MON_DATABASE_WARNING', '10e9', 'database', 'warning', 10e9],
    ['MON_DISK_ALERT_MIN_LEVEL', 'critical', 'disk', 'alert_min_level', 'critical'],
    ['MON_CORE_INTERVAL', '5', 'core', 'interval', 5],
    ['MON_DISK_DAYS_WARNING', '14', 'disk', 'days_warning', 14],
    ['MON_PROBE_LATENCY_WARNING', '1.5', 'probe', 'latency_warning', 1.5],
  ])('%s=%s overrides file and default', (name, value, module, key, expected) => {
    const { thresholds, problems } = load(
      { modules: { [module]: { [key]: key === 'alert_min_level' ? 'note' : 7 } } },
      { [name]: value },
    );
    expect(problems).toEqual([]);
    expect(thresholds.modules[module]?.[key]).toBe(expected);
  });

  it('at the top are overridden as well', () => {
    const values = {
      MON_ALERT_COOLDOWN: '60',
      MON_USER_EXPIRY_CHECK_INTERVAL: '5',
      MON_AUTOVACUUM_MIN_DEAD_TUPLES: '0',
    };
    expect(load(null, values).thresholds).toMatchObject({
      alert_cooldown: 60,
      user_expiry_check_interval: 5,
      AUTOVACUUM_MIN_DEAD_TUPLES: 0,
    });
  });

  it('that nobody knows stop the start with their name, from a variable and from the file', () => {
    const problems = load(
      { modules: { databse: { warning: 1 } }, cooldown: 1 },
      { MON_DATABASE_WARN: '1', MON_NONSENSE_X: '2' },
    ).problems;
    expect(problems.map((problem) => problem.name)).toEqual([
      `${FILE}: modules.databse.warning`,
      `${FILE}: cooldown`,
      'MON_DATABASE_WARN',
      'MON_NONSENSE_X',
    ]);
    expect(problems.map(describeProblem).join('\n')).toContain('did you mean MON_DATABASE_WARNING?');
  });

  it.each([
    ['MON_CORE_INTERVAL', '0'],
    ['MON_CORE_INTERVAL', '1.5'],
    ['MON_CORE_INTERVAL', 'often'],
    ['MON_DATABASE_WARNING', '-1'],
    ['MON_DISK_ALERT_MIN_LEVEL', 'ok'],
    ['MON_ALERT_COOLDOWN', '1h'],
    ['MON_DISK_WARNING', '800'],
    ['MON_AUTOVACUUM_ALERT_AFTER_POLLS', '0'],
  ])('%s=%s is refused by name and value', (name, value) => {
    const { problems } = load(null, { [name]: value });
    expect(problems.map((problem) => [problem.name, problem.value])).toEqual([[name, value]]);
  });

  it('of the wrong shape in the file are refused', () => {
    const names = load({ modules: { database: [1], disk: { warning: null } }, alert_cooldown: true }).problems.map(
      (problem) => problem.name,
    );
    expect(names).toEqual([`${FILE}: modules.database`, `${FILE}: modules.disk.warning`, `${FILE}: alert_cooldown`]);
    expect(load('text').problems).toHaveLength(1);
  });

  it.each([
    ['MON_DISK_WARNING', '95', 'critical must be the larger one'],
    ['MON_CERTIFICATES_WARNING', '5', 'critical must be the smaller one'],
    ['MON_DISK_DAYS_CRITICAL', '31', 'critical must be the smaller one'],
    ['MON_PROBE_LATENCY_WARNING', '20', 'critical must be the larger one'],
  ])('%s=%s would turn its pair round and is refused', (name, value, message) => {
    const [problem, ...others] = load(null, { [name]: value }).problems;
    expect([problem?.name, problem?.value, others]).toEqual([name, value, []]);
    expect(problem?.message).toContain(message);
  });

  it('turned round in the file are named by their place there', () => {
    const { problems } = load({ modules: { disk: { warning: 95 } } });
    expect(problems.map(({ name }) => name)).toEqual([`${FILE}: modules.disk.warning`]);
  });

  it('may be equal for warning and critical: then there is no warning', () => {
    expect(load(null, { MON_CORE_WARNING: '1', MON_CORE_CRITICAL: '1' }).problems).toEqual([]);
  });

  it('given as an empty variable are unset', () =>
    expect(load(null, { MON_CORE_INTERVAL: '', MON_NONSENSE: ' ' }).problems).toEqual([]));
});

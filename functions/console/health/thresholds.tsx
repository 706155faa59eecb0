// When a module is a warning or critical, since nobody trusts a colour without knowing where it begins: and what changes that.

import { counted, formatFigure } from '@holdfast/kit/format';
import type { Trend } from '../../../shared/health/module.ts';
import type { ModuleThresholds, Thresholds } from '../../../shared/settings/status.ts';
import { Card } from '../../pages/parts/card.tsx';
import { Table } from '../../pages/parts/table.tsx';

interface ModuleThresholdsProps {
  module: string;
  trend: Trend | undefined;
  thresholds: Thresholds;
}

const FILE = 'monitor/config/thresholds.yml';
/** Their warning and critical count failures, though their figure is another one. */
const COUNTS_FAILURES = ['core', 'identity', 'probe', 'dns'];

export function ModuleThresholdsCard({ module, trend, thresholds }: ModuleThresholdsProps) {
  const own = thresholds.modules[module];
  if (own === undefined) return null;
  const rows = Object.entries(own).map(([key, value]) => {
    const variable = `MON_${module.toUpperCase()}_${key.toUpperCase()}`;
    const isSet = thresholds.set_by?.includes(variable) === true;
    return [nameOf(key), valueOf(module, key, value, { trend, own }), isSet ? 'this variable' : FILE, variable];
  });
  const columns = ['Threshold', 'Value', 'Comes from', 'Variable'].map((label) => ({ label }));
  return (
    <Card title="Thresholds">
      <Table caption="Thresholds of this module" columns={columns} rows={rows} />
      <p class="fine">
        To change one, set its variable in .env, or edit {FILE}, and restart. A value at a threshold has reached it.
      </p>
    </Card>
  );
}

const NAMES: Readonly<Record<string, string>> = {
  interval: 'Measured every',
  warning: 'Warning',
  critical: 'Critical',
  alert_min_level: 'Alert from',
  alert_after_polls: 'Alert after',
  days_warning: 'Warning, time left',
  days_critical: 'Critical, time left',
  latency_warning: 'Warning, time taken',
  latency_critical: 'Critical, time taken',
};

function nameOf(key: string): string {
  return NAMES[key] ?? key.replaceAll('_', ' ');
}

interface Judged {
  trend: Trend | undefined;
  own: ModuleThresholds;
}

function valueOf(module: string, key: string, value: number | string, { trend, own }: Judged): string {
  if (typeof value === 'string') return value;
  if (key === 'interval') return `${value} s`;
  if (key === 'alert_after_polls') return `${value} measurements in a row`;
  if (key.startsWith('days_')) return counted(value, 'day');
  if (key.startsWith('latency_')) return `${value} s`;
  if (COUNTS_FAILURES.includes(module)) return value === 1 ? 'the first failure' : `${value} failures in a row`;
  if (trend === undefined) return String(value);
  const lower = Number(own['critical']) < Number(own['warning']);
  return `${lower ? 'at' : 'from'} ${formatFigure(value, trend.unit)}${trend.unit === 'count' ? ` ${trend.name}` : ''}`;
}

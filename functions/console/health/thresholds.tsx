// Shows the thresholds of a module and how to change them.

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
/** Modules whose thresholds count failures, although their figure is something else. */
const COUNTS_FAILURES = ['core', 'identity', 'probe', 'dns'];

export function ModuleThresholdsCard({ module, trend, thresholds }: ModuleThresholdsProps) {
  const own = thresholds.modules[module];
  if (own === undefined) return null;
  const rows = Object.entries(own).map(([key, value]) => {
    const variable = `MON_${module.toUpperCase()}_${key.toUpperCase()}`;
    const isSet = thresholds.set_by?.includes(variable) === true;
    return [nameOf(key), valueOf(module, key, value, { trend, own }), isSet ? 'variable' : FILE, variable];
  });
  const columns = ['Threshold', 'Value', 'Source', 'Variable'].map((label) => ({ label }));
  return (
    <Card title="Thresholds">
      <Table caption="Thresholds of this module" columns={columns} rows={rows} />
      <p class="fine">
        To change a threshold, set its variable in .env or edit {FILE}, then restart. A value equal to a threshold has
        reached it.
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
  latency_warning: 'Warning, latency',
  latency_critical: 'Critical, latency',
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

// Lists the health thresholds with the variable that changes each.

import { formatBytes, counted, formatSeconds } from '@holdfast/kit/format';
import type { Thresholds } from '../../shared/settings/status.ts';
import { StatusBadge } from '../pages/parts/notice.tsx';
import { Table } from '../pages/parts/table.tsx';

interface ThresholdsCardProps {
  thresholds: Thresholds;
  search: string;
  changed: readonly string[];
  open: boolean;
}

export function ThresholdsCard({ thresholds, search, changed, open }: ThresholdsCardProps) {
  const { modules, set_by: _, ...rest } = thresholds;
  const all = [
    ...Object.entries(rest).map(([key, value]) => ({ module: '', key, value })),
    ...Object.entries(modules).flatMap(([module, figures]) =>
      Object.entries(figures).map(([key, value]) => ({ module, key, value })),
    ),
  ].map((figure) => ({ ...figure, variable: variableOf(figure) }));
  const words = search.toLowerCase().split(/\s+/);
  const found = all.filter(({ variable }) =>
    words.every((word) => `thresholds ${variable}`.toLowerCase().includes(word)),
  );
  if (found.length === 0) return null;
  const columns = [{ label: 'Variable' }, { label: 'Value', numeric: true }, { label: 'Meaning' }];
  const rows = found.map(({ variable, value, module, key }) => [
    <code>{variable}</code>,
    String(value),
    <div>
      <span class="fine">{format({ module, key, value })}</span>{' '}
      {changed.includes(dotted({ module, key })) ? <StatusBadge status="note">Restart needed</StatusBadge> : null}
    </div>,
  ]);
  return (
    <details class="card even" open={open || found.some((figure) => changed.includes(dotted(figure)))}>
      <summary>
        Health thresholds (monitor/config/thresholds.yml) <span class="fine">{counted(found.length, 'figure')}</span>
      </summary>
      <Table caption="Thresholds" columns={columns} rows={rows} />
    </details>
  );
}

interface Figure {
  module: string;
  key: string;
  value: number | string;
}

function variableOf({ module, key }: Pick<Figure, 'module' | 'key'>): string {
  if (module === '') return `MON_${key.toUpperCase()}`;
  return `MON_${module.toUpperCase()}_${key.toUpperCase()}`;
}

/** The name in the list of settings that were changed in their files. */
function dotted({ module, key }: Pick<Figure, 'module' | 'key'>): string {
  return module === '' ? key : `modules.${module}.${key}`;
}

const UNITS: Record<string, string> = {
  autovacuum: 'percent dead rows',
  disk: 'percent full',
  certificates: 'days left',
  tls: 'days left',
  retention: 'runs overdue',
  time: 'seconds apart',
  core: 'failures in a row',
  identity: 'failures in a row',
  probe: 'failures in a row',
  dns: 'failures in a row',
};

function format({ module, key, value }: Figure): string {
  if (key === 'alert_min_level') return 'lowest level that sends an alert';
  if (key === 'alert_after_polls') return 'measurements in a row before an alert';
  if (key === 'AUTOVACUUM_MIN_DEAD_TUPLES') return 'dead rows (tables with fewer never count)';
  if (typeof value !== 'number') return '';
  if (key === 'interval') return `measured every ${exactly(value)}`;
  if (key === 'alert_cooldown' || key.endsWith('_interval')) return exactly(value);
  if (key.startsWith('days_')) return 'days until full';
  if (key.startsWith('latency_')) return 'seconds from end to end';
  if (module === 'database') return formatBytes(value);
  return UNITS[module] ?? '';
}

function exactly(seconds: number): string {
  return seconds % 60 === 0 ? formatSeconds(seconds) : counted(seconds, 'second');
}

// Settings of one section: name with what it does, value, and where that comes from. Of secrets only whether they are set.

import type { ShownSetting } from '../../shared/config/shown-settings.ts';
import { StatusBadge } from '../pages/parts/status.tsx';
import { Table } from '../pages/parts/table.tsx';

const SOURCES: Record<ShownSetting['source'], string> = {
  'command line': 'command line',
  environment: 'environment',
  'env file': '.env',
  generated: 'generated and kept',
  stack: 'the stack itself',
  default: 'default',
  unset: 'not set',
};

interface SettingsTableProps {
  section: string;
  settings: readonly ShownSetting[];
  /** Names of those that the files have otherwise by now. */
  changed: readonly string[];
}

export function SettingsTable({ section, settings, changed }: SettingsTableProps) {
  const columns = [{ label: 'Setting' }, { label: 'Value' }, { label: 'From' }];
  const rows = settings.map((setting) => [
    <Named setting={setting} />,
    <Value setting={setting} />,
    <From setting={setting} isChanged={isChanged(setting.name, changed)} />,
  ]);
  return <Table caption={section} columns={columns} rows={rows} />;
}

/** Of one that the next start would refuse, the reason stands behind the name. */
export function isChanged(name: string, changed: readonly string[]): boolean {
  return changed.some((each) => each === name || each.startsWith(`${name} (`));
}

function Named({ setting: { name, about } }: { setting: ShownSetting }) {
  return (
    <>
      <code>{name}</code>
      <div class="fine light">{about}</div>
    </>
  );
}

function Value({ setting: { value, secret } }: { setting: ShownSetting }) {
  if (secret) return <span class="fine">{value === 'set' ? 'set, not shown' : 'not set'}</span>;
  if (value === null || value === '') return <span class="fine">not set</span>;
  if (Array.isArray(value)) return value.length === 0 ? <span class="fine">empty</span> : <>{value.join(', ')}</>;
  return <>{String(value)}</>;
}

function From({ setting: { source }, isChanged: changed }: { setting: ShownSetting; isChanged: boolean }) {
  return (
    <div>
      {SOURCES[source]} {changed ? <StatusBadge status="note">Changed: restart</StatusBadge> : null}
    </div>
  );
}

import { expect, it } from 'vitest';
import { EXCLUDES } from '../operator/backup-source.ts';

it('a backup has nothing of management that belongs to one process or to one moment', () => {
  const names = [
    'alerts.json',
    'alerts-2.json',
    'alerts.json.bad',
    'process-id.txt',
    'process-id-2.txt',
    'restored.json',
    'audit-head.json.new',
    'audit-head.json',
    'missions/alerts.zip',
    'upgrade.json',
  ];
  expect(names.filter((name) => !EXCLUDES.management(name))).toEqual([
    'audit-head.json',
    'missions/alerts.zip',
    'upgrade.json',
  ]);
});

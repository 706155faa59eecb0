// The rules between the settings of backups.

import { expect, it } from 'vitest';
import { loadSettings } from '../../shared/settings/load.ts';

const ENOUGH = {
  SERVER_ADDRESS: 'cot.example.org',
  DEPLOY_MODE: 'direct',
  DATABASE_URL: 'postgres://h:p@db/holdfast',
  CORE_RETENTION_UNIT: 'days',
  AUDIT_KEY: '0f'.repeat(32),
  SESSION_KEY: 'f0'.repeat(32),
};
const RECIPIENT = 'age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p';

function problemsOf(values: Record<string, string>): string[] {
  const { problems } = loadSettings([{ source: 'environment', values: { ...ENOUGH, ...values } }], 'light');
  return problems.filter(({ name }) => name.startsWith('BACKUP_')).map(({ name }) => name);
}

it('accepts no backups, and a directory or a bucket with what it needs', () => {
  const keys = { BACKUP_S3_ACCESS_KEY: 'access', BACKUP_S3_SECRET_KEY: 'secret' };
  expect(problemsOf({})).toEqual([]);
  expect(problemsOf({ BACKUP_TARGET: '/mnt/backups', BACKUP_PASSPHRASE: 'long enough' })).toEqual([]);
  expect(problemsOf({ BACKUP_TARGET: 's3://bucket/a/b', BACKUP_RECIPIENT: RECIPIENT, ...keys })).toEqual([]);
});

it('refuses a target without a key, with two keys, and a bucket without its access', () => {
  expect(problemsOf({ BACKUP_TARGET: '/mnt/backups' })).toEqual(['BACKUP_PASSPHRASE']);
  const both = { BACKUP_PASSPHRASE: 'long enough', BACKUP_RECIPIENT: RECIPIENT };
  expect(problemsOf({ BACKUP_TARGET: '/mnt/backups', ...both })).toEqual(['BACKUP_PASSPHRASE']);
  expect(problemsOf({ BACKUP_TARGET: 's3://bucket', BACKUP_PASSPHRASE: 'long enough' })).toEqual([
    'BACKUP_S3_ACCESS_KEY',
    'BACKUP_S3_SECRET_KEY',
  ]);
});

it('refuses targets and keys that are none', () => {
  for (const target of ['backups', 'https://bucket', 's3://', 's3://UPPER', 's3://bucket/a b'])
    expect(problemsOf({ BACKUP_TARGET: target, BACKUP_PASSPHRASE: 'long enough' })).toEqual(['BACKUP_TARGET']);
  expect(problemsOf({ BACKUP_RECIPIENT: 'age1short' })).toEqual(['BACKUP_RECIPIENT']);
  expect(problemsOf({ BACKUP_CRON: 'every night' })).toEqual(['BACKUP_CRON']);
});

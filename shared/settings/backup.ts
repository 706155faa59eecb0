// Defines the variables of backups. Section `backup`.

import {
  keyedUrl,
  oneOf,
  quartzSchedule,
  secretText,
  text,
  trueOrFalse,
  url,
  visibleSecret,
  wholeNumber,
} from './kinds.ts';
import { optional, type Problem, withDefault } from './setting.ts';

/** An age public key. */
export const AGE_RECIPIENT = /^age1[02-9ac-hj-np-z]{58}$/;

export const BACKUP_SETTINGS = {
  BACKUP_TARGET: optional(
    text(
      'an absolute directory, or s3://BUCKET/PREFIX',
      /^(?:\/[^\p{Cc}]{0,4095}|s3:\/\/[a-z0-9][a-z0-9.-]{1,61}[a-z0-9](?:\/[A-Za-z0-9!_.*'()/-]{0,512})?)$/u,
    ),
    {
      section: 'backup',
      about:
        'Where backups are kept: a directory, or s3://BUCKET/PREFIX; without it no backups are made (containers: /var/lib/holdfast/backups, the volume backup-data, or a mounted disk)',
      example: '/mnt/backups',
    },
  ),
  BACKUP_PASSPHRASE: optional(secretText(), {
    section: 'backup',
    about:
      'Passphrase that encrypts backups; keep a copy elsewhere, because no backup can be opened without it. It or BACKUP_RECIPIENT is needed',
    example: 'from your password manager',
  }),
  BACKUP_RECIPIENT: optional(text('an age public key (age1...)', AGE_RECIPIENT), {
    section: 'backup',
    about:
      'age public key that encrypts backups instead of a passphrase; the server cannot read them back, so no proof goes beyond "complete"',
    example: 'age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p',
  }),
  BACKUP_CRON: withDefault(quartzSchedule(), '0 30 2 * * ?', {
    section: 'backup',
    about: 'When backups are made: Quartz with seconds, in the time zone of the server; needs BACKUP_TARGET',
  }),
  BACKUP_HISTORY: withDefault(trueOrFalse(), 'true', {
    section: 'backup',
    about: 'Include the history of CoT and chat messages, most of the size',
  }),
  BACKUP_PROOF: withDefault(oneOf('always', 'weekly', 'off'), 'always', {
    section: 'backup',
    about: 'When a backup is proven by restoring it into a scratch instance: after every one, once a week, or never',
  }),
  BACKUP_KEEP_DAYS: withDefault(wholeNumber(1, 36500, 'days'), '30', {
    section: 'backup',
    about: 'Days that backups are kept; permanent ones and the last proven one are always kept',
  }),
  BACKUP_KEEP_COUNT: withDefault(wholeNumber(1, 10000), '7', {
    section: 'backup',
    about: 'Backups that are kept whatever their age',
  }),
  BACKUP_S3_URL: optional(keyedUrl(), {
    section: 'backup',
    about: 'Address of the S3-compatible storage (default: AWS in BACKUP_S3_REGION)',
    example: 'https://s3.example.org',
  }),
  BACKUP_S3_REGION: withDefault(text('a region name', /^[a-z0-9-]{1,64}$/), 'us-east-1', {
    section: 'backup',
    about: 'Region of the S3 storage',
  }),
  BACKUP_S3_ACCESS_KEY: optional(secretText(), {
    section: 'backup',
    about: 'Access key of the S3 storage',
    example: 'from the storage provider',
  }),
  BACKUP_S3_SECRET_KEY: optional(secretText(), {
    section: 'backup',
    about: 'Secret key of the S3 storage',
    example: 'from the storage provider',
  }),
  BACKUP_URL: optional(url('http', 'https'), {
    section: 'places',
    about: 'Backup service of the stack',
    example: 'http://backup:8090',
  }),
  BACKUP_TOKEN: optional(visibleSecret, {
    section: 'secrets',
    about: 'Token that only the backup service and management know',
    example: 'generated',
  }),
} as const;

interface BackupValues {
  readonly BACKUP_TARGET: string | undefined;
  readonly BACKUP_PASSPHRASE: object | undefined;
  readonly BACKUP_RECIPIENT: string | undefined;
  readonly BACKUP_S3_ACCESS_KEY: object | undefined;
  readonly BACKUP_S3_SECRET_KEY: object | undefined;
}

/** A backup that anybody can read, or that nobody can write, is refused before the start. */
export function backupRules(settings: BackupValues): Problem[] {
  const { BACKUP_TARGET: target, BACKUP_PASSPHRASE: passphrase, BACKUP_RECIPIENT: recipient } = settings;
  if (target === undefined) return [];
  const problems: Problem[] = [];
  if ((passphrase === undefined) === (recipient === undefined))
    problems.push(
      problem(
        'BACKUP_PASSPHRASE',
        undefined,
        passphrase === undefined
          ? 'must be set, because BACKUP_TARGET is: backups hold every secret of the stack and are always encrypted'
          : 'cannot be set together with BACKUP_RECIPIENT',
        'set either BACKUP_PASSPHRASE or BACKUP_RECIPIENT, and keep a copy of the passphrase or the private key elsewhere',
      ),
    );
  if (target.startsWith('s3:'))
    for (const name of ['BACKUP_S3_ACCESS_KEY', 'BACKUP_S3_SECRET_KEY'] as const)
      if (settings[name] === undefined)
        problems.push(problem(name, undefined, `must be set, because BACKUP_TARGET is ${target}`, `set ${name}`));
  return problems;
}

function problem(name: string, value: string | undefined, message: string, remedy: string): Problem {
  return { name, value, message, remedy };
}

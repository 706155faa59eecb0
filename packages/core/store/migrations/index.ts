// Lists the migrations of the core's database `cot` in order. To add one: a new file and a line
// here. Never change an old one.

import core from './0001-core.sql';
import stream from './0002-stream.sql';
import retention from './0003-retention.sql';
import devices from './0004-devices.sql';
import missions from './0005-missions.sql';
import services from './0006-services.sql';
import reports from './0007-reports.sql';
import revoked from './0008-revoked.sql';

/** The same shape as the migrations of the stack's state. */
export interface CoreMigration {
  /** Counts from 1 without gaps. */
  number: number;
  name: string;
  sql: string;
}

export const CORE_MIGRATIONS: readonly CoreMigration[] = [
  { number: 1, name: 'core', sql: core },
  { number: 2, name: 'stream', sql: stream },
  { number: 3, name: 'retention', sql: retention },
  { number: 4, name: 'devices', sql: devices },
  { number: 5, name: 'missions', sql: missions },
  { number: 6, name: 'services', sql: services },
  { number: 7, name: 'reports', sql: reports },
  { number: 8, name: 'revoked', sql: revoked },
];

/** The database they belong to; the flow engine may have tables of its own there. */
export const CORE_DATABASE_MIGRATED = {
  name: 'cot',
  variable: 'the URL of the core',
  history: 'schema_version',
  shared: true,
} as const;

// Lists the migrations of the core's database `cot` in order. To add one: a new file and a line
// here. Never change an old one.

import core from './0001-core.sql';
import stream from './0002-stream.sql';
import retention from './0003-retention.sql';

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
];

/** The database they belong to; the flow engine may have tables of its own there. */
export const CORE_DATABASE_MIGRATED = {
  name: 'cot',
  variable: 'the URL of the core',
  history: 'schema_version',
  shared: true,
} as const;

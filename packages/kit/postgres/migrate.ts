// Numbered SQL migrations of our own database: one transaction each, checksummed, under a lock. A
// database that a newer release made, or that is not ours, is refused unchanged.

import { createHash } from 'node:crypto';
import { AppError } from '../app-error.ts';
import type { Sql, TransactionSql } from './postgres.ts';

export interface Migration {
  /** Counts from 1 without gaps. */
  number: number;
  name: string;
  sql: string;
}

interface AppliedMigration {
  number: number;
  name: string;
  checksum: string;
}

/** Whose tables they are, for messages, and where their history stands. */
export interface MigratedDatabase {
  /** `holdfast` */
  name: string;
  /** The variable that names the database. */
  variable: string;
  /** The table of what has been applied. */
  history: string;
  /** Others may have tables beside them. */
  shared: boolean;
}

const OUR_STATE: MigratedDatabase = {
  name: 'holdfast',
  variable: 'DATABASE_URL',
  history: 'schema_migration',
  shared: false,
};

/** Any number: the lock must be the same for every Holdfast process on this database. */
const LOCK = 4_805_727_011;

/**
 * Brings the database up to the last migration; resolves with the numbers that were applied now.
 */
export async function migrate(
  sql: Sql,
  migrations: readonly Migration[],
  database: MigratedDatabase = OUR_STATE,
): Promise<number[]> {
  const applied: number[] = [];
  for (;;) {
    const number = await sql.begin((transaction) => applyNext(transaction, migrations, database));
    if (number === undefined) return applied;
    applied.push(number);
  }
}

/**
 * The first migration that another process has yet to apply; undefined: none. Refuses as `migrate`
 * does, and rejects while there is no history.
 */
export async function missingMigration(
  sql: Sql,
  migrations: readonly Migration[],
  database: MigratedDatabase,
): Promise<Migration | undefined> {
  const history = await appliedTo(sql, database);
  checkHistory(history, migrations, database);
  return migrations[history.length];
}

/** Applies the first migration that is missing, if any. The lock ends with the transaction. */
async function applyNext(
  sql: TransactionSql,
  migrations: readonly Migration[],
  database: MigratedDatabase,
): Promise<number | undefined> {
  await sql`SELECT pg_advisory_xact_lock(${LOCK})`;
  const history = await readHistory(sql, database);
  checkHistory(history, migrations, database);
  const next = migrations[history.length];
  if (next === undefined) return undefined;
  await sql.unsafe(next.sql);
  await sql`
    INSERT INTO ${sql(database.history)} (number, name, checksum)
    VALUES (${next.number}, ${next.name}, ${checksumOf(next)})`;
  return next.number;
}

/** What has been applied so far; makes the table of it in a database that is empty. */
async function readHistory(sql: TransactionSql, database: MigratedDatabase): Promise<AppliedMigration[]> {
  const { variable, history, shared } = database;
  const [{ ours, tables, place } = { ours: false, tables: 0, place: true }] = await sql<
    { ours: boolean; tables: number; place: boolean }[]
  >`
    SELECT to_regclass(${`public.${history}`}) IS NOT NULL AS ours,
      (SELECT count(*)::int FROM pg_stat_user_tables) AS tables, to_regnamespace('public') IS NOT NULL AS place`;
  if (ours) return appliedTo(sql, database);
  if (tables > 0 && !shared) {
    throw new AppError(
      'conflict',
      `${variable} names a database with ${tables} tables that are not Holdfast's. Nothing was changed. Remedy: give Holdfast an empty database of its own.`,
    );
  }
  // Gone after DROP SCHEMA, as before a restore. With IF NOT EXISTS alone it would need a right
  // that a mere user lacks.
  if (!place) await sql`CREATE SCHEMA public`;
  await sql`
    CREATE TABLE ${sql(history)} (
      number int PRIMARY KEY,
      name text NOT NULL,
      checksum text NOT NULL,
      applied_at timestamptz NOT NULL DEFAULT now())`;
  return [];
}

async function appliedTo(sql: Sql | TransactionSql, { history }: MigratedDatabase): Promise<AppliedMigration[]> {
  return sql<AppliedMigration[]>`SELECT number, name, checksum FROM ${sql(history)} ORDER BY number`;
}

function checkHistory(
  applied: readonly AppliedMigration[],
  migrations: readonly Migration[],
  { name: called }: MigratedDatabase,
): void {
  if (applied.length > migrations.length) {
    throw new AppError(
      'conflict',
      `The database ${called} is at migration ${applied.length}, this release knows ${migrations.length}: a newer Holdfast has used it. Nothing was changed. Remedy: start the newer release again, or restore a backup from before the upgrade.`,
    );
  }
  for (const [index, { number, name, checksum }] of applied.entries()) {
    const known = migrations[index];
    if (known !== undefined && known.number === number && checksumOf(known) === checksum) continue;
    throw new AppError(
      'conflict',
      `Migration ${number} (${name}) in the database ${called} is not the one of this release. Nothing was changed. Remedy: start the release that made this database, or restore a backup.`,
    );
  }
}

function checksumOf(migration: Migration): string {
  return createHash('sha256').update(migration.sql).digest('hex');
}

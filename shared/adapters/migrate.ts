// Numbered SQL migrations of our own database: one transaction each, checksummed, under a lock. A database that a
// newer release made, or that is not ours, is refused unchanged.

import { createHash } from 'node:crypto';
import { AppError } from '../domain/app-error.ts';
import type { Sql } from './postgres.ts';

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

/** Any number: the lock must be the same for every Holdfast process on this database. */
const LOCK = 4_805_727_011;

/** Brings the database up to the last migration; resolves with the numbers that were applied now. */
export async function migrate(sql: Sql, migrations: readonly Migration[]): Promise<number[]> {
  const connection = await sql.reserve();
  try {
    await connection`SELECT pg_advisory_lock(${LOCK})`;
    try {
      return await applyPending(connection, migrations);
    } finally {
      await connection`SELECT pg_advisory_unlock(${LOCK})`.catch(() => undefined);
    }
  } finally {
    connection.release();
  }
}

async function applyPending(sql: Sql, migrations: readonly Migration[]): Promise<number[]> {
  const applied = await appliedMigrations(sql);
  checkHistory(applied, migrations);
  const pending = migrations.filter((migration) => migration.number > applied.length);
  for (const migration of pending) await apply(sql, migration);
  return pending.map((migration) => migration.number);
}

async function appliedMigrations(sql: Sql): Promise<AppliedMigration[]> {
  const [{ ours, tables } = { ours: false, tables: 0 }] = await sql<{ ours: boolean; tables: number }[]>`
    SELECT to_regclass('public.schema_migration') IS NOT NULL AS ours,
      (SELECT count(*)::int FROM pg_stat_user_tables) AS tables`;
  if (ours) return sql<AppliedMigration[]>`SELECT number, name, checksum FROM schema_migration ORDER BY number`;
  if (tables > 0) {
    throw new AppError(
      'conflict',
      `DATABASE_URL names a database with ${tables} tables that are not Holdfast's. Nothing was changed. Remedy: give Holdfast an empty database of its own.`,
    );
  }
  await sql`
    CREATE TABLE schema_migration (
      number int PRIMARY KEY,
      name text NOT NULL,
      checksum text NOT NULL,
      applied_at timestamptz NOT NULL DEFAULT now())`;
  return [];
}

function checkHistory(applied: readonly AppliedMigration[], migrations: readonly Migration[]): void {
  if (applied.length > migrations.length) {
    throw new AppError(
      'conflict',
      `The database holdfast is at migration ${applied.length}, this release knows ${migrations.length}: a newer Holdfast has used it. Nothing was changed. Remedy: start the newer release again, or restore a backup from before the upgrade.`,
    );
  }
  for (const [index, { number, name, checksum }] of applied.entries()) {
    const known = migrations[index];
    if (known !== undefined && known.number === number && checksumOf(known) === checksum) continue;
    throw new AppError(
      'conflict',
      `Migration ${number} (${name}) in the database holdfast is not the one of this release. Nothing was changed. Remedy: start the release that made this database, or restore a backup.`,
    );
  }
}

async function apply(sql: Sql, migration: Migration): Promise<void> {
  await sql`BEGIN`;
  try {
    await sql.unsafe(migration.sql);
    await sql`
      INSERT INTO schema_migration (number, name, checksum)
      VALUES (${migration.number}, ${migration.name}, ${checksumOf(migration)})`;
    await sql`COMMIT`;
  } catch (error) {
    await sql`ROLLBACK`.catch(() => undefined);
    throw error;
  }
}

function checksumOf(migration: Migration): string {
  return createHash('sha256').update(migration.sql).digest('hex');
}

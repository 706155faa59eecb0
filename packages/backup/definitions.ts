// Takes constraints, indexes and triggers off tables while rows are loaded, and brings them back.

import { codeOf } from '@holdfast/kit/app-error';
import type { TransactionSql } from '@holdfast/kit/postgres';
import { identifier, quoted } from './tables.ts';

/** PostgreSQL's code. */
const DEPENDENT_OBJECTS = '2BP01';

export interface Definition {
  table: string;
  name: string;
  kind: 'constraint' | 'index' | 'trigger';
  /** Foreign keys go first and come back last. */
  foreign: boolean;
  text: string;
}

/** Resolves with what was dropped. What a view needs, such as a key of its GROUP BY, stays. */
export async function dropDefinitions(sql: TransactionSql, tables: readonly string[]): Promise<Definition[]> {
  const found = await readDefinitions(sql, tables);
  const order = found.toSorted((one, other) => Number(other.foreign) - Number(one.foreign));
  const dropped: Definition[] = [];
  for (const definition of order) if (await tryDrop(sql, definition)) dropped.push(definition);
  return dropped;
}

/** `progress`: the phase in plain words. */
export async function restoreDefinitions(
  sql: TransactionSql,
  definitions: readonly Definition[],
  progress: (phase: string) => void,
): Promise<void> {
  const order = definitions.toSorted((one, other) => Number(one.foreign) - Number(other.foreign));
  for (const { table, name, kind, text } of order) {
    progress(`Building ${name}`);
    if (kind === 'index') await sql.unsafe(text);
    else if (kind === 'trigger') await sql.unsafe(`ALTER TABLE ${quoted(table)} ENABLE TRIGGER ${identifier(name)}`);
    else await sql.unsafe(`ALTER TABLE ${quoted(table)} ADD CONSTRAINT ${identifier(name)} ${text}`);
  }
}

async function readDefinitions(sql: TransactionSql, tables: readonly string[]): Promise<Definition[]> {
  const names = JSON.stringify(tables);
  return sql<Definition[]>`
    WITH wanted AS (SELECT c.oid, c.relname FROM pg_class c JOIN json_array_elements_text(${names}::text::json) n ON n = c.relname
      WHERE c.relnamespace = to_regnamespace('public'))
    SELECT w.relname AS table, k.conname AS name, 'constraint' AS kind, k.contype = 'f' AS foreign,
      pg_get_constraintdef(k.oid) AS text
    FROM pg_constraint k JOIN wanted w ON w.oid = k.conrelid WHERE k.contype IN ('p', 'u', 'x', 'f') AND k.conparentid = 0
    UNION ALL
    SELECT w.relname, i.relname, 'index', false, pg_get_indexdef(i.oid)
    FROM pg_index x JOIN pg_class i ON i.oid = x.indexrelid JOIN wanted w ON w.oid = x.indrelid
    WHERE NOT EXISTS (SELECT FROM pg_constraint k WHERE k.conindid = x.indexrelid AND k.conrelid = x.indrelid)
      AND NOT EXISTS (SELECT FROM pg_inherits h WHERE h.inhrelid = x.indexrelid)
    UNION ALL
    SELECT w.relname, t.tgname, 'trigger', false, ''
    FROM pg_trigger t JOIN wanted w ON w.oid = t.tgrelid WHERE NOT t.tgisinternal AND t.tgenabled = 'O'
    ORDER BY 1, 2`;
}

async function tryDrop(sql: TransactionSql, { table, name, kind }: Definition): Promise<boolean> {
  const statement =
    kind === 'index'
      ? `DROP INDEX ${quoted(name)}`
      : `ALTER TABLE ${quoted(table)} ${kind === 'trigger' ? 'DISABLE TRIGGER' : 'DROP CONSTRAINT'} ${identifier(name)}`;
  try {
    await sql.savepoint((nested) => nested.unsafe(statement));
    return true;
  } catch (error) {
    if (codeOf(error) === DEPENDENT_OBJECTS) return false;
    throw error;
  }
}

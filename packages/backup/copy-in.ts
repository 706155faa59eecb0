// Loads databases from an archive: into tables that the migrations have made, emptied first.
// Constraints, indexes and triggers come back after the rows, in one transaction.

import type { Sql, TransactionSql } from '@holdfast/kit/postgres';
import type { ReadEntry } from './archive.ts';
import { dropDefinitions, restoreDefinitions } from './definitions.ts';
import { type ArchivedDatabase, type ArchivedTable, damaged, type DatabaseKey, type Manifest } from './manifest.ts';
import { codeOf, StackError } from '@holdfast/kit/app-error';
import { type DatabasePlace, identifier, isLeftOut, quoted, readTables, tableDirectory } from './tables.ts';

/** Walks through the entries of an archive once, and looks at the next one before it is taken. */
export class EntryCursor {
  readonly #entries: AsyncIterator<ReadEntry>;
  #next: IteratorResult<ReadEntry> | undefined;

  constructor(entries: AsyncIterable<ReadEntry>) {
    this.#entries = entries[Symbol.asyncIterator]();
  }

  /** The next entry below a directory; undefined if the next one is elsewhere or there is none. */
  async below(directory: string): Promise<ReadEntry | undefined> {
    return (await this.isNextBelow(directory)) ? this.any() : undefined;
  }

  async isNextBelow(directory: string): Promise<boolean> {
    this.#next ??= await this.#entries.next();
    return this.#next.done !== true && this.#next.value.name.startsWith(`${directory}/`);
  }

  /** The next entry, whatever it is. */
  async any(): Promise<ReadEntry | undefined> {
    const next = this.#next ?? (await this.#entries.next());
    this.#next = undefined;
    return next.done === true ? undefined : next.value;
  }

  async close(): Promise<void> {
    await this.#entries.return?.();
  }
}

export interface LoadOptions {
  archived: ArchivedDatabase;
  entries: Manifest['entries'];
  cursor: EntryCursor;
  /** The table being loaded, or what is done with it. */
  progress: (phase: string) => void;
  /** False leaves the tables of history empty. */
  history: boolean;
}

/**
 * Replaces every row of a database. The tables must be at the archive's migration. Resolves with
 * what was left out; rejects, and nothing was changed, if the rows are not those of the manifest.
 */
export async function loadDatabase(sql: Sql, place: DatabasePlace, options: LoadOptions): Promise<string[]> {
  const warnings = await sql.begin(async (tx) => {
    await tx`SELECT set_config('maintenance_work_mem', '256MB', true), set_config('statement_timeout', '0', true)`;
    return new DatabaseLoad(tx, place, options).run();
  });
  options.progress(`Analyzing the database ${place.key}`);
  await sql`ANALYZE`;
  return warnings;
}

/** PostgreSQL's code. */
const UNDEFINED_TABLE = '42P01';

class DatabaseLoad {
  readonly #sql: TransactionSql;
  readonly #place: DatabasePlace;
  readonly #options: LoadOptions;
  readonly #warnings: string[] = [];

  constructor(sql: TransactionSql, place: DatabasePlace, options: LoadOptions) {
    this.#sql = sql;
    this.#place = place;
    this.#options = options;
  }

  async run(): Promise<string[]> {
    const { archived, progress, history } = this.#options;
    const tables = await readTables(this.#sql, this.#place.migrations);
    const known = new Map(tables.map((table) => [table.name, new Set(table.columns.map(({ name }) => name))]));
    const marks = await this.#marks();
    const definitions = await dropDefinitions(
      this.#sql,
      tables.map(({ name }) => name),
    );
    if (tables.length > 0) await this.#sql.unsafe(`TRUNCATE ${tables.map(({ name }) => quoted(name)).join(', ')}`);
    for (const table of archived.tables) {
      const columns = known.get(table.name);
      if (isLeftOut(this.#place.key, table.name, history)) {
        await this.#drain(table);
        continue;
      }
      progress(`Loading ${table.name}`);
      if (columns === undefined) await this.#skip(table);
      else {
        const missing = table.columns.find(({ name }) => !columns.has(name));
        if (missing !== undefined) throw unknownColumn(table.name, missing.name);
        await this.#load(table);
      }
    }
    await restoreDefinitions(this.#sql, definitions, progress);
    await this.#setSequences();
    const loaded = await this.#marks();
    const missing = marks.find((mark) => !loaded.includes(mark));
    if (missing !== undefined) throw otherSchema(archived.key, missing);
    return this.#warnings;
  }

  async #marks(): Promise<string[]> {
    const { key, marks } = this.#place;
    if (marks === undefined) return [];
    const rows = await this.#sql.unsafe<{ mark: string }[]>(marks).catch((error: unknown) => {
      if (codeOf(error) === UNDEFINED_TABLE) return [];
      throw error;
    });
    if (rows.length > 0) return rows.map(({ mark }) => mark);
    throw new StackError(
      `The database ${key} has no history of its tables.`,
      'start what makes them, then run this again',
    );
  }

  /** A table that no migration makes: whoever made it must make it again. */
  async #skip(table: ArchivedTable): Promise<void> {
    const { name, rows } = table;
    await this.#drain(table);
    if (rows > 0)
      this.#warnings.push(
        `The table ${name} of the database ${this.#place.key} is not one of Holdfast's: its ${rows} rows were not restored`,
      );
  }

  async #drain({ name }: ArchivedTable): Promise<void> {
    for (;;) {
      const entry = await this.#options.cursor.below(tableDirectory(this.#place.key, name));
      if (entry === undefined) return;
      for await (const chunk of entry.content) void chunk;
    }
  }

  async #load(table: ArchivedTable): Promise<void> {
    const directory = tableDirectory(this.#place.key, table.name);
    const hasLarge = this.#options.entries.some(({ name }) => name.startsWith(`${directory}/large/`));
    const isStaged = hasLarge || table.columns.some(({ kind }) => kind === 'vector');
    if (isStaged) await this.#loadStaged(table, directory);
    else await copyIn(this.#sql, quoted(table.name), namesOf(table), this.#rowsBelow(directory));
    const [{ rows } = { rows: 0 }] = await this.#sql.unsafe<{ rows: number }[]>(
      `SELECT count(*)::float8 AS rows FROM ${quoted(table.name)}`,
    );
    if (rows !== table.rows) throw damaged(`${table.name} has ${rows} rows instead of ${table.rows}`);
  }

  /** The rows as they are written first; then with their vectors and long values in place. */
  async #loadStaged(table: ArchivedTable, directory: string): Promise<void> {
    const { name, columns } = table;
    const vector = columns.find(({ kind }) => kind === 'vector')?.name;
    const staged = columns.map((column) =>
      column.kind === 'plain' ? identifier(column.name) : `NULL::text AS ${identifier(column.name)}`,
    );
    const temporary = (called: string, select: string): Promise<unknown> =>
      this.#sql.unsafe(`CREATE TEMPORARY TABLE ${called} AS SELECT ${select} FROM ${quoted(name)} WITH NO DATA`);
    await temporary('restore_row', staged.join(', '));
    // Of the very type of the column: a cast would unpack each vector.
    await temporary(
      'restore_vector',
      `NULL::text AS key, ${vector === undefined ? 'NULL::bit varying' : identifier(vector)} AS bits`,
    );
    await this.#sql`CREATE TEMPORARY TABLE restore_large (id int, piece int, bytes bytea)`;
    await this.#copyMixed(table, directory);
    await this.#copyVectors(directory);
    await this.#sql`ANALYZE restore_vector`;
    await this.#sql`CREATE INDEX ON restore_large (id)`;
    await this.#checkVectors(table);
    await this.#sql.unsafe(
      `INSERT INTO ${quoted(name)} (${namesOf(table).join(', ')}) OVERRIDING SYSTEM VALUE SELECT ${columns.map(joined).join(', ')}
      FROM restore_row r ${columns.map(vectorJoin).join(' ')}`,
    );
    await this.#sql`DROP TABLE restore_row, restore_vector, restore_large`;
  }

  /** Pieces of long values lie between the parts of rows: one COPY for each run of parts. */
  async #copyMixed(table: ArchivedTable, directory: string): Promise<void> {
    let rest = Buffer.alloc(0);
    for (;;) {
      const entry = await this.#nextOf(directory);
      if (entry === undefined) break;
      const [, id, piece] = /\/large\/(\d+)\/(\d+)\.bin$/.exec(entry.name) ?? [];
      if (id !== undefined) {
        const bytes = await bytesOf(entry);
        await this.#sql`INSERT INTO restore_large VALUES (${Number(id)}, ${Number(piece)}, ${bytes})`;
        continue;
      }
      const part = Buffer.concat([rest, await bytesOf(entry)]);
      const end = part.lastIndexOf(0x0a) + 1;
      rest = part.subarray(end);
      await copyIn(this.#sql, 'restore_row', namesOf(table), [part.subarray(0, end)]);
    }
    if (rest.length > 0) throw damaged(`the last row of ${table.name} has no end`);
  }

  async #copyVectors(directory: string): Promise<void> {
    await copyIn(this.#sql, 'restore_vector', ['key', 'bits'], this.#rowsBelow(`${directory}/vectors`));
  }

  /** A row without its vector would be seen by nobody, or by everybody. */
  async #checkVectors({ name, columns }: ArchivedTable): Promise<void> {
    for (const column of columns.filter(({ kind }) => kind === 'vector')) {
      const field = identifier(column.name);
      const [row] = await this.#sql.unsafe(
        `SELECT FROM restore_row WHERE ${field} IS NOT NULL AND ${field} NOT IN (SELECT key FROM restore_vector) LIMIT 1`,
      );
      if (row !== undefined) throw damaged(`a vector of ${name} is missing`);
    }
  }

  /** The next part or piece of the table itself. */
  async #nextOf(directory: string): Promise<ReadEntry | undefined> {
    const vectors = await this.#options.cursor.isNextBelow(`${directory}/vectors`);
    return vectors ? undefined : this.#options.cursor.below(directory);
  }

  async *#rowsBelow(directory: string): AsyncGenerator<Uint8Array> {
    for (;;) {
      const entry = await this.#options.cursor.below(directory);
      if (entry === undefined) return;
      yield* entry.content;
    }
  }

  async #setSequences(): Promise<void> {
    for (const { name, last_value, is_called } of this.#options.archived.sequences) {
      const [row] = await this.#sql`
        SELECT setval(to_regclass(${`public.${identifier(name)}`}), ${last_value}::text::bigint, ${is_called}) AS value
        WHERE to_regclass(${`public.${identifier(name)}`}) IS NOT NULL`;
      if (row === undefined)
        this.#warnings.push(`The sequence ${name} of the database ${this.#place.key} was not restored`);
    }
  }
}

function namesOf({ columns }: ArchivedTable): string[] {
  return columns.map(({ name }) => identifier(name));
}

function joined({ name, kind }: ArchivedTable['columns'][number], index: number): string {
  const field = `r.${identifier(name)}`;
  if (kind === 'plain') return field;
  if (kind === 'vector') return `v${index}.bits`;
  return `CASE WHEN ${field} LIKE '@%' THEN (SELECT string_agg(l.bytes, ''::bytea ORDER BY l.piece) FROM restore_large l
    WHERE l.id = substr(${field}, 2)::int) ELSE ${field}::bytea END`;
}

function vectorJoin({ name, kind }: ArchivedTable['columns'][number], index: number): string {
  return kind === 'vector' ? `LEFT JOIN restore_vector v${index} ON v${index}.key = r.${identifier(name)}` : '';
}

async function bytesOf({ content }: ReadEntry): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of content) chunks.push(chunk);
  return Buffer.concat(chunks);
}

/**
 * Streams text in COPY's format into a table. The client forgets an error of the server that comes
 * after the last byte; its query still hears of it.
 */
async function copyIn(
  sql: TransactionSql,
  table: string,
  columns: readonly string[],
  content: Iterable<Uint8Array> | AsyncIterable<Uint8Array>,
): Promise<void> {
  if (columns.length === 0) return;
  const query = sql.unsafe(`COPY ${table} (${columns.join(', ')}) FROM STDIN`);
  const { promise: failed, reject } = Promise.withResolvers<never>();
  failed.catch(() => undefined);
  void Object.assign(query, { reject });
  const stream = await Promise.race([query.writable(), failed]);
  const { promise: closed, resolve } = Promise.withResolvers<undefined>();
  stream.on('error', reject).once('close', () => resolve(undefined));
  try {
    for await (const chunk of content) {
      const { promise: written, resolve: next } = Promise.withResolvers<undefined>();
      stream.write(chunk, () => next(undefined));
      await Promise.race([written, failed]);
    }
    stream.end();
    await Promise.race([closed, failed]);
  } catch (error) {
    stream.destroy(error instanceof Error ? error : new Error('stopped'));
    throw error;
  }
}

function otherSchema(key: DatabaseKey, mark: string): StackError {
  return new StackError(
    `The archive's database ${key} is of another version than the tables of this machine: it lacks ${mark}.`,
    'restore it with the release of Holdfast, and of TAK Server, that it was made with. Then upgrade',
  );
}

function unknownColumn(table: string, column: string): StackError {
  return new StackError(
    `The archive's table ${table} has a column ${column} that this release doesn't know.`,
    'restore it with the release that made it, or a later one',
  );
}

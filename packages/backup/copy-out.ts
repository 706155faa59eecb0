// Copies databases out of a running stack, each under one snapshot: rows are exact at one moment,
// while people work and retention deletes.

import { codeOf, messageOf, StackError } from '@holdfast/kit/app-error';
import { connect, type Sql, type TransactionSql } from '@holdfast/kit/postgres';
import type { ArchiveWriter } from './archive.ts';
import type { ArchivedDatabase, ArchivedTable } from './manifest.ts';
import {
  type DatabasePlace,
  isLeftOut,
  identifier,
  partName,
  quoted,
  readSchemaNumber,
  readSequences,
  readTables,
  refuseUncopied,
  tableDirectory,
  type TableInfo,
} from './tables.ts';

/** A database at one moment, on a connection that holds its snapshot. */
export interface Snapshot {
  place: DatabasePlace;
  sql: TransactionSql;
  at: Date;
  postgres: string;
  schema: number | null;
  tables: TableInfo[];
  sequences: ArchivedDatabase['sequences'];
}

/** Bytes of one entry of rows. */
const PART_BYTES = 1024 * 1024;
/** A longer value is copied in pieces of this size: the server would need several times as much. */
export const LARGE_BYTES = 2 * 1024 * 1024;
const TAB = 0x09;
const NEWLINE = 0x0a;

/**
 * Runs `use` with a snapshot of each database, taken in that order within moments of each other.
 * An aborted signal closes the connections.
 */
export async function withSnapshots<T>(
  places: readonly DatabasePlace[],
  signal: AbortSignal,
  use: (snapshots: Snapshot[]) => Promise<T>,
): Promise<T> {
  const pools = places.map(({ url }) => connect(url, { name: 'holdfast-backup', max: 1, lasting: true }));
  const close = (): void => pools.forEach((pool) => void pool.end({ timeout: 0 }));
  signal.addEventListener('abort', close, { once: true });
  try {
    signal.throwIfAborted();
    return await nested(places, pools, [], use);
  } catch (error) {
    signal.throwIfAborted();
    throw error;
  } finally {
    signal.removeEventListener('abort', close);
    await Promise.all(pools.map((pool) => pool.end({ timeout: 0.2 })));
  }
}

async function nested<T>(
  [place, ...more]: readonly DatabasePlace[],
  [pool, ...pools]: readonly Sql[],
  taken: Snapshot[],
  use: (snapshots: Snapshot[]) => Promise<T>,
): Promise<T> {
  if (place === undefined || pool === undefined) return use(taken);
  let outcome: { value: T } | undefined;
  try {
    await pool.begin('ISOLATION LEVEL REPEATABLE READ READ ONLY', async (sql) => {
      outcome = { value: await nested(more, pools, [...taken, await takeSnapshot(sql, place)], use) };
    });
  } catch (error) {
    if (error instanceof StackError || codeOf(error) === undefined) throw error;
    throw new StackError(
      `The database ${place.key} failed: ${messageOf(error)}.`,
      'check that the stack is running, then run the backup again',
      error,
    );
  }
  if (outcome === undefined) throw new Error('the transaction ended early');
  return outcome.value;
}

async function takeSnapshot(sql: TransactionSql, place: DatabasePlace): Promise<Snapshot> {
  // A pause between two tables is no reason for the server to end the connection.
  await sql`SELECT set_config(name, '0', true) FROM unnest('{statement_timeout,lock_timeout,idle_in_transaction_session_timeout}'::text[]) name`;
  const [moment] = await sql<{ at: Date; postgres: string }[]>`
    SELECT clock_timestamp() AS at, current_setting('server_version') AS postgres`;
  if (moment === undefined) throw new Error('no answer');
  if (place.marks !== undefined) await refuseUncopied(sql, place.key);
  const tables = await readTables(sql, place.migrations);
  const schema = await readSchemaNumber(sql, place.migrations);
  // Sequences know no snapshot: read after it, they are never behind the rows.
  return { place, sql, schema, tables, sequences: await readSequences(sql), ...moment };
}

export interface CopyOptions {
  history: boolean;
  /** Bytes on the disk of the source whose rows were copied now; and the table being copied. */
  progress: (table: string, heapBytes: number) => void;
}

/** Writes every table of a snapshot into the archive. */
export async function copyDatabase(
  snapshot: Snapshot,
  writer: ArchiveWriter,
  { history, progress }: CopyOptions,
): Promise<ArchivedDatabase> {
  const { place, postgres, at, sequences } = snapshot;
  const tables: ArchivedTable[] = [];
  let bytes = 0;
  for (const table of snapshot.tables) {
    if (isLeftOut(place.key, table.name, history)) {
      tables.push({ name: table.name, columns: table.columns, rows: 0, bytes: 0, omitted: true });
      continue;
    }
    bytes += table.bytes;
    tables.push(await new TableCopy(snapshot, table, writer, progress).run());
  }
  return { key: place.key, postgres, snapshot_at: at.toISOString(), bytes, tables, sequences };
}

/** Copies one table. Columns come in the order of TableInfo: vectors first, bytes last. */
class TableCopy {
  readonly #sql: TransactionSql;
  readonly #table: TableInfo;
  readonly #writer: ArchiveWriter;
  readonly #progress: CopyOptions['progress'];
  readonly #directory: string;
  readonly #parts: Parts;
  /** Their keys by their digest, and where one of each is. */
  readonly #vectors = new Map<string, { key: number; ctid: string; column: string }>();
  #rows = 0;
  #large = 0;

  constructor(snapshot: Snapshot, table: TableInfo, writer: ArchiveWriter, progress: CopyOptions['progress']) {
    this.#sql = snapshot.sql;
    this.#table = table;
    this.#writer = writer;
    this.#progress = progress;
    this.#directory = tableDirectory(snapshot.place.key, table.name);
    this.#parts = new Parts(this.#directory, writer);
  }

  async run(): Promise<ArchivedTable> {
    const { name, columns } = this.#table;
    this.#progress(name, 0);
    const large = this.#of('bytes').map((column) => `octet_length(${identifier(column)}) > ${LARGE_BYTES}`);
    const isLarge = large.length === 0 ? 'false' : `coalesce(${large.join(' OR ')}, false)`;
    await this.#copyRows(
      this.#select(this.#of('bytes').map(identifier), large.length === 0 ? '' : `WHERE NOT ${isLarge}`),
    );
    if (large.length > 0) await this.#copyLargeRows(isLarge);
    await this.#parts.end();
    await this.#copyVectors();
    this.#progress(name, this.#table.heapBytes);
    return { name, columns, rows: this.#rows, bytes: this.#parts.bytes, omitted: false };
  }

  #of(kind: 'vector' | 'plain' | 'bytes'): string[] {
    return this.#table.columns.filter((column) => column.kind === kind).map(({ name }) => name);
  }

  get #source(): string {
    return `${this.#table.kind === 'r' ? 'ONLY ' : ''}${quoted(this.#table.name)}`;
  }

  /** A digest instead of a vector, behind the row's place, so that both are found fast. */
  #select(bytes: readonly string[], where: string): string {
    const vectors = this.#of('vector').map(
      (name) => `encode(substr(sha256(varbit_send(${identifier(name)})), 1, 16), 'base64')`,
    );
    const all = [...(vectors.length === 0 ? [] : ['ctid', ...vectors]), ...this.#of('plain').map(identifier), ...bytes];
    return `SELECT ${all.join(', ')} FROM ${this.#source} ${where}`;
  }

  async #copyRows(select: string): Promise<void> {
    const stream = await this.#sql.unsafe(`COPY (${select}) TO STDOUT`).readable();
    const hasVectors = this.#of('vector').length > 0;
    // The client hands over whole rows.
    for await (const chunk of stream as AsyncIterable<Buffer>) {
      if (hasVectors) await this.#addRewritten(chunk);
      else {
        this.#rows += countNewlines(chunk);
        await this.#parts.add(chunk);
      }
      this.#progress(this.#table.name, Math.min(this.#table.heapBytes, this.#parts.bytes) * 0.99);
    }
  }

  /** `(0,1) tab digest tab rest` becomes `key tab rest`. */
  async #addRewritten(chunk: Buffer): Promise<void> {
    const columns = this.#of('vector');
    for (let at = 0; at < chunk.length;) {
      const end = chunk.indexOf(NEWLINE, at) + 1;
      let field = chunk.indexOf(TAB, at) + 1;
      const ctid = [at, field - 1] as const;
      let keys = '';
      for (const column of columns) {
        const tab = chunk.indexOf(TAB, field);
        const stop = tab === -1 || tab >= end ? end - 1 : tab;
        const digest = chunk.toString('latin1', field, stop);
        keys += digest === '\\N' ? '\\N' : this.#keyOf(digest, column, chunk, ctid);
        field = stop + 1;
        if (stop !== end - 1) keys += '\t';
      }
      if (field > end - 1) keys += '\n';
      this.#rows++;
      const full = this.#parts.add(Buffer.from(keys, 'latin1'));
      if (full !== undefined) await full;
      const fullAgain = this.#parts.add(chunk.subarray(field, end));
      if (fullAgain !== undefined) await fullAgain;
      at = end;
    }
  }

  #keyOf(digest: string, column: string, chunk: Buffer, [from, to]: readonly [number, number]): number {
    const known = this.#vectors.get(digest);
    if (known !== undefined) return known.key;
    const key = this.#vectors.size + 1;
    this.#vectors.set(digest, { key, column, ctid: chunk.toString('latin1', from, to) });
    return key;
  }

  async #copyVectors(): Promise<void> {
    const parts = new Parts(`${this.#directory}/vectors`, this.#writer);
    for (const { key, ctid, column } of this.#vectors.values()) {
      const [row] = await this.#sql.unsafe<{ bits: string }[]>(
        `SELECT ${identifier(column)}::text AS bits FROM ${this.#source} WHERE ctid = '${ctid}'`,
      );
      if (row === undefined) throw new Error(`the row ${ctid} of ${this.#table.name} is gone from its snapshot`);
      await parts.add(Buffer.from(`${key}\t${row.bits}\n`, 'latin1'));
    }
    await parts.end();
  }

  async #copyLargeRows(isLarge: string): Promise<void> {
    const columns = this.#of('bytes');
    const lengths = columns.map((name, index) => `octet_length(${identifier(name)}) AS "${index}"`);
    const rows = await this.#sql.unsafe<Record<string, number | string | null>[]>(
      `SELECT ctid::text AS ctid, ${lengths.join(', ')} FROM ${this.#source} WHERE ${isLarge}`,
    );
    for (const row of rows) {
      const ctid = String(row['ctid']);
      const values = columns.map((name, index) => ({ name, length: Number(row[String(index)] ?? 0) }));
      const references = values.map(({ name, length }) =>
        length > LARGE_BYTES ? { name, length, id: ++this.#large } : { name, length, id: undefined },
      );
      const selected = references.map(({ name, id }) => (id === undefined ? `${identifier(name)}::text` : `'@${id}'`));
      await this.#copyRows(this.#select(selected, `WHERE ctid = '${ctid}'`));
      // The archive is one stream: pieces come between parts of rows.
      for (const { name, length, id } of references)
        if (id !== undefined) await this.#copyPieces(ctid, name, length, id);
    }
  }

  async #copyPieces(ctid: string, column: string, length: number, id: number): Promise<void> {
    for (let from = 0, piece = 1; from < length; from += LARGE_BYTES, piece++) {
      const [row] = await this.#sql.unsafe<{ part: string }[]>(
        `SELECT encode(substring(${identifier(column)} FROM ${from + 1} FOR ${LARGE_BYTES}), 'base64') AS part
        FROM ${this.#source} WHERE ctid = '${ctid}'`,
      );
      await this.#writer.add(
        partName(`${this.#directory}/large/${id}`, piece, 'bin'),
        Buffer.from(row?.part ?? '', 'base64'),
      );
    }
  }
}

/** Cuts a stream of rows into entries; their concatenation is what COPY FROM reads. */
class Parts {
  readonly #directory: string;
  readonly #writer: ArchiveWriter;
  #buffer: Buffer | undefined;
  #filled = 0;
  #number = 0;
  bytes = 0;

  constructor(directory: string, writer: ArchiveWriter) {
    this.#directory = directory;
    this.#writer = writer;
  }

  /** Undefined if there was room: most rows need no wait. */
  add(chunk: Uint8Array): Promise<void> | undefined {
    this.bytes += chunk.length;
    if (this.#buffer !== undefined && this.#filled + chunk.length <= PART_BYTES) {
      this.#buffer.set(chunk, this.#filled);
      this.#filled += chunk.length;
      return undefined;
    }
    return this.#addAcross(chunk);
  }

  async end(): Promise<void> {
    if (this.#filled > 0) await this.#flush();
  }

  async #addAcross(chunk: Uint8Array): Promise<void> {
    for (let at = 0; at < chunk.length;) {
      this.#buffer ??= Buffer.allocUnsafeSlow(PART_BYTES);
      const taken = Math.min(chunk.length - at, PART_BYTES - this.#filled);
      this.#buffer.set(chunk.subarray(at, at + taken), this.#filled);
      this.#filled += taken;
      at += taken;
      if (this.#filled === PART_BYTES) await this.#flush();
    }
  }

  async #flush(): Promise<void> {
    const part = this.#buffer?.subarray(0, this.#filled) ?? Buffer.alloc(0);
    this.#buffer = undefined;
    this.#filled = 0;
    await this.#writer.add(partName(this.#directory, ++this.#number), part);
  }
}

function countNewlines(chunk: Buffer): number {
  let count = 0;
  for (let at = chunk.indexOf(NEWLINE); at !== -1; at = chunk.indexOf(NEWLINE, at + 1)) count++;
  return count;
}

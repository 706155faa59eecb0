// Reads and writes the table `resource`: metadata and bytes of files, in parts.

import type postgres from 'postgres';
import type { Resource } from '../model/mission.ts';
import type { RunSql } from './certificates.ts';
import { MAX_GROUPS, vectorText } from './groups.ts';
import { visible } from './tables.ts';

/**
 * Of `resource` under that name. The size is known without reading the bytes; columns that are NULL
 * are empty texts.
 */
export function resourceColumns(sql: postgres.ISql, table = 'resource'): postgres.Fragment {
  const of = (column: string): postgres.Fragment => sql`${sql(`${table}.${column}`)}`;
  const text = (column: string): postgres.Fragment => sql`coalesce(${of(column)}, '')`;
  return sql`${of('id')}, ${text('hash')} AS hash, ${text('uid')} AS uid, ${text('name')} AS name,
    ${text('filename')} AS filename, ${text('mimetype')} AS "mimeType",
    to_json(coalesce(${of('keywords')}, '{}')) AS keywords, ${text('submitter')} AS submitter,
    ${text('creatoruid')} AS "creatorUid", ${text('tool')} AS tool,
    coalesce(${of('submissiontime')}, 'epoch') AS "submissionTime", coalesce(${of('expiration')}, -1)::float8 AS expiration,
    coalesce(octet_length(${of('data')}), 0) AS "sizeBytes"`;
}

export interface ResourceQuery {
  /** Places of the groups whose files may be seen; `all` sees those of no group too. */
  groups: readonly number[] | 'all';
  id?: number | undefined;
  hash?: string | undefined;
  uid?: string | undefined;
  /** Part of the name, in any case. */
  nameContains?: string | undefined;
  /** It has each of them. */
  keywords?: readonly string[];
  tool?: string | undefined;
  /** Name of a mission that it is content of. */
  mission?: string | undefined;
  since?: Date | undefined;
  until?: Date | undefined;
}

export type ResourceOrder = 'name' | 'user' | 'size' | 'time' | 'tool' | 'expiration';

export interface ResourcePage {
  order: ResourceOrder;
  ascending: boolean;
  limit: number;
  offset: number;
}

/** With the names of its groups that the caller may see. */
export interface ListedResource extends Resource {
  groups: string[];
}

/** What can be changed of a file; members that are not there stay. */
export interface ResourceChange {
  tool?: string;
  mimeType?: string;
  keywords?: readonly string[];
  /** Epoch seconds; -1: none. */
  expiration?: number;
}

/** Rejects with an AppError `unavailable` when the database is away. */
export interface ResourceStore {
  /** The newest. */
  find(query: ResourceQuery): Promise<Resource | undefined>;
  /** The newest first. */
  search(query: ResourceQuery, most: number): Promise<Resource[]>;
  list(query: ResourceQuery, page: ResourcePage): Promise<ListedResource[]>;
  count(query: ResourceQuery): Promise<number>;
  /**
   * Of each row of that hash that may be seen, and of whose submitter `submitter` is when it is
   * given. Resolves with how many.
   */
  change(query: ResourceQuery & { hash: string }, change: ResourceChange, submitter?: string): Promise<number>;
  /**
   * The rows, their bytes, and their places in missions; of `submitter` alone when it is given.
   * Resolves with how many files.
   */
  remove(query: ResourceQuery, submitter?: string): Promise<number>;
  /** So many bytes of a file, from the first (0); undefined when the file is gone. */
  bytes(id: number, from: number, length: number): Promise<Uint8Array | undefined>;
}

const ORDERS: Record<ResourceOrder, string> = {
  name: 'r.name',
  user: 'r.submitter',
  size: '"sizeBytes"',
  time: 'r.submissiontime',
  tool: 'r.tool',
  expiration: 'r.expiration',
};

/** `runBytes` reads the bytes, so that many downloads hold up nothing else. */
export function resourceStore(run: RunSql, runBytes: RunSql = run): ResourceStore {
  return {
    find: (query) =>
      run(async (sql) => {
        const [row] = await sql<Resource[]>`
          SELECT ${resourceColumns(sql, 'r')} FROM resource r WHERE ${matches(sql, query)} ORDER BY r.id DESC LIMIT 1`;
        return row;
      }),

    search: (query, most) =>
      run(
        (sql) => sql<Resource[]>`
          SELECT ${resourceColumns(sql, 'r')} FROM resource r WHERE ${matches(sql, query)}
          ORDER BY r.submissiontime DESC, r.id DESC LIMIT ${most}`,
      ),

    list: (query, { order, ascending, limit, offset }) =>
      run((sql) => {
        const direction = ascending ? sql`ASC` : sql`DESC`;
        return sql<ListedResource[]>`
          SELECT page.*, ${groupNames(sql, query.groups)} AS groups
          FROM (
            SELECT ${resourceColumns(sql, 'r')} FROM resource r WHERE ${matches(sql, query)}
            ORDER BY ${sql.unsafe(ORDERS[order])} ${direction}, r.id ${direction} LIMIT ${limit} OFFSET ${offset}
          ) page`;
      }),

    count: (query) =>
      run(async (sql) => {
        const [row] = await sql<[{ files: number }]>`
          SELECT count(*)::int AS files FROM resource r WHERE ${matches(sql, query)}`;
        return row.files;
      }),

    change: (query, { tool, mimeType, keywords, expiration }, submitter) =>
      run(async (sql) => {
        const changed = await sql`
          UPDATE resource r SET tool = coalesce(${tool ?? null}, r.tool), mimetype = coalesce(${mimeType ?? null}, r.mimetype),
            keywords = coalesce(${keywords === undefined ? null : textsOf(sql, keywords)}, r.keywords),
            expiration = coalesce(${expiration ?? null}::float8::bigint, r.expiration)
          WHERE ${matches(sql, query)} AND ${submittedBy(sql, submitter)}`;
        return changed.count;
      }),

    remove: (query, submitter) =>
      run(async (sql) => {
        const [row] = await sql<[{ files: number }]>`
          WITH gone AS (
            DELETE FROM resource r WHERE ${matches(sql, query)} AND ${submittedBy(sql, submitter)} RETURNING r.id
          ), content AS (
            DELETE FROM mission_resource WHERE resource_id IN (SELECT id FROM gone)
          )
          SELECT count(*)::int AS files FROM gone`;
        return row.files;
      }),

    bytes: (id, from, length) =>
      runBytes(async (sql) => {
        const [row] = await sql<{ part: string }[]>`
          SELECT encode(substring(data FROM ${from + 1} FOR ${length}), 'base64') AS part FROM resource WHERE id = ${id}`;
        return row === undefined ? undefined : Buffer.from(row.part, 'base64');
      }),
  };
}

function submittedBy(sql: postgres.ISql, submitter: string | undefined): postgres.Fragment {
  return submitter === undefined ? sql`true` : sql`r.submitter = ${submitter}`;
}

/** Of the rows `r`. */
function matches(sql: postgres.ISql, query: ResourceQuery): postgres.Fragment {
  const { id, hash, uid, nameContains, keywords = [], tool, mission, since, until } = query;
  const when = <T>(value: T | undefined, then: (value: T) => postgres.Fragment): postgres.Fragment =>
    value === undefined ? sql`` : sql` AND ${then(value)}`;
  return sql`${visible(sql, query.groups, sql`r.groups`)}
    ${when(id, (number) => sql`r.id = ${number}`)}
    ${when(hash, (text) => sql`r.hash = ${text}`)}
    ${when(uid, (text) => sql`r.uid = ${text}`)}
    ${when(nameContains, (text) => sql`strpos(lower(r.name), lower(${text})) > 0`)}
    ${when(keywords.length === 0 ? undefined : keywords, (texts) => sql`r.keywords @> ${textsOf(sql, texts)}`)}
    ${when(tool, (text) => sql`r.tool = ${text}`)}
    ${when(
      mission,
      (name) => sql`r.id IN (SELECT c.resource_id FROM mission_resource c JOIN mission m ON m.id = c.mission_id
      WHERE m.name = ${name} AND ${visible(sql, query.groups, sql`m.groups`)})`,
    )}
    ${when(since, (date) => sql`r.submissiontime >= ${date}`)}
    ${when(until, (date) => sql`r.submissiontime <= ${date}`)}`;
}

/** An array from JSON text: the client sends no types of arrays. */
export function textsOf(sql: postgres.ISql, texts: readonly string[]): postgres.Fragment {
  return sql`ARRAY(SELECT json_array_elements_text(${JSON.stringify(texts)}::text::json))::varchar[]`;
}

/**
 * Names of the groups of a row of the page, as far as the caller may see them. A vector is unpacked
 * once for all groups.
 */
function groupNames(sql: postgres.ISql, groups: ResourceQuery['groups']): postgres.Fragment {
  const own = groups === 'all' ? sql`true` : sql`g.bitpos = ANY (${`{${groups.join()}}`}::text::int[])`;
  return sql`coalesce((SELECT json_agg(g.name ORDER BY g.name COLLATE "C")
    FROM (SELECT o.groups || B'' AS bits FROM resource o WHERE o.id = page.id OFFSET 0) plain CROSS JOIN groups g
    WHERE ${own} AND CASE WHEN g.bitpos < length(plain.bits)
      THEN get_bit(plain.bits, length(plain.bits) - 1 - g.bitpos) = 1 ELSE false END), '[]'::json)`;
}

/** What is known of a file before it has a row. */
export interface NewResource extends Omit<Resource, 'id'> {
  /** Of the groups that may see it. */
  places: readonly number[];
  /** Degrees; null: it has no place on the map. */
  location: { latitude: number; longitude: number } | null;
  /** Metres. */
  altitude: number | null;
}

/**
 * The bytes of a file, which are read once, in parts of at most so many. A part is good until the
 * next one.
 */
export interface FileParts {
  parts(bytes: number): AsyncIterable<Uint8Array>;
}

/** Rejects with an AppError `unavailable` when the database is away; then nothing was written. */
export interface ResourceWriter {
  /** A row of its own. */
  add(file: NewResource, source: FileParts): Promise<Resource>;
  /**
   * The row of that hash, if one of these groups has one, with these groups and keywords added;
   * else a new one: who has the same bytes learns nothing of the file of others, and changes
   * nothing of it.
   */
  join(file: NewResource, source: FileParts): Promise<Resource>;
}

/** In memory three times for a moment: bytes, base64, and what is sent. */
const PART_BYTES = 384 * 1024;
/** Of a file. Whoever brings it again adds no more to so many. */
export const MAX_KEYWORDS = 64;

/**
 * Files on their way into the table `resource`: in parts, so that the core never holds a whole one.
 * `run` gives a transaction minutes: of a large file, PostgreSQL puts the parts together in its
 * memory.
 */
export function resourceWriter(run: RunSql): ResourceWriter {
  return {
    add: (file, source) => run((sql) => sql.begin((tx) => inserted(tx, file, source))),
    join: (file, source) =>
      run((sql) => sql.begin(async (tx) => (await joined(tx, file)) ?? (await inserted(tx, file, source)))),
  };
}

async function joined(tx: postgres.ISql, file: NewResource): Promise<Resource | undefined> {
  const [row] = await tx<Resource[]>`
    UPDATE resource SET groups = CASE WHEN length(groups) = ${MAX_GROUPS} THEN groups | ${vector(tx, file)} ELSE ${vector(tx, file)} END,
      keywords = CASE WHEN cardinality(keywords) >= ${MAX_KEYWORDS} THEN keywords
        ELSE ARRAY(SELECT DISTINCT unnest(coalesce(keywords, '{}') || ${textsOf(tx, file.keywords)})) END
    WHERE id = (SELECT max(r.id) FROM resource r WHERE r.hash = ${file.hash} AND ${visible(tx, file.places, tx`r.groups`)})
    RETURNING ${resourceColumns(tx)}`;
  return row;
}

async function inserted(tx: postgres.ISql, file: NewResource, source: FileParts): Promise<Resource> {
  await tx`CREATE TEMPORARY TABLE upload_part (n int, data bytea) ON COMMIT DROP`;
  await tx`ALTER TABLE upload_part ALTER COLUMN data SET STORAGE EXTERNAL`;
  let n = 0;
  for await (const part of source.parts(PART_BYTES))
    await tx`INSERT INTO upload_part (n, data) VALUES (${n++}, decode(${Buffer.from(part.buffer, part.byteOffset, part.byteLength).toString('base64')}, 'base64'))`;
  const { location } = file;
  const at = location === null ? tx`NULL` : tx`point(${location.longitude}::float8, ${location.latitude}::float8)`;
  const [row] = await tx<Resource[]>`
    INSERT INTO resource (altitude, data, filename, keywords, location, mimetype, name, submissiontime, submitter, uid, hash,
      creatoruid, tool, groups, expiration)
    VALUES (${file.altitude}::float8::numeric, coalesce((SELECT string_agg(data, '' ORDER BY n) FROM upload_part), ''),
      ${file.filename}, ${textsOf(tx, file.keywords)}, ${at}, ${file.mimeType}, ${file.name}, ${file.submissionTime}, ${file.submitter},
      ${file.uid}, ${file.hash}, ${file.creatorUid}, ${file.tool}, ${vector(tx, file)}, ${file.expiration}::float8::bigint)
    RETURNING ${resourceColumns(tx)}`;
  if (row === undefined) throw new Error('the database answered without the row');
  if (row.sizeBytes === file.sizeBytes) return row;
  throw new Error(`the database has ${row.sizeBytes} of ${file.sizeBytes} bytes`);
}

function vector(sql: postgres.ISql, { places }: NewResource): postgres.Fragment {
  return sql`${vectorText(places)}::text::bit varying(32768)`;
}

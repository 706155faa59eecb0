// Files on their way into the table `resource`: in parts, so that the core never holds a whole one.

import type postgres from 'postgres';
import type { Resource } from '../model/mission.ts';
import type { RunSql } from './certificates.ts';
import { vectorText } from './group-vectors.ts';
import { MOST_GROUPS } from './groups.ts';
import { resourceColumns, textsOf } from './resources.ts';
import { visible } from './tables.ts';

/** What is known of a file before it has a row. */
export interface NewResource extends Omit<Resource, 'id'> {
  /** Of the groups that may see it. */
  places: readonly number[];
  /** Degrees; null: it has no place on the map. */
  location: { latitude: number; longitude: number } | null;
  /** Metres. */
  altitude: number | null;
}

/** The bytes of a file, which are read once, in parts of at most so many. A part is good until the next one. */
export interface FileParts {
  parts(bytes: number): AsyncIterable<Uint8Array>;
}

/** Rejects with an AppError `unavailable` when the database is away; then nothing was written. */
export interface ResourceWriter {
  /** A row of its own. */
  add(file: NewResource, source: FileParts): Promise<Resource>;
  /**
   * The row of that hash, if one of these groups has one, with these groups and keywords added; else a new one: who has the
   * same bytes learns nothing of the file of others, and changes nothing of it.
   */
  join(file: NewResource, source: FileParts): Promise<Resource>;
}

/** In memory three times for a moment: bytes, base64, and what is sent. */
const PART_BYTES = 384 * 1024;
/** Of a file. Whoever brings it again adds no more to so many. */
export const MOST_KEYWORDS = 64;

/** `run` gives a transaction minutes: of a large file, PostgreSQL puts the parts together in its memory. */
export function resourceWriter(run: RunSql): ResourceWriter {
  return {
    add: (file, source) => run((sql) => sql.begin((tx) => inserted(tx, file, source))),
    join: (file, source) =>
      run((sql) => sql.begin(async (tx) => (await joined(tx, file)) ?? (await inserted(tx, file, source)))),
  };
}

async function joined(tx: postgres.ISql, file: NewResource): Promise<Resource | undefined> {
  const [row] = await tx<Resource[]>`
    UPDATE resource SET groups = CASE WHEN length(groups) = ${MOST_GROUPS} THEN groups | ${vector(tx, file)} ELSE ${vector(tx, file)} END,
      keywords = CASE WHEN cardinality(keywords) >= ${MOST_KEYWORDS} THEN keywords
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

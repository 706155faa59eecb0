// Builds the deletion statements: each deletes one batch in the caller's transaction. Batches
// continue after the last time and id, so that dead rows aren't read again.

import type postgres from 'postgres';

/** Behind which row the next batch begins. */
export interface Position {
  at: string;
  id: string;
}

export interface Batch {
  /** Rows that were looked at, exempt ones too. */
  scanned: number;
  deleted: number;
  bytes: number;
  /** Undefined when there is nothing more. */
  next: Position | undefined;
}

interface Held {
  scanned: number;
  /** Ids as an array of PostgreSQL. */
  held: string | null;
  at: string | null;
  id: string | null;
}

type Tx = postgres.TransactionSql;

export const FROM_THE_FIRST: Position = { at: '-infinity', id: '-1' };
export const FILES_AT_ONCE = 20;
const FILES_LOOKED_AT = 1_000;
const FILE_BYTES_AT_ONCE = 32 * 1024 ** 2;
export const MISSION_PACKAGE = 'missionpackage';
export const KEPT_MISSIONS: readonly string[] = ['exchecktemplates', 'citrap'];

/**
 * Of the whole transaction: the index by time, whatever the statistics say. `plan_cache_mode` must
 * stay as it is: with plans made anew for each value, the look for rows that point at an event
 * takes five times as long.
 */
export async function asBatch(tx: Tx): Promise<void> {
  await tx`
    SELECT set_config('enable_seqscan', 'off', true), set_config('enable_bitmapscan', 'off', true),
      set_config('enable_sort', 'off', true)`;
}

/**
 * Ids of events or chat, read many at once: of rows with the same moment all are read to find the
 * first, which must not be so for each batch.
 */
export interface Page {
  ids: string[];
  next: Position | undefined;
}

const PAGE_ROWS = 50_000;

/** Events without chat; those of missions' contents are among them. */
export function oldEvents(tx: Tx, limit: string, from: Position): Promise<Page> {
  return page(tx, tx`cot_router WHERE cot_type <> 'b-t-f' AND`, limit, from);
}

/** Chat that older releases wrote among the events. */
export function oldLegacyChat(tx: Tx, limit: string, from: Position): Promise<Page> {
  return page(tx, tx`cot_router WHERE cot_type = 'b-t-f' AND`, limit, from);
}

export function oldChat(tx: Tx, limit: string, from: Position): Promise<Page> {
  return page(tx, tx`cot_router_chat WHERE`, limit, from);
}

function page(tx: Tx, rows: postgres.Fragment, limit: string, from: Position): Promise<Page> {
  return read(
    tx,
    tx`
      SELECT id, servertime AS at FROM ${rows} ${older(tx, tx`servertime`, limit, from)}
      ORDER BY servertime, id LIMIT ${PAGE_ROWS}::int`,
  );
}

/** Of one mission: events of its uids that no other mission has. A position is a uid and an id. */
export function eventsOfMission(tx: Tx, mission: number, from: Position): Promise<Page> {
  return read(
    tx,
    tx`
      SELECT e.id, u.uid AS at FROM (
        SELECT uid FROM mission_uid m WHERE mission_id = ${mission} AND uid >= ${from.at} AND ${ofNoOther(tx, mission, tx`m.uid`)}
        ORDER BY uid
      ) u CROSS JOIN LATERAL (
        SELECT id FROM cot_router r WHERE r.uid = u.uid AND (u.uid > ${from.at} OR r.id < ${from.id}::bigint)
        ORDER BY id DESC LIMIT ${PAGE_ROWS}::int
      ) e ORDER BY u.uid, e.id DESC LIMIT ${PAGE_ROWS}::int`,
  );
}

export const FIRST_MISSION_EVENT: Position = { at: '', id: '9223372036854775807' };

function ofNoOther(tx: Tx, mission: number, uid: postgres.Fragment): postgres.Fragment {
  return tx`NOT EXISTS (SELECT FROM mission_uid o WHERE o.uid = ${uid} AND o.mission_id <> ${mission})`;
}

/** In the order of the query; a page that is not full is the last one. */
async function read(tx: Tx, query: postgres.Fragment): Promise<Page> {
  const [row] = await tx<[{ ids: string | null; last: Position | null }]>`
    WITH page AS MATERIALIZED (${query})
    SELECT (SELECT string_agg(id::text, ',') FROM page) AS ids,
      (SELECT json_build_object('at', at::text, 'id', id::text) FROM page OFFSET ${PAGE_ROWS - 1}::int LIMIT 1) AS last`;
  return { ids: row.ids?.split(',') ?? [], next: row.last ?? undefined };
}

/** Of these, without those that a mission has by now. */
export function deleteEvents(tx: Tx, ids: readonly string[]): Promise<Batch> {
  return deleteWithReferences(tx, ids, tx`NOT EXISTS (SELECT FROM mission_uid u WHERE u.uid = r.uid)`);
}

export function deleteLegacyChat(tx: Tx, ids: readonly string[]): Promise<Batch> {
  return deleteWithReferences(tx, ids, tx`true`);
}

/**
 * Of these, without those that another mission has by now, or this one no more; none when it is
 * invite-only by now.
 */
export function deleteMissionEvents(tx: Tx, mission: number, ids: readonly string[]): Promise<Batch> {
  const isHeld = tx`EXISTS (SELECT FROM mission_uid u WHERE u.uid = r.uid AND u.mission_id = ${mission})`;
  return deleteWithReferences(
    tx,
    ids,
    tx`${isHeld} AND ${stillGoes(tx, mission)} AND ${ofNoOther(tx, mission, tx`r.uid`)}`,
  );
}

/** Somebody may make it invite-only to keep it. */
function stillGoes(tx: Tx, mission: number): postgres.Fragment {
  return tx`(SELECT NOT invite_only FROM mission WHERE id = ${mission})`;
}

export async function deleteChat(tx: Tx, ids: readonly string[]): Promise<Batch> {
  const [row] = await tx<[Freed]>`
    WITH gone AS (
      DELETE FROM cot_router_chat e WHERE id = ANY (${listed(ids)}::text::bigint[]) RETURNING pg_column_size(e.*) AS size
    ) ${freed(tx)}`;
  return { ...row, scanned: ids.length, next: undefined };
}

/**
 * The events with what points at them: foreign keys are looked at when the whole statement is done.
 */
async function deleteWithReferences(tx: Tx, ids: readonly string[], isExpired: postgres.Fragment): Promise<Batch> {
  const [row] = await tx<[Freed]>`
    WITH doomed AS MATERIALIZED (
      SELECT r.id FROM cot_router r WHERE r.id = ANY (${listed(ids)}::text::bigint[]) AND ${isExpired}
    ),
    image AS MATERIALIZED (SELECT id FROM cot_image WHERE cot_id IN (SELECT id FROM doomed)),
    links AS (DELETE FROM cot_link WHERE containing_event IN (SELECT id FROM doomed)),
    thumbnails AS (
      DELETE FROM cot_thumbnail WHERE id IN (
        SELECT id FROM cot_thumbnail WHERE cot_id IN (SELECT id FROM doomed)
        UNION ALL SELECT id FROM cot_thumbnail WHERE cot_image_id IN (SELECT id FROM image))
    ),
    images AS (DELETE FROM cot_image WHERE id IN (SELECT id FROM image)),
    gone AS (
      DELETE FROM cot_router e WHERE id IN (SELECT id FROM doomed) RETURNING pg_column_size(e.*) AS size
    ) ${freed(tx)}`;
  return { ...row, scanned: ids.length, next: undefined };
}

type Freed = Pick<Batch, 'deleted' | 'bytes'>;

function freed(tx: Tx): postgres.Fragment {
  return tx`SELECT count(*)::float8 AS deleted, coalesce(sum(size), 0)::float8 AS bytes FROM gone`;
}

function listed(ids: readonly string[]): string {
  return `{${ids.join()}}`;
}

export interface ExpiredFiles {
  /** Files with this keyword, or those without it. */
  packages: boolean;
  exemptKeywords: readonly string[];
}

/** Files that no mission has, at most so many, and not many bytes at once. */
export async function deleteFiles(
  tx: Tx,
  limit: string,
  from: Position,
  most: number,
  { packages, exemptKeywords }: ExpiredFiles,
): Promise<Batch> {
  const keywords = tx`coalesce(f.keywords, '{}')::text[]`;
  const exempt = tx`ARRAY(SELECT json_array_elements_text(${JSON.stringify(exemptKeywords)}::text::json))`;
  const isExpired = tx`coalesce(${MISSION_PACKAGE}::text = ANY (${keywords}), false) = ${packages}::boolean
    AND NOT ${keywords} && ${exempt} AND NOT EXISTS (SELECT FROM mission_resource m WHERE m.resource_id = f.id)`;
  const rows = await tx<(Held & { last: boolean })[]>`
    WITH looked AS MATERIALIZED (
      SELECT f.id, f.submissiontime AS at, octet_length(f.data) AS size, ${isExpired} AS doomed
      FROM resource f WHERE ${older(tx, tx`f.submissiontime`, limit, from)}
      ORDER BY f.submissiontime, f.id LIMIT ${FILES_LOOKED_AT}::int
    ), summed AS (
      SELECT *, count(*) FILTER (WHERE doomed) OVER sofar AS files, sum(size) FILTER (WHERE doomed) OVER sofar AS bytes
      FROM looked WINDOW sofar AS (ORDER BY at, id ROWS UNBOUNDED PRECEDING)
    ), next AS MATERIALIZED (
      SELECT id, at, doomed FROM summed
      WHERE files <= ${most}::int AND (files <= 1 OR bytes IS NULL OR bytes <= ${FILE_BYTES_AT_ONCE}::bigint)
    ), ${held(tx, tx`SELECT id FROM next WHERE doomed`)},
    whole AS (SELECT count(*) < ${FILES_LOOKED_AT}::int AND count(*) = (SELECT count(*) FROM next) AS was_last FROM looked)
    ${heldOf(tx, tx`, (SELECT was_last FROM whole) AS last`)}`;
  const [freedBytes] = await tx<[Freed]>`
    WITH gone AS (
      DELETE FROM resource f WHERE id = ANY (${rows[0]?.held ?? '{}'}::text::int[]) AND ${isExpired}
      RETURNING ${fileSize(tx)} AS size
    ) ${freed(tx)}`;
  return batchOf(rows[0], freedBytes, rows[0]?.last === true ? Number.POSITIVE_INFINITY : 0);
}

/** Of one mission: files that no other mission has; none when it is invite-only by now. */
export async function deleteMissionFiles(tx: Tx, mission: number, from: Position, most: number): Promise<Batch> {
  const [row] = await tx<Held[]>`
    WITH next AS MATERIALIZED (
      SELECT DISTINCT m.resource_id AS id, '' AS at FROM mission_resource m
      WHERE m.mission_id = ${mission} AND m.resource_id > ${from.id}::int AND ${fileOfNoOther(tx, mission)}
      ORDER BY id LIMIT ${most}::int
    ), ${held(tx, tx`SELECT id FROM next`)} ${heldOf(tx)}`;
  const [freedBytes] = await tx<[Freed]>`
    WITH unlinked AS (
      DELETE FROM mission_resource m
      WHERE mission_id = ${mission} AND resource_id = ANY (${row?.held ?? '{}'}::text::int[])
        AND ${stillGoes(tx, mission)} AND ${fileOfNoOther(tx, mission)}
      RETURNING resource_id
    ), gone AS (
      DELETE FROM resource f WHERE id IN (SELECT resource_id FROM unlinked) RETURNING ${fileSize(tx)} AS size
    ) ${freed(tx)}`;
  return batchOf(row, freedBytes, most);
}

function fileOfNoOther(tx: Tx, mission: number): postgres.Fragment {
  return tx`NOT EXISTS (SELECT FROM mission_resource o WHERE o.resource_id = m.resource_id AND o.mission_id <> ${mission})`;
}

function fileSize(tx: Tx): postgres.Fragment {
  return tx`coalesce(octet_length(f.data), 0) + 500`;
}

function older(tx: Tx, time: postgres.Fragment, limit: string, { at, id }: Position): postgres.Fragment {
  return tx`${time} < ${limit}::text::timestamptz AND ${time} >= ${at}::text::timestamptz
    AND (${time} > ${at}::text::timestamptz OR id > ${id}::bigint)`;
}

/** Waits for who puts one of these files into a mission; only the statement after it sees that. */
function held(tx: Tx, ids: postgres.Fragment): postgres.Fragment {
  return tx`held AS MATERIALIZED (SELECT id FROM resource WHERE id IN (${ids}) ORDER BY id FOR UPDATE)`;
}

function heldOf(tx: Tx, more = tx``): postgres.Fragment {
  return tx`
    SELECT (SELECT count(*) FROM next)::float8 AS scanned, '{' || (SELECT string_agg(id::text, ',') FROM held) || '}' AS held,
      end_of.at, end_of.id ${more}
    FROM (SELECT) AS one
    LEFT JOIN (SELECT at::text AS at, id::text AS id FROM next ORDER BY next.at DESC, next.id DESC LIMIT 1) AS end_of ON true`;
}

function batchOf(row: Held | undefined, gone: Freed, most: number): Batch {
  if (row === undefined) throw new Error('a batch of deletions has no answer');
  const { scanned, at, id } = row;
  return { ...gone, scanned, next: at === null || id === null || scanned < most ? undefined : { at, id } };
}

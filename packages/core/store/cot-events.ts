// Writes events and chat, one statement per batch. Draws the ids beforehand, so that a batch can be
// retried without duplicate rows.

import type { ArchivedEvent } from '../model/stream.ts';
import type { RunSql } from './certificates.ts';
import type { GroupVectors } from './groups.ts';
import { type Field, fieldRows, SEPARATORS } from './tables.ts';

/** An event that can be a row: what it says was looked at. */
export interface CotRow {
  event: ArchivedEvent;
  timeMs: number;
  startMs: number;
  staleMs: number;
  /** One for each row: of chat one for each of `destUids`, else one. */
  ids: readonly string[];
}

/**
 * Rejects with an AppError `unavailable` if the database is unavailable, with PostgreSQL's own
 * error if it refuses a row.
 */
export interface CotWriter {
  /** The next ids, ascending. */
  ids(count: number): Promise<string[]>;
  /** All or none of each table; `again`: rows that are there already stay as they are. */
  write(rows: readonly CotRow[], again: boolean): Promise<void>;
}

export function cotWriter(run: RunSql, vectors: GroupVectors): CotWriter {
  async function writeEvents(rows: readonly CotRow[], again: boolean): Promise<number> {
    const text = fieldRows(rows.map((row) => eventFields(row, vectors)));
    const { field, row, nothing } = SEPARATORS;
    const result = await run(
      (sql) => sql`
        INSERT INTO cot_router (id, uid, cot_type, access, qos, opex, start, "time", stale, how, point_hae, point_ce, point_le,
          detail, servertime, servertime_hour, event_pt, groups, caveat, releaseableto)
        SELECT f[1]::bigint, f[2], f[3], f[4], f[5], f[6], to_timestamp(f[7]::float8), to_timestamp(f[8]::float8),
          to_timestamp(f[9]::float8), f[10], f[11]::numeric, f[12]::numeric, f[13]::numeric, f[14],
          to_timestamp(f[15]::float8), to_timestamp(floor(f[15]::float8 / 3600) * 3600),
          point(f[16]::float8, f[17]::float8), v.vector, f[19], f[20]
        FROM (
          SELECT string_to_array(line, ${field}::text, ${nothing}::text) AS f
          FROM string_to_table(${text}::text, ${row}::text) AS line OFFSET 0
        ) AS given JOIN group_vector v ON v.places = f[18]
        ${again ? sql`ON CONFLICT (id) DO NOTHING` : sql``}`,
    );
    return result.count;
  }

  /** Sends the event once, plus a row per recipient, so that the detail isn't repeated. */
  async function writeChat(rows: readonly CotRow[], again: boolean): Promise<number> {
    const text = fieldRows(rows.map((row, place) => chatFields(row, place, vectors)));
    const recipients = fieldRows(rows.flatMap((row, place) => recipientFields(row, place)));
    const { field, row, nothing } = SEPARATORS;
    const result = await run(
      (sql) => sql`
        INSERT INTO cot_router_chat (id, uid, cot_type, access, qos, opex, start, "time", stale, how, point_hae, point_ce,
          point_le, detail, servertime, event_pt, groups, sender_callsign, dest_callsign, dest_uid, chat_content, chat_room)
        SELECT r[1]::bigint, f[2], f[3], f[4], f[5], f[6], to_timestamp(f[7]::float8), to_timestamp(f[8]::float8),
          to_timestamp(f[9]::float8), f[10], f[11]::numeric, f[12]::numeric, f[13]::numeric, f[14],
          to_timestamp(f[15]::float8), point(f[16]::float8, f[17]::float8), v.vector, f[19], f[20], r[3], f[21], f[22]
        FROM (
          SELECT string_to_array(line, ${field}::text, ${nothing}::text) AS f
          FROM string_to_table(${text}::text, ${row}::text) AS line OFFSET 0
        ) AS given
        JOIN (
          SELECT string_to_array(line, ${field}::text, ${nothing}::text) AS r
          FROM string_to_table(${recipients}::text, ${row}::text) AS line OFFSET 0
        ) AS recipient ON r[2] = f[1]
        JOIN group_vector v ON v.places = f[18]
        ${again ? sql`ON CONFLICT (id) DO NOTHING` : sql``}`,
    );
    return result.count;
  }

  async function writeAll(rows: readonly CotRow[], again: boolean, insert: typeof writeEvents): Promise<void> {
    if (rows.length === 0) return;
    if ((await insert(rows, again)) === countOf(rows) || again) return;
    // A set of groups has lost its row, and its events were left out: they find it the second time.
    vectors.forget();
    await vectors.ensure(rows.map(({ event }) => event.places));
    await insert(rows, true);
  }

  return {
    ids: (count) =>
      run(async (sql) => {
        const [drawn] = await sql<[{ ids: string }]>`
          SELECT string_agg(nextval('cot_router_seq')::text, ',') AS ids FROM generate_series(1, ${count}::int)`;
        return drawn.ids.split(',');
      }),

    async write(rows, again) {
      if (again) vectors.forget();
      await vectors.ensure(rows.map(({ event }) => event.places));
      await writeAll(
        rows.filter(({ event }) => event.chat === undefined),
        again,
        writeEvents,
      );
      await writeAll(
        rows.filter(({ event }) => event.chat !== undefined),
        again,
        writeChat,
      );
    },
  };
}

function countOf(rows: readonly CotRow[]): number {
  return rows.reduce((sum, { ids }) => sum + ids.length, 0);
}

/** Times in seconds since 1970. */
function eventFields(row: CotRow, vectors: GroupVectors): Field[] {
  const { event } = row;
  return [...sharedFields(row, row.ids[0] ?? null, vectors), event.caveat, event.releaseableTo];
}

function chatFields(row: CotRow, place: number, vectors: GroupVectors): Field[] {
  const chat = row.event.chat;
  return [...sharedFields(row, place, vectors), chat?.senderCallsign, chat?.destCallsign, chat?.content, chat?.room];
}

function recipientFields({ ids, event }: CotRow, place: number): Field[][] {
  return ids.map((id, at) => [id, place, event.chat?.destUids[at]]);
}

function sharedFields({ event, startMs, timeMs, staleMs }: CotRow, first: Field, vectors: GroupVectors): Field[] {
  const { point } = event;
  return [
    first,
    event.uid,
    event.type,
    event.access,
    event.qos,
    event.opex,
    startMs / 1000,
    timeMs / 1000,
    staleMs / 1000,
    event.how,
    point.hae,
    point.ce,
    point.le,
    event.detail,
    event.receivedAtMs / 1000,
    point.lon,
    point.lat,
    vectors.keyOf(event.places),
  ];
}

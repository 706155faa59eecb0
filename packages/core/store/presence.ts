// Reads and writes the tables of clients: connections, disconnections, and the lists of the API.

import type { Presence, StreamDevice } from '../model/stream.ts';
import type { RunSql } from './certificates.ts';
import type { GroupVectors } from './groups.ts';
import { visible } from './tables.ts';

export interface PresenceRow {
  who: Presence;
  at: Date;
  kind: 'Connected' | 'Disconnected';
  /** Drawn beforehand: written twice, the row stands there once. */
  id?: number;
}

/**
 * Rejects with an AppError `unavailable` when the database is away, with PostgreSQL's own error
 * when it refuses a row.
 */
export interface PresenceStore {
  /** Ids of rows to come, ascending. */
  ids(count: number): Promise<number[]>;
  /**
   * All or none of the rows, which have their ids; `again`: those that are there already stay as
   * they are.
   */
  write(rows: readonly PresenceRow[], again: boolean): Promise<void>;
  /** Whoever is still there by the tables has gone, `but` for those. */
  everybodyWent(at: Date, but?: readonly StreamDevice[]): Promise<void>;
}

/**
 * The five texts of a client are one entry of an index, which takes 2,704 bytes: three for each
 * character.
 */
const MAX_TEXT_LENGTH = 160;

export function presenceStore(run: RunSql, vectors: GroupVectors): PresenceStore {
  async function insert(rows: readonly PresenceRow[]): Promise<number> {
    await vectors.ensure(rows.map(({ who }) => who.places));
    const given = JSON.stringify(rows.map((row) => recordOf(row, vectors)));
    return run((sql) =>
      sql.begin(async (tx) => {
        await tx`
          INSERT INTO client_endpoint (callsign, uid, username, team, role)
          SELECT DISTINCT callsign, uid, username, team, role
          FROM json_to_recordset(${given}::text::json) AS g (callsign text, uid text, username text, team text, role text)
          WHERE NOT EXISTS (SELECT FROM client_endpoint c
            WHERE (c.callsign, c.uid, c.username, c.team, c.role) = (g.callsign, g.uid, g.username, g.team, g.role))
          ON CONFLICT DO NOTHING`;
        const { count } = await tx`
          INSERT INTO client_endpoint_event (id, client_endpoint_id, connection_event_type_id, created_ts, client_version, groups)
          SELECT g.id, c.id, t.id, to_timestamp(g.at / 1000), g.version, v.vector
          FROM json_to_recordset(${given}::text::json) AS g (id int, at float8, kind text, callsign text, uid text,
            username text, team text, role text, version text, places text)
          JOIN client_endpoint c USING (callsign, uid, username, team, role)
          JOIN connection_event_type t ON t.event_name = g.kind
          JOIN group_vector v ON v.places = g.places
          ON CONFLICT (id) DO NOTHING`;
        return count;
      }),
    );
  }

  return {
    ids: (count) =>
      run(async (sql) => {
        const rows = await sql<{ id: number }[]>`
          SELECT nextval('client_endpoint_event_id_seq')::int AS id FROM generate_series(1, ${count}::int)`;
        return rows.map(({ id }) => id);
      }),

    async write(rows, again) {
      if (again) vectors.forget();
      if ((await insert(rows)) === rows.length || again) return;
      // A set of groups has lost its row, and its clients were left out: they find it the second
      // time.
      vectors.forget();
      await insert(rows);
    },

    everybodyWent: (at, but = []) =>
      run(async (sql) => {
        const present = but.map((each) => ({ uid: shortened(each.clientUid), username: shortened(each.username) }));
        await sql`
          INSERT INTO client_endpoint_event (client_endpoint_id, connection_event_type_id, created_ts, client_version, groups)
          SELECT c.id, 2, greatest(last.created_ts, ${at}), last.client_version, last.groups
          FROM client_endpoint c
          JOIN LATERAL (
            SELECT * FROM client_endpoint_event e WHERE e.client_endpoint_id = c.id ORDER BY e.id DESC LIMIT 1
          ) last ON last.connection_event_type_id = 1
          WHERE NOT EXISTS (SELECT FROM json_to_recordset(${JSON.stringify(present)}::text::json) AS p (uid text, username text)
            WHERE (p.uid, p.username) = (c.uid, c.username))
          ORDER BY last.id`;
      }),
  };
}

function recordOf(
  { who, at, kind, id }: PresenceRow,
  vectors: GroupVectors,
): Record<string, string | number | undefined> {
  return {
    id,
    at: at.getTime(),
    kind,
    callsign: shortened(who.callsign),
    uid: shortened(who.uid),
    username: shortened(who.username),
    team: shortened(who.team),
    role: shortened(who.role),
    version: shortened(who.clientVersion),
    places: vectors.keyOf(who.places),
  };
}

/** PostgreSQL's JSON takes neither NUL nor half a pair. */
function shortened(text: string): string {
  return text.slice(0, MAX_TEXT_LENGTH).toWellFormed().replaceAll('\0', '\uFFFD');
}

export interface EndpointQuery {
  /** Places of the groups whose clients may be seen; `all` sees those of no group too. */
  groups: readonly number[] | 'all';
  /** Last came or went then or later. */
  since: Date | undefined;
  connectedOnly: boolean;
  /** Only the newest of each uid. */
  newestOnly: boolean;
}

export interface ClientEndpoint {
  callsign: string | null;
  uid: string | null;
  username: string | null;
  team: string | null;
  role: string | null;
  lastEventTime: Date;
  lastStatus: 'Connected' | 'Disconnected';
}

/** Rejects with an AppError `unavailable` when the database is away. */
export interface ClientEndpoints {
  /** Sorted by callsign, then uid. */
  list(query: EndpointQuery): Promise<ClientEndpoint[]>;
}

export interface CotCounts {
  cotEvents: number;
  cotImages: number;
}

/** What the database says of itself; rejects with an AppError `unavailable` when it is away. */
export interface CoreDatabaseFacts {
  /** Counted row by row: takes as long as the table is large. */
  cotCount(): Promise<CotCounts>;
  server(): Promise<{ maxConnections: number; serverVersion: string }>;
}

/**
 * The tables of clients that were ever on the stream, and the counts of events: what the lists of
 * the API show of them.
 */
export function clientEndpoints(run: RunSql): ClientEndpoints {
  return {
    list: ({ groups, since, connectedOnly, newestOnly }) =>
      run((sql) => {
        const recent = since === undefined ? sql`true` : sql`last.created_ts >= ${since}`;
        const connected = connectedOnly ? sql`last.connection_event_type_id = 1` : sql`true`;
        return sql<ClientEndpoint[]>`
          SELECT callsign, uid, username, team, role, created_ts AS "lastEventTime", event_name AS "lastStatus"
          FROM (
            SELECT ${newestOnly ? sql`DISTINCT ON (c.uid)` : sql``} c.*, last.id AS event_id, last.created_ts, t.event_name,
              last.groups, last.connection_event_type_id
            FROM client_endpoint c
            JOIN LATERAL (
              SELECT * FROM client_endpoint_event e WHERE e.client_endpoint_id = c.id ORDER BY e.id DESC LIMIT 1
            ) last ON true
            JOIN connection_event_type t ON t.id = last.connection_event_type_id
            WHERE ${visible(sql, groups, sql`last.groups`)}
            ORDER BY c.uid, last.created_ts DESC, last.id DESC
          ) last
          WHERE ${recent} AND ${connected}
          ORDER BY callsign COLLATE "C", uid COLLATE "C", event_id`;
      }),
  };
}

/** `runEvents`: of `eventTable`. */
export function coreDatabaseFacts(run: RunSql, runEvents: RunSql = run): CoreDatabaseFacts {
  return {
    cotCount: () =>
      runEvents(async (sql) => {
        const [row] = await sql<[CotCounts]>`
          SELECT (SELECT count(*) FROM cot_router)::float8 AS "cotEvents",
            (SELECT count(*) FROM cot_image)::float8 AS "cotImages"`;
        return row;
      }),

    server: () =>
      run(async (sql) => {
        const [row] = await sql<[{ maxConnections: number; serverVersion: string }]>`
          SELECT current_setting('max_connections')::int AS "maxConnections",
            current_setting('server_version') AS "serverVersion"`;
        return row;
      }),
  };
}

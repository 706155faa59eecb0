// The tables of clients that were ever on the stream, and the counts of events: what the lists of the API show of them.

import type { RunSql } from './certificates.ts';
import { visible } from './tables.ts';

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

// The tables of clients that were ever on the stream: who came and who went.

import type { Presence } from '../model/stream.ts';
import type { RunSql } from './certificates.ts';
import type { GroupVectors } from './group-vectors.ts';

export interface PresenceRow {
  who: Presence;
  at: Date;
  kind: 'Connected' | 'Disconnected';
  /** Drawn beforehand: written twice, the row stands there once. */
  id?: number;
}

/** Rejects with an AppError `unavailable` when the database is away, with PostgreSQL's own error when it refuses a row. */
export interface PresenceStore {
  /** Ids of rows to come, ascending. */
  ids(count: number): Promise<number[]>;
  /** All or none of the rows, which have their ids; `again`: those that are there already stay as they are. */
  write(rows: readonly PresenceRow[], again: boolean): Promise<void>;
  /** Whoever is still there by the tables, though nobody can be, has gone. */
  everybodyWent(at: Date): Promise<void>;
}

/** The five texts of a client are one entry of an index, which takes 2,704 bytes: three for each character. */
const LONGEST_TEXT = 160;

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
      // A set of groups has lost its row, and its clients were left out: they find it the second time.
      vectors.forget();
      await insert(rows);
    },

    everybodyWent: (at) =>
      run(async (sql) => {
        await sql`
          INSERT INTO client_endpoint_event (client_endpoint_id, connection_event_type_id, created_ts, client_version, groups)
          SELECT c.id, 2, greatest(last.created_ts, ${at}), last.client_version, last.groups
          FROM client_endpoint c
          JOIN LATERAL (
            SELECT * FROM client_endpoint_event e WHERE e.client_endpoint_id = c.id ORDER BY e.id DESC LIMIT 1
          ) last ON last.connection_event_type_id = 1
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
  return text.slice(0, LONGEST_TEXT).toWellFormed().replaceAll('\0', '\uFFFD');
}

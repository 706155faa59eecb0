// Reads and writes what administrators and devices keep at the server beside missions: video feeds
// and injectors.

import type postgres from 'postgres';
import type { RunSql } from './certificates.ts';
import { vectorText } from './groups.ts';
import type { Places } from './missions.ts';
import { visible } from './tables.ts';

/** A row of `video_connection`. `body` is the JSON that devices see. */
export interface VideoConnectionRow {
  uid: string;
  submitter: string;
  body: Readonly<Record<string, unknown>>;
}

/** Rejects with an AppError `unavailable` when the database is away. */
export interface VideoConnections {
  /** At most 1,000, by when they came. */
  list(sees: Places): Promise<VideoConnectionRow[]>;
  /** Whoever may see it. */
  find(uid: string): Promise<VideoConnectionRow | undefined>;
  isVisible(uid: string, sees: Places): Promise<boolean>;
  /** How many there are. */
  count(): Promise<number>;
  /** `places` stay as they are when they are not given. */
  save(row: VideoConnectionRow, places: readonly number[] | undefined): Promise<void>;
  remove(uid: string): Promise<void>;
}

const MAX_LISTED = 1_000;

export function videoConnections(run: RunSql): VideoConnections {
  return {
    list: (sees) =>
      run(async (sql) => {
        const rows = await sql<TextRow[]>`
          SELECT uid, submitter, body FROM video_connection v WHERE ${visible(sql, sees, sql`v.groups`)}
          ORDER BY id LIMIT ${MAX_LISTED}`;
        return rows.map(parsed);
      }),

    find: (uid) =>
      run(async (sql) => {
        const [row] = await sql<TextRow[]>`SELECT uid, submitter, body FROM video_connection WHERE uid = ${uid}`;
        return row === undefined ? undefined : parsed(row);
      }),

    isVisible: (uid, sees) =>
      run(async (sql) => {
        const rows = await sql`
          SELECT FROM video_connection v WHERE v.uid = ${uid} AND ${visible(sql, sees, sql`v.groups`)}`;
        return rows.length > 0;
      }),

    count: () =>
      run(async (sql) => {
        const [row] = await sql<{ count: number }[]>`SELECT count(*)::float8 AS count FROM video_connection`;
        return row?.count ?? 0;
      }),

    async save({ uid, submitter, body }, places) {
      const text = JSON.stringify(body);
      await run((sql) =>
        places === undefined
          ? sql`UPDATE video_connection SET body = ${text} WHERE uid = ${uid}`
          : sql`
            INSERT INTO video_connection (uid, submitter, body, groups)
            VALUES (${uid}, ${submitter}, ${text}, ${bits(sql, places)})
            ON CONFLICT (uid) DO UPDATE SET body = excluded.body, groups = excluded.groups`,
      );
    },

    async remove(uid) {
      await run((sql) => sql`DELETE FROM video_connection WHERE uid = ${uid}`);
    },
  };
}

type TextRow = Omit<VideoConnectionRow, 'body'> & { body: string };

function parsed({ uid, submitter, body }: TextRow): VideoConnectionRow {
  return { uid, submitter, body: JSON.parse(body) as VideoConnectionRow['body'] };
}

function bits(sql: postgres.ISql, places: readonly number[]): postgres.Fragment {
  return sql`${vectorText(places)}::text::bit varying(32768)`;
}

export interface InjectorRow {
  uid: string;
  toInject: string;
}

/** Rejects with an AppError `unavailable` when the database is away. */
export interface InjectorStore {
  list(): Promise<InjectorRow[]>;
  add(injector: InjectorRow): Promise<void>;
  /** False when there is no such one. */
  remove(injector: InjectorRow): Promise<boolean>;
}

export function injectorStore(run: RunSql): InjectorStore {
  return {
    list: () =>
      run(
        (sql) => sql<InjectorRow[]>`
          SELECT uid, to_inject AS "toInject" FROM injector ORDER BY uid COLLATE "C", to_inject COLLATE "C"`,
      ),

    async add({ uid, toInject }) {
      await run(
        (sql) => sql`INSERT INTO injector (uid, to_inject) VALUES (${uid}, ${toInject}) ON CONFLICT DO NOTHING`,
      );
    },

    remove: ({ uid, toInject }) =>
      run(async (sql) => {
        const { count } = await sql`DELETE FROM injector WHERE uid = ${uid} AND to_inject = ${toInject}`;
        return count > 0;
      }),
  };
}

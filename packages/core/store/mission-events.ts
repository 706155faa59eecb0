// Reads the newest event of each uid of a mission, a few at a time.

import type { StoredEvent } from '../model/stored-event.ts';
import type { RunSql } from './certificates.ts';
import { readEvents } from './history.ts';
import { newestOf, type Places } from './missions.ts';
import { visible } from './tables.ts';

/** Rejects with an AppError `unavailable` when the database is away. */
export interface MissionEvents {
  /** Id and size of the newest event of each uid that may be seen, in the order of the uids. */
  newest(missionId: number, sees: Places): Promise<{ id: string; bytes: number }[]>;
  /** In the order of the ids. */
  read(ids: readonly string[]): Promise<StoredEvent[]>;
}

export function missionEvents(run: RunSql): MissionEvents {
  return {
    newest: (missionId, sees) =>
      run(
        (sql) => sql<{ id: string; bytes: number }[]>`
          SELECT e.id::text AS id, coalesce(octet_length(e.detail), 0) AS bytes
          FROM mission_uid u
          JOIN LATERAL (
            SELECT id, detail FROM ${newestOf(sql, sql`u.uid`)} e WHERE ${visible(sql, sees, sql`e.groups`)}
            ORDER BY e.id DESC LIMIT 1
          ) e ON true
          WHERE u.mission_id = ${missionId} ORDER BY u.uid COLLATE "C"`,
      ),

    read: (ids) => run((sql) => readEvents(sql, ids)),
  };
}

// Reads and writes `mission_log`: entries that people write about what happens in their missions.

import type postgres from 'postgres';
import { CoreFault } from '../http/answers.ts';
import { type LogEntry, type Mission, MISSION_LIMITS } from '../model/mission.ts';
import type { RunSql } from './certificates.ts';
import { textsOf } from './resources.ts';
import type { ChangeWindow } from './missions.ts';

export type LogDraft = Omit<LogEntry, 'created' | 'servertime'>;

/** Rejects with an AppError `unavailable` when the database is away. */
export interface MissionLogs {
  /**
   * In these missions, or changed to be in these alone; who wrote it, and when, stays. Rejects with
   * a CoreFault: `not found` for a mission that has gone meanwhile, `conflict` beyond the limit.
   */
  save(entry: LogDraft, missionIds: readonly number[], now: Date): Promise<LogEntry>;
  find(id: string): Promise<LogEntry | undefined>;
  /** Guids of the missions that it is in. */
  missionsOf(id: string): Promise<string[]>;
  remove(id: string): Promise<void>;
  /** The newest that an answer may hold, the oldest first. */
  of(mission: Pick<Mission, 'id'>, window: Pick<ChangeWindow, 'start' | 'end'>): Promise<LogEntry[]>;
}

export function missionLogs(run: RunSql): MissionLogs {
  return {
    save: (entry, missionIds, now) => run((sql) => sql.begin((tx) => saved(tx, entry, missionIds, now))),

    find: (id) =>
      run(async (sql) => {
        const [row] = await sql<LogEntry[]>`SELECT ${columns(sql)} FROM mission_log l WHERE l.id = ${id}`;
        return row;
      }),

    missionsOf: (id) =>
      run(async (sql) => {
        const rows = await sql<{ guid: string }[]>`
          SELECT m.guid::text AS guid FROM mission_log_mission x JOIN mission m ON m.id = x.mission_id
          WHERE x.mission_log_id = ${id} ORDER BY m.id`;
        return rows.map(({ guid }) => guid);
      }),

    async remove(id) {
      await run((sql) => sql`DELETE FROM mission_log WHERE id = ${id}`);
    },

    async of({ id }, { start, end }) {
      const newest = await run(
        (sql) => sql<LogEntry[]>`
          SELECT ${columns(sql)} FROM (
            SELECT l.*, sum(octet_length(content)) OVER (ORDER BY servertime DESC, id DESC) AS bytes
            FROM mission_log l JOIN mission_log_mission x ON x.mission_log_id = l.id
            WHERE x.mission_id = ${id}
              AND ${start === undefined ? sql`true` : sql`servertime >= ${start}`}
              AND ${end === undefined ? sql`true` : sql`servertime <= ${end}`}
            ORDER BY servertime DESC, id DESC LIMIT ${MISSION_LIMITS.changes}
          ) l WHERE l.bytes <= ${MISSION_LIMITS.logBytes} ORDER BY l.servertime DESC, l.id DESC`,
      );
      return newest.toReversed();
    },
  };
}

async function saved(
  tx: postgres.TransactionSql,
  entry: LogDraft,
  missionIds: readonly number[],
  now: Date,
): Promise<LogEntry> {
  const { id, content, creatorUid, username, entryUid, dtg, contentHashes, keywords } = entry;
  const ids = `{${missionIds.join()}}`;
  const there = await tx`SELECT FROM mission WHERE id = ANY (${ids}::text::bigint[]) ORDER BY id FOR SHARE`;
  if (there.length !== missionIds.length) throw new CoreFault('not found', 'The mission was deleted in the meantime.');
  const [row] = await tx<LogEntry[]>`
    INSERT INTO mission_log AS l (id, content, creator_uid, username, entry_uid, dtg, created, servertime, content_hashes, keywords)
    VALUES (${id}, ${content}, ${creatorUid}, ${username}, ${entryUid}, ${dtg}, ${now}, ${now}, ${textsOf(tx, contentHashes)},
      ${textsOf(tx, keywords)})
    ON CONFLICT (id) DO UPDATE SET content = excluded.content, entry_uid = excluded.entry_uid, dtg = excluded.dtg,
      servertime = excluded.servertime, content_hashes = excluded.content_hashes, keywords = excluded.keywords
    RETURNING ${columns(tx)}`;
  if (row === undefined) throw new Error('the database answered without the row');
  await tx`DELETE FROM mission_log_mission WHERE mission_log_id = ${id} AND mission_id <> ALL (${ids}::text::bigint[])`;
  await tx`
    INSERT INTO mission_log_mission (mission_id, mission_log_id)
    SELECT unnest(${ids}::text::bigint[]), ${id} ON CONFLICT DO NOTHING`;
  const [counted] = await tx<{ most: number }[]>`
    SELECT max(c)::float8 AS most FROM (
      SELECT count(*) AS c FROM mission_log_mission WHERE mission_id = ANY (${ids}::text::bigint[]) GROUP BY mission_id) each`;
  if ((counted?.most ?? 0) > MISSION_LIMITS.logEntries)
    throw new CoreFault('conflict', `The log of a mission can have at most ${MISSION_LIMITS.logEntries} entries.`);
  return row;
}

function columns(sql: postgres.ISql): postgres.Fragment {
  return sql`l.id, l.content, l.creator_uid AS "creatorUid", l.username, l.entry_uid AS "entryUid", l.dtg, l.created, l.servertime,
    to_json(l.content_hashes) AS "contentHashes", to_json(l.keywords) AS keywords`;
}

// Reads and writes the tables of device profiles: preferences and files for the devices of groups.

import type postgres from 'postgres';
import type { RunSql } from './certificates.ts';
import { MAX_GROUPS, vectorText } from './groups.ts';
import { visible } from './tables.ts';

export type ProfileType = 'Enrollment' | 'Connection' | 'Tool';

export interface Profile {
  id: number;
  name: string;
  active: boolean;
  type: ProfileType;
  /** Of type Tool: for which. */
  tool: string | null;
  updated: Date;
  /** Names. */
  groups: string[] | 'all';
}

export interface ProfileChange extends Pick<Profile, 'active' | 'type' | 'tool'> {
  places: readonly number[] | 'all';
}

export interface ProfileFile {
  id: number;
  name: string;
  bytes: number;
}

/** Which profiles a device is to apply. */
export interface WantedProfiles {
  type: ProfileType;
  tool?: string;
  /** Changed since then; undefined: all. */
  since: Date | undefined;
  /** Of the groups whose profiles the person gets. */
  places: readonly number[];
}

export interface GivenFile {
  name: string;
  data: Uint8Array<ArrayBuffer>;
  /** When its profile changed. */
  updated: Date;
}

/** Rejects with an AppError `unavailable` when the database is away. */
export interface ProfileStore {
  /** By name. */
  list(): Promise<Profile[]>;
  /** False when there is one of that name, `full` when there are too many. */
  create(name: string, places: readonly number[]): Promise<boolean | 'full'>;
  /** False when there is none of that id. */
  update(id: number, change: ProfileChange, now: Date): Promise<boolean>;
  /** With its files; false when there is none. */
  remove(id: number): Promise<boolean>;
  files(profileId: number): Promise<ProfileFile[]>;
  /** In place of one of the same name; `full` when all together would be too large or too many. */
  addFile(profileId: number, file: { name: string; data: Uint8Array }, now: Date): Promise<ProfileFile | 'full'>;
  file(profileId: number, id: number): Promise<GivenFile | undefined>;
  /** False when there is none. */
  removeFile(profileId: number, id: number, now: Date): Promise<boolean>;
  /** Of the profiles that are wanted and active, in the order of their ids. */
  given(wanted: WantedProfiles): Promise<GivenFile[]>;
}

export const PROFILE_LIMITS = {
  profiles: 100,
  filesOfOne: 50,
  /** All together: a package is made in memory. */
  bytes: 32 * 1024 * 1024,
} as const;

const ALL = '1'.repeat(MAX_GROUPS);

export function profileStore(run: RunSql): ProfileStore {
  const vector = (sql: postgres.ISql, places: ProfileChange['places']): postgres.Fragment =>
    sql`${places === 'all' ? ALL : vectorText(places)}::text::bit varying(32768)`;

  return {
    list: () => run(listProfiles),

    create: (name, places) =>
      run(async (sql) => {
        const { count } = await sql`
          INSERT INTO device_profile (name, groups) SELECT ${name}, ${vector(sql, places)}
          WHERE (SELECT count(*) FROM device_profile) < ${PROFILE_LIMITS.profiles} ON CONFLICT (name) DO NOTHING`;
        if (count === 1) return true;
        const [known] = await sql`SELECT FROM device_profile WHERE name = ${name}`;
        return known === undefined ? 'full' : false;
      }),

    update: (id, { active, type, tool, places }, now) =>
      run(async (sql) => {
        const { count } = await sql`
          UPDATE device_profile SET active = ${active}, apply_on_enrollment = ${type === 'Enrollment'},
            apply_on_connect = ${type === 'Connection'}, tool = ${type === 'Tool' ? tool : null}, updated = ${now},
            groups = ${vector(sql, places)} WHERE id = ${id}`;
        return count === 1;
      }),

    remove: (id) => run(async (sql) => (await sql`DELETE FROM device_profile WHERE id = ${id}`).count === 1),

    files: (profileId) =>
      run(
        (sql) => sql<ProfileFile[]>`
          SELECT id::float8 AS id, name, octet_length(data) AS bytes FROM device_profile_file
          WHERE device_profile_id = ${profileId} ORDER BY id`,
      ),

    addFile: (profileId, file, now) =>
      run(async (sql) => {
        try {
          return await sql.begin((tx) => addFile(tx, profileId, file, now));
        } catch (error) {
          if (error instanceof NoRoom) return 'full';
          throw error;
        }
      }),

    file: (profileId, id) =>
      run(async (sql) => {
        const [row] = await sql<GivenFile[]>`
          SELECT f.name, f.data, p.updated FROM device_profile_file f JOIN device_profile p ON p.id = f.device_profile_id
          WHERE p.id = ${profileId} AND f.id = ${id}`;
        return row;
      }),

    removeFile: (profileId, id, now) =>
      run((sql) =>
        sql.begin(async (tx) => {
          const { count } = await tx`
            DELETE FROM device_profile_file WHERE device_profile_id = ${profileId} AND id = ${id}`;
          await tx`UPDATE device_profile SET updated = ${now} WHERE id = ${profileId}`;
          return count === 1;
        }),
      ),

    given: ({ type, tool, since, places }) =>
      run(
        (sql) => sql<GivenFile[]>`
          SELECT f.name, f.data, p.updated FROM device_profile p JOIN device_profile_file f ON f.device_profile_id = p.id
          WHERE p.active AND ${typeOf(sql)} = ${type} AND ${visible(sql, places, sql`p.groups`)}
            ${tool === undefined ? sql`` : sql`AND p.tool = ${tool}`}
            ${since === undefined ? sql`` : sql`AND p.updated >= ${since}`}
          ORDER BY p.id, f.id`,
      ),
  };
}

async function listProfiles(sql: postgres.ISql): Promise<Profile[]> {
  const rows = await sql<(Omit<Profile, 'groups'> & { all: boolean; groups: string[] })[]>`
    SELECT p.id::float8 AS id, p.name, p.active, ${typeOf(sql)} AS type, p.tool, p.updated,
      plain.bits = ${ALL}::text::bit varying AS all,
      coalesce((SELECT json_agg(g.name ORDER BY g.name COLLATE "C") FROM groups g
        WHERE CASE WHEN g.bitpos < length(plain.bits)
          THEN get_bit(plain.bits, length(plain.bits) - 1 - g.bitpos) = 1 ELSE false END), '[]') AS groups
    FROM device_profile p CROSS JOIN LATERAL (SELECT coalesce(p.groups, B'') || B'' AS bits OFFSET 0) plain
    ORDER BY p.name COLLATE "C"`;
  return rows.map(({ all, groups, ...profile }) => ({ ...profile, groups: all ? 'all' : groups }));
}

/** Takes back what was begun. */
class NoRoom extends Error {}

async function addFile(
  tx: postgres.ISql,
  profileId: number,
  { name, data }: { name: string; data: Uint8Array },
  now: Date,
): Promise<ProfileFile> {
  await tx`LOCK TABLE device_profile_file IN SHARE ROW EXCLUSIVE MODE`;
  await tx`DELETE FROM device_profile_file WHERE device_profile_id = ${profileId} AND name = ${name}`;
  const [sum] = await tx<{ bytes: number; own: number }[]>`
    SELECT coalesce(sum(octet_length(data)), 0)::float8 AS bytes,
      count(*) FILTER (WHERE device_profile_id = ${profileId})::int AS own FROM device_profile_file`;
  const bytes = (sum?.bytes ?? 0) + data.length;
  const isFull = bytes > PROFILE_LIMITS.bytes || (sum?.own ?? 0) >= PROFILE_LIMITS.filesOfOne;
  if (isFull) throw new NoRoom();
  const [row] = await tx<{ id: number }[]>`
    INSERT INTO device_profile_file (name, data, device_profile_id)
    VALUES (${name}, ${Buffer.from(data)}, ${profileId}) RETURNING id::float8 AS id`;
  await tx`UPDATE device_profile SET updated = ${now} WHERE id = ${profileId}`;
  return { id: row?.id ?? 0, name, bytes: data.length };
}

/** As the flags say: a profile is of one type. */
function typeOf(sql: postgres.ISql): postgres.Fragment {
  return sql`CASE WHEN p.apply_on_enrollment THEN 'Enrollment' WHEN p.apply_on_connect THEN 'Connection' ELSE 'Tool' END`;
}

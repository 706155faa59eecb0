// The tables `groups` and `active_group_cache`: the place of each group in the vectors of the events, for ever, and which of
// their groups people have switched off.

import type postgres from 'postgres';
import { AppError } from '@holdfast/kit/app-error';
import type { KnownGroup, Membership } from '../model/parts.ts';
import type { RunSql } from './certificates.ts';

/** Bits of a vector. */
export const MOST_GROUPS = 32_768;

/** Rejects with an AppError `unavailable` when the database is away. */
export interface GroupStore {
  /** Every group that was ever seen, sorted by name. */
  list(): Promise<KnownGroup[]>;
  /** The groups of those names, in any order; one that is new gets the next place, the same for all who ask at once. */
  ensure(names: readonly string[]): Promise<KnownGroup[]>;
}

export interface GroupState extends Membership {
  enabled: boolean;
}

/** By name of the user, in any case. */
export interface ActiveGroups {
  /** What was ever switched; what is not among them is on. */
  of(username: string): Promise<GroupState[]>;
  /** Keeps what is not named. */
  set(username: string, states: readonly GroupState[]): Promise<void>;
}

export function groupStore(run: RunSql): GroupStore {
  async function known(sql: postgres.ISql, names: readonly string[]): Promise<KnownGroup[]> {
    return sql<KnownGroup[]>`
      SELECT ${columns(sql)} WHERE g.name IN (SELECT json_array_elements_text(${JSON.stringify(names)}::text::json))`;
  }

  return {
    list: () => run((sql) => sql<KnownGroup[]>`SELECT ${columns(sql)} ORDER BY g.name COLLATE "C"`),

    ensure: (names) =>
      run(async (sql) => {
        const wanted = [...new Set(names)];
        const found = await known(sql, wanted);
        if (found.length === wanted.length) return found;
        return sql.begin(async (tx) => {
          await tx`LOCK TABLE groups IN SHARE ROW EXCLUSIVE MODE`;
          const there = new Set((await known(tx, wanted)).map(({ name }) => name));
          for (const name of wanted.filter((each) => !there.has(each)).toSorted()) await addGroup(tx, name);
          return known(tx, wanted);
        });
      }),
  };
}

function columns(sql: postgres.ISql): postgres.Fragment {
  return sql`g.name, g.bitpos, g.create_ts AS created, t.group_type AS type
    FROM groups g JOIN group_type_pl t ON t.id = g.type`;
}

async function addGroup(tx: postgres.ISql, name: string): Promise<void> {
  const [row] = await tx<{ bitpos: number }[]>`
    INSERT INTO groups (name, bitpos, type) VALUES (${name}, nextval('group_bitpos_sequence'), 0) RETURNING bitpos`;
  if (row !== undefined && row.bitpos < MOST_GROUPS) return;
  throw new AppError('internal', `There is no place for the group ${name}: ${MOST_GROUPS} were seen already.`);
}

export function activeGroups(run: RunSql): ActiveGroups {
  return {
    of: (username) =>
      run(
        (sql) => sql<GroupState[]>`
          SELECT groupname AS name, direction, enabled FROM active_group_cache WHERE username = ${username.toLowerCase()}`,
      ),

    set: (username, states) =>
      run(async (sql) => {
        await sql`
          INSERT INTO active_group_cache (username, groupname, direction, enabled)
          SELECT ${username.toLowerCase()}, name, direction, bool_or(enabled)
          FROM json_to_recordset(${JSON.stringify(states)}::text::json) AS s (name text, direction text, enabled boolean)
          GROUP BY name, direction ORDER BY name, direction
          ON CONFLICT (username, groupname, direction) DO UPDATE SET enabled = excluded.enabled`;
      }),
  };
}

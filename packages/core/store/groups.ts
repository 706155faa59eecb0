// Reads and writes `groups` (each group's permanent bit position in event vectors) and
// `active_group_cache` (groups that people switched off).

import { createHash } from 'node:crypto';
import type postgres from 'postgres';
import { AppError } from '@holdfast/kit/app-error';
import type { KnownGroup, Membership } from '../model/parts.ts';
import type { RunSql } from './certificates.ts';

/** Bits of a vector. */
export const MAX_GROUPS = 32_768;

/** Rejects with an AppError `unavailable` when the database is away. */
export interface GroupStore {
  /** Every group that was ever seen, sorted by name. */
  list(): Promise<KnownGroup[]>;
  /**
   * The groups of those names, in any order; one that is new gets the next place, the same for all
   * who ask at once.
   */
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
  if (row !== undefined && row.bitpos < MAX_GROUPS) return;
  throw new AppError('internal', `Couldn't register group ${name}: the limit of ${MAX_GROUPS} groups is reached.`);
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

/** Sets that are remembered to have a row. */
const MAX_REMEMBERED = 10_000;
/** The index over the keys takes no more than 2,704 bytes: longer keys are digests. */
const MAX_KEY_LENGTH = 1_000;

/**
 * The table `group_vector`: each set of groups once, at its full length. Rows of events copy their
 * vector from there, already compressed: some 60 bytes instead of 4 KB.
 */
export class GroupVectors {
  readonly #run: RunSql;
  /** The same array comes again and again. */
  readonly #keys = new WeakMap<readonly number[], string>();
  readonly #remembered = new Set<string>();

  constructor(run: RunSql) {
    this.#run = run;
  }

  /** Places ascending, 0 to 32,767. Text by which the row is found: `2,5`. No I/O. */
  keyOf(places: readonly number[]): string {
    const known = this.#keys.get(places);
    if (known !== undefined) return known;
    const key = keyText(places);
    this.#keys.set(places, key);
    return key;
  }

  /**
   * Makes sure that those sets have their rows. Rejects with an AppError `unavailable` when the
   * database is away.
   */
  async ensure(sets: Iterable<readonly number[]>): Promise<void> {
    const missing = new Map<string, readonly number[]>();
    for (const places of sets) {
      const key = this.keyOf(places);
      if (!this.#remembered.has(key)) missing.set(key, places);
    }
    if (missing.size === 0) return;
    const there = await this.#known([...missing.keys()]);
    for (const [key, places] of missing) {
      if (!there.has(key)) await this.#add(key, places);
      if (this.#remembered.size >= MAX_REMEMBERED) this.#remembered.clear();
      this.#remembered.add(key);
    }
  }

  /** What is in memory is no longer trusted: somebody may have emptied the table. */
  forget(): void {
    return this.#remembered.clear();
  }

  /** No key has a space. */
  async #known(wanted: readonly string[]): Promise<Set<string>> {
    const rows = await this.#run(
      (sql) => sql<{ places: string }[]>`
        SELECT places FROM group_vector WHERE places = ANY (string_to_array(${wanted.join(' ')}::text, ' '))`,
    );
    return new Set(rows.map(({ places }) => places));
  }

  async #add(key: string, places: readonly number[]): Promise<void> {
    await this.#run(
      (sql) => sql`
        INSERT INTO group_vector (places, vector) VALUES (${key}, ${vectorText(places)}::text::bit varying(32768))
        ON CONFLICT (places) DO NOTHING`,
    );
  }
}

function keyText(places: readonly number[]): string {
  const text = places.join();
  return text.length <= MAX_KEY_LENGTH ? text : `sha256:${createHash('sha256').update(text).digest('hex')}`;
}

/** At its full length; the rightmost character is place 0. */
export function vectorText(places: readonly number[]): string {
  const bits = Buffer.alloc(MAX_GROUPS, '0');
  for (const place of places) {
    if (!Number.isInteger(place) || place < 0 || place >= MAX_GROUPS)
      throw new RangeError(`There is no place ${place} in a vector of ${MAX_GROUPS} groups.`);
    bits[MAX_GROUPS - 1 - place] = 0x31;
  }
  return bits.toString('latin1');
}

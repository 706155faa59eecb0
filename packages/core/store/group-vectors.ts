// The table `group_vector`: each set of groups once, at its full length. Rows of events copy their vector from there, already
// compressed: some 60 bytes instead of 4 KB.

import { createHash } from 'node:crypto';
import type { RunSql } from './certificates.ts';
import { MOST_GROUPS } from './groups.ts';

export interface GroupVectors {
  /** Places ascending, 0 to 32,767. Text by which the row is found: `2,5`. No I/O. */
  keyOf(places: readonly number[]): string;
  /** Makes sure that those sets have their rows. Rejects with an AppError `unavailable` when the database is away. */
  ensure(sets: Iterable<readonly number[]>): Promise<void>;
  /** What is in memory is no longer trusted: somebody may have emptied the table. */
  forget(): void;
}

/** Sets that are remembered to have a row. */
const MOST_REMEMBERED = 10_000;
/** The index over the keys takes no more than 2,704 bytes: longer keys are digests. */
const LONGEST_KEY = 1_000;

export function groupVectors(run: RunSql): GroupVectors {
  /** The same array comes again and again. */
  const keys = new WeakMap<readonly number[], string>();
  const remembered = new Set<string>();

  function keyOf(places: readonly number[]): string {
    const known = keys.get(places);
    if (known !== undefined) return known;
    const key = keyText(places);
    keys.set(places, key);
    return key;
  }

  /** No key has a space. */
  async function known(wanted: readonly string[]): Promise<Set<string>> {
    const rows = await run(
      (sql) => sql<{ places: string }[]>`
        SELECT places FROM group_vector WHERE places = ANY (string_to_array(${wanted.join(' ')}::text, ' '))`,
    );
    return new Set(rows.map(({ places }) => places));
  }

  async function add(key: string, places: readonly number[]): Promise<void> {
    await run(
      (sql) => sql`
        INSERT INTO group_vector (places, vector) VALUES (${key}, ${vectorText(places)}::text::bit varying(32768))
        ON CONFLICT (places) DO NOTHING`,
    );
  }

  return {
    keyOf,

    async ensure(sets) {
      const missing = new Map<string, readonly number[]>();
      for (const places of sets) {
        const key = keyOf(places);
        if (!remembered.has(key)) missing.set(key, places);
      }
      if (missing.size === 0) return;
      const there = await known([...missing.keys()]);
      for (const [key, places] of missing) {
        if (!there.has(key)) await add(key, places);
        if (remembered.size >= MOST_REMEMBERED) remembered.clear();
        remembered.add(key);
      }
    },

    forget: () => remembered.clear(),
  };
}

function keyText(places: readonly number[]): string {
  const text = places.join();
  return text.length <= LONGEST_KEY ? text : `sha256:${createHash('sha256').update(text).digest('hex')}`;
}

/** At its full length; the rightmost character is place 0. */
export function vectorText(places: readonly number[]): string {
  const bits = Buffer.alloc(MOST_GROUPS, '0');
  for (const place of places) {
    if (!Number.isInteger(place) || place < 0 || place >= MOST_GROUPS)
      throw new RangeError(`There is no place ${place} in a vector of ${MOST_GROUPS} groups.`);
    bits[MOST_GROUPS - 1 - place] = 0x31;
  }
  return bits.toString('latin1');
}

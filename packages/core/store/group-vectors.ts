// The table `group_vector`: each set of groups once, at its full length. Rows of events copy their vector from there, already
// compressed: some 60 bytes instead of 4 KB.

import { createHash } from 'node:crypto';
import type { RunSql } from './certificates.ts';
import { MOST_GROUPS } from './groups.ts';

/** Sets that are remembered to have a row. */
const MOST_REMEMBERED = 10_000;
/** The index over the keys takes no more than 2,704 bytes: longer keys are digests. */
const LONGEST_KEY = 1_000;

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

  /** Makes sure that those sets have their rows. Rejects with an AppError `unavailable` when the database is away. */
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
      if (this.#remembered.size >= MOST_REMEMBERED) this.#remembered.clear();
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

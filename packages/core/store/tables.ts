// Builds the condition for visible rows: the group vector has a bit at one of the caller's
// positions.

import type postgres from 'postgres';
import { AppError, codeOf } from '@holdfast/kit/app-error';
import type { RunSql } from './certificates.ts';

/**
 * A condition on a column of vectors; `all` sees rows of no group too. The rightmost bit of a
 * vector is place 0. A stored vector is unpacked once, not for each place.
 */
export function visible(
  sql: postgres.ISql,
  groups: readonly number[] | 'all',
  column: postgres.Fragment,
): postgres.Fragment {
  if (groups === 'all') return sql`true`;
  return sql`EXISTS (SELECT FROM (SELECT ${column} || B'' AS bits OFFSET 0) plain
    CROSS JOIN unnest(${`{${groups.join()}}`}::text::int[]) AS place
    WHERE CASE WHEN place < length(plain.bits) THEN get_bit(plain.bits, length(plain.bits) - 1 - place) = 1 ELSE false END)`;
}

class EventsLocked extends AppError {
  constructor(cause?: unknown) {
    super('unavailable', 'The table of events is locked: it is being rewritten (VACUUM FULL) or changed.', { cause });
  }
}

const LOCK_NOT_AVAILABLE = '55P03';
const RESTS_MS = 2_000;

/**
 * The way of requests to the tables of events. One may be locked for minutes, by VACUUM FULL: on
 * connections of their own what waits for it keeps nothing else waiting, and once one has met the
 * lock the next ones are refused for a moment without trying. `run` gives up waiting for a lock
 * well before its time is over. Rejects with EventsLocked then.
 */
export function eventTable(run: RunSql, steadyMs: () => number): RunSql {
  let untilMs = Number.NEGATIVE_INFINITY;

  return async function runUnlocked(use) {
    if (steadyMs() < untilMs) throw new EventsLocked();
    try {
      return await run(use);
    } catch (error) {
      if (codeOf(error) !== LOCK_NOT_AVAILABLE) throw error;
      untilMs = steadyMs() + RESTS_MS;
      throw new EventsLocked(error);
    }
  };
}

/** What is shown of events is left out while their table is locked; the rest must go on. */
export async function unlessLocked<T>(whole: () => Promise<T>, without: () => Promise<T>): Promise<T> {
  try {
    return await whole();
  } catch (error) {
    if (error instanceof EventsLocked) return without();
    throw error;
  }
}

/**
 * Rows as one text: the cheapest way into the database here, per row less than half of what a
 * parameter for each value costs. Fields and rows end with control characters that no XML has, so
 * that nothing needs an escape.
 */
const FIELD = '\u001F';
const ROW = '\u001D';
const NOTHING = '\u001E';
// oxlint-disable-next-line no-control-regex -- NUL, which PostgreSQL does not take, and the three above
const TAKEN = /[\u0000\u001D-\u001F]/g;

/**
 * How SQL takes them apart: `string_to_array(row, FIELD, NOTHING)` of each `string_to_table(text,
 * ROW)`.
 */
export const SEPARATORS = { field: FIELD, row: ROW, nothing: NOTHING } as const;

export type Field = string | number | null | undefined;

/**
 * Every row has the same number of fields. A character that separates becomes U+FFFD, as a half of
 * a pair does on its way.
 */
export function fieldRows(rows: Iterable<readonly Field[]>): string {
  let text = '';
  let isFirst = true;
  for (const row of rows) {
    if (!isFirst) text += ROW;
    isFirst = false;
    for (let at = 0; at < row.length; at++) {
      if (at > 0) text += FIELD;
      text += fieldText(row[at]);
    }
  }
  return text;
}

function fieldText(field: Field): string | number {
  if (field === undefined || field === null) return NOTHING;
  if (typeof field === 'number') return field;
  return field.search(TAKEN) < 0 ? field : field.replace(TAKEN, '\uFFFD');
}

export interface Loss {
  id: number;
  began: Date;
  ended: Date;
  events: number;
  reason: string;
}

/** Rejects with an AppError `unavailable` when the database is away. */
export interface LossStore {
  /** A number for a row that is to come. */
  id(): Promise<number>;
  /**
   * Adds the row, or brings it up to date: written twice, it stands there once. Rows of long ago
   * go.
   */
  save(loss: Loss): Promise<void>;
}

const KEPT_DAYS = 90;

/** The table `archive_loss`: events that were not stored. Health reads it as another role. */
export function lossStore(run: RunSql): LossStore {
  return {
    id: () =>
      run(async (sql) => {
        const [row] = await sql<[{ id: number }]>`SELECT nextval('archive_loss_id_seq')::int AS id`;
        return row.id;
      }),

    save: ({ id, began, ended, events, reason }) =>
      run(async (sql) => {
        await sql`
          INSERT INTO archive_loss (id, began, ended, events, reason) VALUES (${id}, ${began}, ${ended}, ${events}, ${reason})
          ON CONFLICT (id) DO UPDATE SET ended = excluded.ended, events = excluded.events`;
        await sql`DELETE FROM archive_loss WHERE ended < now() - make_interval(days => ${KEPT_DAYS})`;
      }),
  };
}

/**
 * Tells cheaply whether anybody was revoked since the last look, by the core itself or by hand in
 * the table. A text that is another one as soon as a revocation date was set, changed or taken
 * away.
 */
export async function revokedMark(run: RunSql): Promise<string> {
  const [row] = await run(
    (sql) => sql<{ mark: string }[]>`
      SELECT concat_ws(' ', count(*), sum(hashtextextended(id || ' ' || revocation_date, 0))) AS mark
      FROM certificate WHERE revocation_date IS NOT NULL`,
  );
  return row?.mark ?? '';
}

// The table `archive_loss`: events that were not stored. Health reads it as another role.

import type { RunSql } from './certificates.ts';

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
  /** Adds the row, or brings it up to date: written twice, it stands there once. Rows of long ago go. */
  save(loss: Loss): Promise<void>;
}

const KEPT_DAYS = 90;

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

// Tests a write to our own database for health.

import type { RunSql } from '@holdfast/kit/kept-database';
import type { State } from './port.ts';

/** Each write needs a new page: one that fits into an old page would succeed on a full disk. */
export function stateDatabase(run: RunSql): State {
  async function writeOnce(): Promise<void> {
    await run((sql) =>
      sql.begin((transaction) => [
        transaction`TRUNCATE health_write`,
        transaction`INSERT INTO health_write (written_at) VALUES (now())`,
      ]),
    );
  }

  return { writeOnce };
}

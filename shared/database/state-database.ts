// Our own database, as far as health looks at it.

import type { RunSql } from '@holdfast/kit/kept-database';
import type { State } from './port.ts';

/** A write needs a new page each time: one that fits into an old page succeeds on a full disk, too. */
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

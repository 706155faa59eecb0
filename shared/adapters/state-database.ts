// Our own database, as far as health looks at it.

import type { State } from '../ports/state.ts';
import type { RunSql } from './kept-database.ts';

export function stateDatabase(run: RunSql): State {
  async function writeOnce(): Promise<void> {
    await run(
      (sql) => sql`
        INSERT INTO health_write (written_at) VALUES (now())
        ON CONFLICT (only_row) DO UPDATE SET written_at = excluded.written_at`,
    );
  }

  return { writeOnce };
}

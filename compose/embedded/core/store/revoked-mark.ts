// Tells cheaply whether anybody was revoked since the last look, by the core itself or by hand in the table.

import type { RunSql } from './certificates.ts';

/** A text that is another one as soon as a revocation date was set, changed or taken away. */
export async function revokedMark(run: RunSql): Promise<string> {
  const [row] = await run(
    (sql) => sql<{ mark: string }[]>`
      SELECT concat_ws(' ', count(*), sum(hashtextextended(id || ' ' || revocation_date, 0))) AS mark
      FROM certificate WHERE revocation_date IS NOT NULL`,
  );
  return row?.mark ?? '';
}

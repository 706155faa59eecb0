// The statement of a vacuum itself, as the owner of the core's database, on a connection of the Node host. The server goes on with it when
// that process dies; everybody finds it by its application name.

import type { VacuumMarks, VacuumMode } from './vacuum-facts.ts';

export interface VacuumOrder {
  /** A UUID: the name of the statement. */
  job: string;
  mode: VacuumMode;
  schema: string;
  table: string;
  /** As the reader has seen it: another database, or another table of that name, is refused. */
  oid: VacuumMarks['oid'];
}

export interface CoreVacuum {
  /**
   * Begins the statement and resolves once it runs or has ended; its end is told by `VacuumFacts.statement`, for a minute or until `settle`.
   * Gives up waiting for a lock after 5 s (SQLSTATE 55P03). Rejects with `unavailable` when nobody may begin one (no owner's URL, no answer),
   * `conflict` when one of that job still runs, `upstream` when the table is another one.
   */
  begin(order: VacuumOrder): Promise<void>;
  /** Ends the connection of a statement that has ended; resolves with what the server has said of its error, if this process knows. */
  settle(job: string): Promise<string | null>;
}

// Tells which nodes of the cluster work with the database, by the names of their sessions.

import type { RunSql } from './certificates.ts';

/** A node, and which of its runs: another one after each start. */
export interface NodeRun {
  /** `core`, `core-2`: unique in the cluster. */
  node: string;
  run: string;
}

/** Rejects with an AppError `unavailable` when the database is unavailable. */
export type WorkingNodes = () => Promise<NodeRun[]>;

const PREFIX = 'node';
/** A node asks several times a second. One that does not stands still, or its machine is gone. */
const SILENT_S = 10;

/** How a node calls its sessions. */
export function sessionName({ node, run }: NodeRun): string {
  return `${PREFIX} ${node} ${run}`;
}

/** Those that work with the database now, also if they reach no other node. */
export function workingNodes(run: RunSql): WorkingNodes {
  return () =>
    run(async (sql) => {
      const rows = await sql<{ name: string }[]>`
        SELECT DISTINCT application_name AS name FROM pg_stat_activity
        WHERE datname = current_database() AND usename = current_user
          AND application_name LIKE ${`${PREFIX} %`}
          AND state_change > clock_timestamp() - make_interval(secs => ${SILENT_S})`;
      return rows.map(({ name }) => {
        const [, node = '', of = ''] = name.split(' ');
        return { node, run: of };
      });
    });
}
